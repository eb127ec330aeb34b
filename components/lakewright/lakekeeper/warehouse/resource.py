"""Warehouse: a Lakekeeper warehouse, whose tables are stored under a key prefix of a bucket."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, DiffResult, Resource
from typing_extensions import override

from lakewright.credentials import references as credentials
from lakewright.credentials.random_secret import make_random_hex
from lakewright.credentials.resending import is_resend_requested
from lakewright.lakekeeper.api.catalog import contents
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import AlreadyExistsError, ForbiddenError, NotFoundError
from lakewright.lakekeeper.api.management import permissions as managed
from lakewright.lakekeeper.api.management import project_record, projects, record_roles, warehouses
from lakewright.lakekeeper.api.management.record_roles import RecordRole
from lakewright.lakekeeper.archive import archiving
from lakewright.lakekeeper.buckets import bucket_mark, handed_over_files, unexplained_objects
from lakewright.lakekeeper.preflight import report
from lakewright.lakekeeper.preflight import warehouse_contents as warehouse_removal
from lakewright.lakekeeper.provider.adoption import Adopting
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.creation import Origin, create_or_find, explain_unfinished
from lakewright.lakekeeper.provider.diagnostics import note, warn
from lakewright.lakekeeper.provider.diff import Change
from lakewright.lakekeeper.provider.errors import (
    ArchiveRefusedError,
    DeletedOutsideStackError,
    NotOwnedError,
    RemovalRefusedError,
)
from lakewright.lakekeeper.provider.inputs import has_unknown
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, drop_none
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.lakekeeper.storage.credentials import mistake, references
from lakewright.lakekeeper.storage.profiles import PROFILES
from lakewright.lakekeeper.warehouse import changes as warehouse_changes
from lakewright.lakekeeper.warehouse import emptying as warehouse_emptying
from lakewright.lakekeeper.warehouse import preflight
from lakewright.lakekeeper.warehouse.changes import Changes, explain_unlisted_holder, patiently
from lakewright.lakekeeper.warehouse.model import (
    WarehouseArgs,
    add_live_default_version,
    create_request,
    observe,
    same_place,
)
from lakewright.names.types import Deletion
from lakewright.ownership.archive_mark import ArchiveMark
from lakewright.ownership.backend_identity import find_running_backend
from lakewright.ownership.consent import Consent
from lakewright.ownership.mark import Claimant, Ownership
from lakewright.ownership.marked_object import MarkedObject
from lakewright.ownership.record_identity import find_recorded
from lakewright.ownership.running_stack import find_running_stack

_KIND = "credential_kind"
"""Kind of the credential that an existing warehouse has."""


class WarehouseProvider(LakekeeperProvider[WarehouseArgs]):
    """Creates, reads, changes and deletes warehouses."""

    args = WarehouseArgs
    natural_key = ("project_id", "name")
    seen_by = ("storage", "credential")

    @override
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        result = super().check(_olds, news)
        if not result.failures:
            checked = self.args.from_state(result.inputs)
            server = "" if has_unknown(checked.server) else checked.server.endpoint
            if wrong := mistake(checked.credential, self.secret, server):
                return CheckResult(news, [CheckFailure("credential.key", wrong)])
        # A name that another stack owns is refused. The report lists this failure together with other failures.
        if report.is_wanted() and all(failure.property == "adopt" for failure in result.failures):
            new, old = self.args.parse(result.inputs), self.args.from_state(_olds) if "name" in _olds else None
            preflight.validate(self.client, new, old, self.secret, create_request, reported=self.run.preflights)
        return result

    @override
    def complete_args(self, args: WarehouseArgs, olds: dict[str, Any]) -> WarehouseArgs:
        self.run.to_activate.note_program()
        recorded_fingerprint = olds.get("credential_fingerprint")
        stack = (find_running_stack() or olds.get("stack")) if args.record else None
        fingerprint = self._fingerprint(args, recorded_fingerprint, resend=is_resend_requested())
        return args.model_copy(update={"credential_fingerprint": fingerprint, "stack": stack})

    @override
    def redeclare(self, recorded_args: WarehouseArgs, live_args: WarehouseArgs) -> WarehouseArgs:
        return self._with_current_fingerprint(recorded_args)

    @override
    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Compare as for every resource, and note whether this run activates the warehouse.

        The run that activates a warehouse reads its hidden contents again.
        """
        self.run.to_activate.note_compared(_id, active=_news.get("active") is not False)
        result, old = super().diff(_id, _olds, _news), self.args.from_state(_olds)
        is_archived = self._is_archived(RecordedResource(_id, old, _olds))
        return DiffResult(result.changes or is_archived, result.replaces, result.stables, result.delete_before_replace)

    @override
    def needs_calls(self, resource: RecordedResource[WarehouseArgs], new: WarehouseArgs) -> bool:
        return super().needs_calls(resource, new) or self._is_archived(resource)

    def _is_archived(self, resource: RecordedResource[WarehouseArgs]) -> bool:
        """Return whether an interrupted run archived the warehouse, so that `up` must reactivate it."""
        state = resource.declared
        if state.archive is None:
            return False
        client = self.connect_as_recorded(state.server)
        return archiving.find_cached_archive(client, state.project_id, resource.id) is not None

    def _fingerprint(
        self, args: WarehouseArgs, recorded_fingerprint: str | None, *, resend: bool = False
    ) -> str | None:
        """Return the fingerprint of the credential's current secrets.

        Return the recorded fingerprint if the secrets are unchanged or cannot be read. With `resend`, return a new
        fingerprint, which makes an update of the credential. That update fails if the secrets cannot be read.
        """
        names = references(args.credential)
        if not names and not (resend and args.credential):
            return None
        try:
            values = [self.secret(name) for name in names]
        except credentials.UnresolvedCredentialError as unresolved:
            warn(f"{unresolved}; could not check whether the credential has changed")
            if not resend:
                return recorded_fingerprint
            values = []
        if not resend and recorded_fingerprint and credentials.matches_fingerprint(values, recorded_fingerprint):
            return recorded_fingerprint
        salt = make_random_hex(f"credential of {args.project_id}/{args.name}", credentials.SALT_BYTES)
        return credentials.fingerprint(values, salt)

    @override
    def replaces(self, change: Change, new: WarehouseArgs, client: Callable[[], Client]) -> bool:
        if change.path == "storage.region" and change.known and getattr(new.storage, "endpoint", None):
            return not client().server().moves_region
        # A change of the storage type is reported as one difference, not as a difference for each property.
        return change.path == "storage" or super().replaces(change, new, client)

    @override
    def refuse_replacement(
        self, client: Client, resource: RecordedResource[WarehouseArgs], new: WarehouseArgs, changes: list[Change]
    ) -> None:
        warehouse_removal.refuse_replacement(client, resource.id, resource.declared, new, changes)
        self._refuse_unexplained(client, resource)
        self._refuse_handed_over(resource)

    @override
    def title(self, args: WarehouseArgs) -> str:
        return f"warehouse `{args.name}` in project {args.project_id} at {args.server.endpoint}"

    @override
    def find_marked(self, client: Client, args: WarehouseArgs) -> MarkedObject:
        """Return the warehouse if its project is shared and has no mark, else the project."""
        if shared_warehouse := self._find_in_shared_project(client, args):
            return project_record.find_shared_warehouse(client, shared_warehouse)
        return project_record.find_marked_project(client, args.project_id, *_list_consents(args))

    @staticmethod
    def _find_in_shared_project(client: Client, args: WarehouseArgs) -> warehouses.WarehouseResponse | None:
        """Return the warehouse on the server if it exists and has a mark of its own."""
        if args.mark is None or project_record.read_cached_mark(client, args.project_id).names_owner:
            return None
        return warehouses.find_by_name(client, args.project_id, args.name)

    @override
    def find_marked_in_state(self, client: Client, resource: RecordedResource[WarehouseArgs]) -> MarkedObject:
        """Return the warehouse with the id in the state, which another stack may have renamed, or its project."""
        state = resource.declared
        marked = project_record.find_marked_warehouse(client, resource.id) if state.mark is not None else None
        return marked or project_record.find_marked_project(client, state.project_id, *_list_consents(state))

    @override
    def find_marked_for_deletion(self, client: Client, resource: RecordedResource[WarehouseArgs]) -> list[MarkedObject]:
        """Return the object of `find_marked_in_state`, and the bucket that a purge empties, with current marks."""
        state = resource.declared
        if state.deletion != "purge":
            return super().find_marked_for_deletion(client, resource)
        buckets = [state.own_bucket.with_resolver(self.secret)] if state.own_bucket else []
        marked = project_record.find_live_marked_project(client, state.project_id, *_list_consents(state))
        if state.mark is not None and not marked.mark.names_owner:
            warehouse = warehouses.get(client, resource.id)
            marked = project_record.find_live_shared_warehouse(client, warehouse) if warehouse else marked
        return [marked, *bucket_mark.find_marked_buckets(buckets)]

    @override
    def find_existing(self, client: Client, new: WarehouseArgs) -> tuple[str, ObservedResource[WarehouseArgs]] | None:
        try:
            warehouse = warehouses.find_by_name(client, new.project_id, new.name)
        except (NotFoundError, ForbiddenError):
            if projects.read_name(client, new.project_id) is not None:
                raise
            return None  # the project does not exist yet
        if warehouse is None:
            return None
        live_args = self._observe(client, warehouse, new).declared.model_copy(update={"credential": None})
        credential: dict[str, Any] = warehouse.get("storage-credential-type") or {}
        return warehouses.read_id(warehouse), ObservedResource(live_args, {_KIND: credential.get("credential-type")})

    @override
    def plan_adoption(self, live: ObservedResource[WarehouseArgs], new: WarehouseArgs) -> Adopting:
        """Return what adopting a warehouse changes. A credential of the kind that it has is sent again."""
        adopting = super().plan_adoption(live, new)
        if new.credential is None or live.computed.get(_KIND) != new.credential.type:
            return adopting
        secret = ("credential", "credential_fingerprint")
        changes = [change for change in adopting.changes if change not in secret]
        return Adopting(changes, adopting.problems, ("credential",))

    @override
    def contents(self, client: Client, object_id: str, new: WarehouseArgs) -> str:
        warehouse = warehouses.get(client, object_id)
        if warehouse is not None and warehouse["status"] != "active":
            return "inactive, so its contents cannot be checked"
        return contents.read_warehouse(client, object_id).in_words

    @override
    def make(self, client: Client, new: WarehouseArgs) -> tuple[str, ObservedResource[WarehouseArgs]]:
        self._refuse_begun_purge(client, new)
        self._reactivate_adopted(client, new)
        try:
            warehouse, origin = create_or_find(
                lambda: patiently(
                    lambda: warehouses.create(client, new.project_id, create_request(new, self.secret)),
                    fresh_role=any(new.storage.roles),
                ),
                lambda: warehouses.find_by_name(client, new.project_id, new.name),
            )
        except AlreadyExistsError as taken:
            raise explain_unlisted_holder(client, taken) from None
        with explain_unfinished(self.title(new), origin, adopts=new.adopt):
            live_args = self._observe(client, warehouse, new).declared
            differs = (
                "" if same_place(live_args, new) else f"at {live_args.storage.where}; declared is {new.storage.where}"
            )
            self.require_ours(client, live_args, new, origin, differs, object_id=warehouses.read_id(warehouse))
            existed = origin is not Origin.CREATED
            self._mark(client, warehouses.read_id(warehouse), new)
            return warehouses.read_id(warehouse), self._converge(
                client, warehouse, new, resend=existed, fresh_role=existed
            )

    @override
    def find(self, client: Client, resource: RecordedResource[WarehouseArgs]) -> ObservedResource[WarehouseArgs] | None:
        warehouse = warehouses.get_cached(client, resource.declared.project_id, resource.id)
        if warehouse is None:
            return None
        observed = self._observe(client, warehouse, resource.declared)
        return replace(observed, declared=self._observe_mark(client, resource.id, observed.declared))

    @staticmethod
    def _observe_mark(client: Client, warehouse_id: str, args: WarehouseArgs) -> WarehouseArgs:
        """Return the arguments without the mark if `up` must write it again: it is missing, or permits an adoption.

        The mark of another stack is no drift, which `up` would revert. `up` refuses it instead.
        """
        if args.mark is None:
            return args
        mark = record_roles.read_cached_mark(client, RecordRole(args.project_id, warehouse_id))
        is_consented = mark.compare(Claimant(args.stack, args.record)) is Ownership.CONSENTED
        return args.model_copy(update={"stack": None}) if is_consented or not mark.names_owner else args

    @staticmethod
    def _mark(client: Client, warehouse_id: str, new: WarehouseArgs) -> None:
        if new.mark is not None:
            record_roles.write_mark(client, RecordRole(new.project_id, warehouse_id), new.mark)

    @override
    def change(
        self, client: Client, resource: RecordedResource[WarehouseArgs], new: WarehouseArgs
    ) -> ObservedResource[WarehouseArgs]:
        old = resource.declared
        warehouse = warehouses.get(client, resource.id)
        if warehouse is None:
            raise DeletedOutsideStackError(
                f"warehouse `{old.name}` ({resource.id}) no longer exists at {client.endpoint}. Run `up --refresh`."
            )
        resend = "storage-credential" in warehouse_changes.list_needed_calls(old, new, resend=False)
        fresh = old.storage.roles != new.storage.roles or old.credential != new.credential
        self._mark(client, resource.id, new)
        self._reactivate(client, resource.id, new)
        return self._converge(client, warehouse, new, resend=resend, fresh_role=fresh)

    @override
    def remove(self, client: Client, resource: RecordedResource[WarehouseArgs]) -> None:
        state = resource.declared
        if state.archive is not None:
            self._archive(client, resource)
            return
        self._refuse_unexplained(client, resource)
        self._refuse_handed_over(resource)
        warehouse_removal.remove(client, resource.id, state.name, state.deletion)
        if state.deletion == "purge" and state.own_bucket and (prefix := getattr(state.storage, "key_prefix", None)):
            warehouse_emptying.empty(client, resource.id, state.own_bucket.with_resolver(self.secret), prefix)
        if state.mark is not None and state.deletion != "retain":
            record_roles.delete_mark(client, RecordRole(state.project_id, resource.id))

    def _archive(self, client: Client, resource: RecordedResource[WarehouseArgs]) -> None:
        """Make the warehouse read-only and record when it may be purged. Delete nothing."""
        state, bucket = resource.declared, resource.declared.own_bucket
        key_prefix = getattr(state.storage, "key_prefix", None)
        claimant = Claimant(find_running_stack(), self.run.record_id or find_recorded(resource.outs))
        if state.archive is None or warehouses.get(client, resource.id) is None:
            return
        if bucket is None or not key_prefix or not claimant.stack or not claimant.record:
            raise ArchiveRefusedError(
                f"{self.title(state)} was not archived: expected a bucket of the stack, a key prefix, and a run of a"
                " stack with a tenant's record. Use `deletion: retain`."
            )
        mark = ArchiveMark(
            claimant.stack,
            claimant.record,
            state.name,
            bucket.bucket,
            str(key_prefix).strip("/"),
            state.archive.purge_after_days,
            tuple(state.archive.roles),
            bool(state.is_adopted),
            find_running_backend(),
        )
        resolved_bucket = bucket.with_resolver(self.secret)
        archiving.archive_warehouse(client, state.project_id, resource.id, resolved_bucket, mark)
        days = mark.purge_after_days
        end = f"`lakewright expire` announces its purge for {days} days from now" if days else "it is never purged"
        note(f"{self.title(state)} is archived: its data can be read and not be changed; {end}")

    @staticmethod
    def _refuse_begun_purge(client: Client, new: WarehouseArgs) -> None:
        """Raise if a warehouse at the place is being purged. Warehouses of shared projects are never archived."""
        key_prefix = str(getattr(new.storage, "key_prefix", None) or "").strip("/")
        if new.own_bucket is not None and new.mark is None and key_prefix:
            archiving.refuse_begun_purges(client, new.project_id, [(new.own_bucket.bucket, key_prefix)])

    def _reactivate_adopted(self, client: Client, new: WarehouseArgs) -> None:
        """Reactivate an archived warehouse that this run adopts: the server tries to write before it says it exists."""
        existing = self.find_existing(client, new) if new.adopt else None
        if existing is None:
            return
        warehouse_id, live_args = existing[0], existing[1].declared
        if archiving.find_cached_archive(client, new.project_id, warehouse_id) is None:
            return
        differs = "" if same_place(live_args, new) else f"at {live_args.storage.where}"
        self.require_ours(client, live_args, new, Origin.EXISTED, differs, object_id=warehouse_id)
        self._reactivate(client, warehouse_id, new)

    def _reactivate(self, client: Client, warehouse_id: str, new: WarehouseArgs) -> None:
        bucket = new.own_bucket.with_resolver(self.secret) if new.own_bucket else None
        roles = [arn.rpartition("/")[2] for arn in new.storage.roles if arn]
        if archiving.reactivate(client, new.project_id, warehouse_id, bucket, self.claimant, declared_roles=roles):
            note(f"{self.title(new)} was archived, and is reactivated")

    def _refuse_unexplained(self, client: Client, resource: RecordedResource[WarehouseArgs]) -> None:
        """Raise RemovalRefusedError if a purge of an adopted warehouse would delete foreign objects.

        The tenant's record and the deletion guard check this before a run drops the tables that explain the objects. A
        run with targets, or a run that continues an interrupted `destroy`, has only this check.
        """
        state, key_prefix = resource.declared, getattr(resource.declared.storage, "key_prefix", None)
        if not (state.is_adopted and state.deletion == "purge" and state.own_bucket and key_prefix):
            return
        if resource.id in self.run.explained_warehouses:
            return
        bucket = state.own_bucket.with_resolver(self.secret)
        if problem := unexplained_objects.describe_purge_problem(client, resource.id, state.name, bucket, key_prefix):
            raise RemovalRefusedError(f"nothing was deleted of {self.title(state)}: {problem}.")
        self.run.explained_warehouses.add(resource.id)

    def _refuse_handed_over(self, resource: RecordedResource[WarehouseArgs]) -> None:
        """Raise RemovalRefusedError if a purge would delete tables that a migration gave to another catalog."""
        state, key_prefix = resource.declared, getattr(resource.declared.storage, "key_prefix", None)
        if state.deletion != "purge" or state.own_bucket is None or not key_prefix:
            return
        emptied_location = (state.own_bucket.bucket, str(key_prefix).strip("/"))
        if emptied_location in self.run.unshared_places:
            return
        bucket = state.own_bucket.with_resolver(self.secret)
        if problem := handed_over_files.describe_problem(bucket, emptied_location[1], [resource.id]):
            raise RemovalRefusedError(f"nothing was deleted of {self.title(state)}: {problem}.")
        self.run.unshared_places.add(emptied_location)

    def _converge(
        self,
        client: Client,
        warehouse: warehouses.WarehouseResponse,
        new: WarehouseArgs,
        *,
        resend: bool,
        fresh_role: bool,
    ) -> ObservedResource[WarehouseArgs]:
        """Change the warehouse to match its declaration, with as few calls as possible."""
        live_args = self._observe(client, warehouse, new).declared
        # A changed fingerprint is not a difference on the server: `resend` decides whether to send the credential.
        calls = warehouse_changes.list_needed_calls(live_args, new, resend=resend)
        if calls:
            warehouse_id = warehouses.read_id(warehouse)
            sent_args = add_live_default_version(new, warehouse)
            Changes(client, warehouse_id, sent_args, self.secret, fresh_role).make(calls, active=live_args.active)
            warehouse = warehouses.get(client, warehouse_id) or warehouse
        return self._observe(client, warehouse, self._with_current_fingerprint(new))

    def _with_current_fingerprint(self, new: WarehouseArgs) -> WarehouseArgs:
        if not references(new.credential):
            return new
        fingerprint = self._fingerprint(new, new.credential_fingerprint)
        return new.model_copy(update={"credential_fingerprint": fingerprint})

    def _observe(
        self, client: Client, response: warehouses.WarehouseResponse, args: WarehouseArgs
    ) -> ObservedResource[WarehouseArgs]:
        if (kind := response["storage-profile"]["type"]) not in PROFILES:
            raise NotOwnedError(
                f"{self.title(args)} is on storage of type `{kind}`, which is not supported;"
                f" expected one of: {', '.join(PROFILES)}"
            )
        # Lists do not contain managed access. It is read with a separate call, only if it is declared.
        access = None
        if args.managed_access is not None:
            access = managed.read_warehouse_access(client, warehouses.read_id(response))
        is_reported = client.server().reports_credential_kind
        return ObservedResource(observe(response, args, reports_credential_kind=is_reported, managed_access=access))


def _list_consents(args: WarehouseArgs) -> list[Consent]:
    return project_record.list_warehouse_consents(args.project_id, args.name)


class Warehouse(Resource, module="lakekeeper", name="Warehouse"):
    """A Lakekeeper warehouse on S3, ADLS or GCS.

    `storage` takes the fields of `S3Profile`, `AdlsProfile` or `GcsProfile`, selected by its `type` (default: `s3`).
    `credential` takes the fields of the class that its `type` selects. `delete_profile` is `{"type": "hard"}` or
    `{"type": "soft", "expiration_seconds": N}`. `managed_access` needs a server with OpenFGA. `deletion` decides what
    happens to tables when the warehouse is destroyed. `own_bucket` takes the fields of `OwnBucket`, and `archive` takes
    the fields of `WarehouseArchive`.
    """

    project_id: pulumi.Output[str]
    name: pulumi.Output[str]
    storage: pulumi.Output[dict[str, Any]]
    delete_profile: pulumi.Output[dict[str, Any]]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        project_id: pulumi.Input[str],
        name: pulumi.Input[str],
        storage: pulumi.Input[Mapping[str, Any]],
        credential: pulumi.Input[Mapping[str, Any]] | None = None,
        delete_profile: pulumi.Input[Mapping[str, Any]] | None = None,
        protected: pulumi.Input[bool] | None = None,
        active: pulumi.Input[bool] | None = None,
        allowed_format_versions: pulumi.Input[list[int]] | None = None,
        default_format_version: pulumi.Input[int] | None = None,
        managed_access: pulumi.Input[bool] | None = None,
        deletion: pulumi.Input[Deletion] | None = None,
        own_bucket: pulumi.Input[Mapping[str, Any]] | None = None,
        is_adopted: pulumi.Input[bool | None] = None,
        record: pulumi.Input[str] | None = None,
        archive: pulumi.Input[Mapping[str, Any]] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            project_id: Project that the warehouse belongs to.
            name: Name of the warehouse, unique in its project, ignoring case.
            storage: Location of the data: the fields of `S3Profile`, `AdlsProfile` or `GcsProfile`, selected by `type`.
            credential: Credential that the server uses for the storage; secrets by reference. None: no credential.
            delete_profile: Whether dropped tables can be restored, and for how long.
            protected: Whether the server refuses to delete the warehouse.
            active: Whether the warehouse can be used.
            allowed_format_versions: Iceberg format versions that tables may have. If omitted, the server keeps its
                value.
            default_format_version: Format version of tables that do not set one; must be an allowed version.
            managed_access: Whether only principals with `manage_grants` can grant privileges in it. Owners of objects
                then cannot.
            deletion: Effect on data when the resource is deleted: `protect` refuses while there is data, `retain` keeps
                it, `purge` deletes it.
            own_bucket: The bucket, if the stack created it: `deletion: purge` then also deletes all other objects and
                old versions under the warehouse's key prefix.
            is_adopted: Whether the stack adopted it once. Foreign objects may be under its key prefix: objects that
                none of its tables explains stop a purge.
            record: Id of the tenant's record, for the warehouse's mark. Only a warehouse of a shared project has a mark
                of its own.
            archive: Archive the warehouse when the resource is deleted: make it read-only, and record when it may be
                purged.
            adopt: Take over an existing warehouse of this name at the declared location.
            opts: Options of the resource.
        """
        props = drop_none(
            server=server,
            project_id=project_id,
            name=name,
            storage=storage,
            credential=credential,
            delete_profile=delete_profile,
            protected=protected,
            active=active,
            allowed_format_versions=allowed_format_versions,
            default_format_version=default_format_version,
            managed_access=managed_access,
            deletion=deletion,
            own_bucket=own_bucket,
            is_adopted=is_adopted,
            record=record,
            archive=archive,
            adopt=adopt or None,
        )
        super().__init__(WarehouseProvider(), resource_name, props, delete_first(opts))

    @property
    def warehouse_id(self) -> pulumi.Output[str]:
        """Id of the warehouse on the server.

        This is the id of the resource and not a separate output: a preview of an update knows only the id.
        """
        return self.id
