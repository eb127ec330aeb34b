"""Warehouse: a name for tables, on a part of a bucket."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self, TypeVar

import pulumi
from pulumi.dynamic import CheckResult, Resource
from pydantic import AfterValidator, model_validator

from lakewright import credentials
from lakewright.lakekeeper import difference, preflight, settings, warehouse_removal
from lakewright.lakekeeper.api import warehouses
from lakewright.lakekeeper.api.client import Client
from lakewright.lakekeeper.api.errors import Refused
from lakewright.lakekeeper.api.retry import until
from lakewright.lakekeeper.declared import CreateOnly, Deletable, Replace, Rotate, ServerKeeps, Update, has_unknown
from lakewright.lakekeeper.difference import Change
from lakewright.lakekeeper.errors import DeletedBehindBack, NotOurs
from lakewright.lakekeeper.notices import warn
from lakewright.lakekeeper.options import ServerInput, delete_first, given
from lakewright.lakekeeper.provider import Found, Known, LakekeeperProvider, created_or_there
from lakewright.lakekeeper.storage import (
    Credential,
    DeleteProfile,
    HardDelete,
    S3Profile,
    credential_request,
    delete_profile_observed,
    delete_profile_request,
    profile_observed,
    profile_request,
    references,
)
from lakewright.types import Deletion, FormatVersion, ProjectId, WarehouseName

T = TypeVar("T")

NOT_YET = frozenset({"ShortTermCredentialError", "PermissionDenied"})
"""How a server says that a role cannot be assumed, or not be used, which is passing while the role is new."""

NEEDS_ACTIVE = frozenset({"rename", "storage", "storage-credential", "delete-profile"})
"""Changes that the server refuses, as if the warehouse were missing, while it is inactive."""


def _sorted(versions: list[int]) -> list[int]:
    if not versions:
        raise ValueError("at least one format version must be allowed")
    return sorted(set(versions))


class WarehouseArgs(Deletable):
    """What is declared of a warehouse."""

    project_id: Annotated[ProjectId, Replace()]
    name: Annotated[WarehouseName, Update(via="rename")]
    storage: Annotated[S3Profile, Update(via="storage")]
    credential: Annotated[Credential | None, Rotate(via="storage-credential")] = None
    credential_fingerprint: Annotated[str | None, Rotate(via="storage-credential"), ServerKeeps()] = None
    delete_profile: Annotated[DeleteProfile, Update(via="delete-profile")] = HardDelete()
    protected: Annotated[bool, Update(via="protection")] = False
    active: Annotated[bool, Update(via="status")] = True
    allowed_format_versions: Annotated[
        list[FormatVersion] | None, AfterValidator(_sorted), Update(via="format-version-policy"), ServerKeeps()
    ] = None
    default_format_version: Annotated[FormatVersion | None, Update(via="format-version-policy"), ServerKeeps()] = None
    adopt: Annotated[bool, CreateOnly()] = False

    @model_validator(mode="after")
    def _default_is_allowed(self) -> Self:
        allowed, default = self.allowed_format_versions, self.default_format_version
        if default is None or has_unknown([allowed, default]):
            return self
        if allowed is None:
            raise ValueError("`default_format_version` goes with `allowed_format_versions`")
        if default not in allowed:
            raise ValueError(f"`default_format_version` {default} is not among `allowed_format_versions`")
        return self


def create_request(new: WarehouseArgs, secret: Callable[[str], str]) -> dict[str, Any]:
    """A declaration as it is sent to create."""
    body: dict[str, Any] = {
        "warehouse-name": new.name,
        "project-id": new.project_id,
        "storage-profile": profile_request(new.storage),
        "delete-profile": delete_profile_request(new.delete_profile),
    }
    if new.credential:
        body["storage-credential"] = credential_request(new.credential, secret)
    return body | (_format_policy(new) if new.allowed_format_versions else {})


def _format_policy(new: WarehouseArgs) -> dict[str, Any]:
    policy: dict[str, Any] = {"allowed-format-versions": new.allowed_format_versions}
    return policy | ({"default-format-version": new.default_format_version} if new.default_format_version else {})


def observed(found: warehouses.Found, declared: WarehouseArgs, *, credential_kind_told: bool) -> Found[WarehouseArgs]:
    """What the server answers, in the words of a declaration.

    Of a credential it tells the kind at most: another kind, or none, shows as a credential that is missing.
    """
    told: dict[str, Any] = found.get("storage-credential-type") or {}
    kind = told.get("credential-type")
    intact = not credential_kind_told or kind == (declared.credential.type if declared.credential else None)
    versions, default = found.get("allowed-format-versions"), found.get("default-format-version")
    now = declared.model_copy(
        update={
            "project_id": found["project-id"],
            "name": found["name"],
            "storage": profile_observed(found["storage-profile"], declared.storage),
            "credential": declared.credential if intact else None,
            "credential_fingerprint": declared.credential_fingerprint if intact else None,
            "delete_profile": delete_profile_observed(found["delete-profile"]),
            "protected": bool(found.get("protected")),
            "active": found["status"] == "active",
            "allowed_format_versions": versions if declared.allowed_format_versions else None,
            "default_format_version": default if declared.default_format_version else None,
        }
    )
    return Found(now)


def same_place(found: warehouses.Found, declared: WarehouseArgs) -> bool:
    """Whether project, bucket, key prefix and region are the declared ones: what a killed create leaves."""
    there = profile_observed(found["storage-profile"], declared.storage)
    return found["project-id"] == declared.project_id and all(
        getattr(there, name) == getattr(declared.storage, name) for name in ("type", "bucket", "key_prefix", "region")
    )


class WarehouseProvider(LakekeeperProvider[WarehouseArgs]):
    """Creates, reads, changes and deletes warehouses."""

    args = WarehouseArgs

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        result = super().check(_olds, news)
        if preflight.wanted() and not result.failures:
            new, old = self.args.from_state(result.inputs), self.args.from_state(_olds) if "name" in _olds else None
            preflight.validate(self.client, new, old, self.secret, create_request)
        return result

    def checked(self, declared: WarehouseArgs, olds: dict[str, Any]) -> WarehouseArgs:
        recorded = olds.get("credential_fingerprint")
        return declared.model_copy(update={"credential_fingerprint": self._fingerprint(declared.credential, recorded)})

    def _fingerprint(self, credential: object, recorded: str | None) -> str | None:
        """Of the credential's secrets as they are now; the recorded one if they are the same, or cannot be read."""
        names = references(credential)
        if not names:
            return None
        try:
            values = [self.secret(name) for name in names]
        except credentials.UnresolvedCredential as unresolved:
            warn(f"{unresolved}; whether the credential has changed cannot be told")
            return recorded
        return recorded if recorded and credentials.still_matches(values, recorded) else credentials.fingerprint(values)

    def replaces(self, change: Change, new: WarehouseArgs, client: Callable[[], Client]) -> bool:
        if change.path == "storage.region" and change.known and new.storage.endpoint:
            return not client().server().moves_region
        return super().replaces(change, new, client)

    def before_replacement(
        self, client: Client, known: Known[WarehouseArgs], new: WarehouseArgs, changes: list[Change]
    ) -> None:
        warehouse_removal.refuse_replacement(client, known.id, known.declared, new, changes)

    def make(self, client: Client, new: WarehouseArgs) -> tuple[str, Found[WarehouseArgs]]:
        self._require(client, new)
        found, ours = created_or_there(
            lambda: self._patiently(
                any(new.storage.roles),
                lambda: warehouses.create(client, new.project_id, create_request(new, self.secret)),
            ),
            lambda: warehouses.named(client, new.project_id, new.name),
        )
        if not ours and not same_place(found, new):
            self._refuse_or_adopt(client, found, new)
        return warehouses.id_of(found), self._converge(client, found, new, resend=not ours, fresh_role=not ours)

    def _refuse_or_adopt(self, client: Client, found: warehouses.Found, new: WarehouseArgs) -> None:
        there = self._observed(client, found, new).declared
        immutable = [change for change in difference.between(there, new) if self.replaces(change, new, lambda: client)]
        if new.adopt and not immutable:
            return
        way_out = (
            "Declare where it is to take it over: the server cannot move it"
            if new.adopt
            else "Choose another name, or take it over with `adopt=True`"
        )
        raise NotOurs(
            f"warehouse `{new.name}` exists already in project {new.project_id} at {client.endpoint}, at"
            f" {there.storage.base} in {there.storage.region}; declared is {new.storage.base} in"
            f" {new.storage.region}. {way_out}."
        )

    def find(self, client: Client, known: Known[WarehouseArgs]) -> Found[WarehouseArgs] | None:
        found = warehouses.look(client, known.declared.project_id, known.id)
        return self._observed(client, found, known.declared) if found else None

    def change(self, client: Client, known: Known[WarehouseArgs], new: WarehouseArgs) -> Found[WarehouseArgs]:
        old = known.declared
        self._require(client, new)
        found = warehouses.get(client, known.id)
        if found is None:
            raise DeletedBehindBack(
                f"warehouse `{old.name}` ({known.id}) is not at {client.endpoint} any more. Run `up --refresh`."
            )
        wanted = difference.via(difference.between(old, new))
        fresh = old.storage.roles != new.storage.roles or old.credential != new.credential
        return self._converge(client, found, new, resend="storage-credential" in wanted, fresh_role=fresh)

    def remove(self, client: Client, known: Known[WarehouseArgs]) -> None:
        warehouse_removal.remove(client, known.id, known.declared.name, known.declared.deletion)

    def _converge(
        self, client: Client, found: warehouses.Found, new: WarehouseArgs, *, resend: bool, fresh_role: bool
    ) -> Found[WarehouseArgs]:
        """Bring what is there to what is declared, by as few calls as that takes."""
        warehouse_id = warehouses.id_of(found)
        there = self._observed(client, found, new).declared
        # What the declaration's own fingerprint adds is no difference to the server: `resend` says when to send it.
        changes = difference.between(there, new)
        calls = difference.via(changes)
        # A region that moves in place counts as a replacement elsewhere.
        calls |= {"storage"} if any(change.path.startswith("storage.") for change in changes) else set[str]()
        calls |= {"storage-credential"} if resend else set[str]()
        if calls & NEEDS_ACTIVE and not there.active:
            warehouses.activate(client, warehouse_id)
        if "rename" in calls:
            self._rename(client, warehouse_id, new)
        if "storage" in calls or ("storage-credential" in calls and new.credential is None):
            self._send_storage(client, warehouse_id, new, fresh_role=fresh_role)
        elif "storage-credential" in calls and new.credential:
            sent = credential_request(new.credential, self.secret)
            self._patiently(
                fresh_role,
                lambda: warehouses.change_storage(
                    client, warehouse_id, "storage-credential", {"new-storage-credential": sent}
                ),
            )
        if "delete-profile" in calls:
            body = {"delete-profile": delete_profile_request(new.delete_profile)}
            warehouses.change(client, warehouse_id, "delete-profile", body)
        if "format-version-policy" in calls:
            warehouses.change(client, warehouse_id, "format-version-policy", _format_policy(new))
        if "protection" in calls:
            warehouses.change(client, warehouse_id, "protection", {"protected": new.protected})
        if not new.active and (there.active or calls & NEEDS_ACTIVE):
            warehouses.deactivate(client, warehouse_id)
        if new.active and not there.active and not calls & NEEDS_ACTIVE:
            warehouses.activate(client, warehouse_id)
        after = (warehouses.get(client, warehouse_id) or found) if calls else found
        return self._observed(client, after, self._with_current_fingerprint(new))

    def _with_current_fingerprint(self, new: WarehouseArgs) -> WarehouseArgs:
        if not references(new.credential):
            return new
        fingerprint = self._fingerprint(new.credential, new.credential_fingerprint)
        return new.model_copy(update={"credential_fingerprint": fingerprint})

    def _send_storage(self, client: Client, warehouse_id: str, new: WarehouseArgs, *, fresh_role: bool) -> None:
        body: dict[str, Any] = {"storage-profile": profile_request(new.storage)}
        if new.credential:  # the server deletes a credential that does not come along
            body["storage-credential"] = credential_request(new.credential, self.secret)
        self._patiently(fresh_role, lambda: warehouses.change_storage(client, warehouse_id, "storage", body))

    def _rename(self, client: Client, warehouse_id: str, new: WarehouseArgs) -> None:
        taken = warehouses.named(client, new.project_id, new.name)
        if taken and warehouses.id_of(taken) != warehouse_id:
            raise NotOurs(
                f"warehouse {warehouse_id} at {client.endpoint} cannot be named `{new.name}`: warehouse"
                f" {warehouses.id_of(taken)} of project {new.project_id} has that name. Choose another."
            )
        warehouses.change(client, warehouse_id, "rename", {"new-name": new.name})

    def _patiently(self, fresh_role: bool, call: Callable[[], T]) -> T:
        if not fresh_role:
            return call()
        return until(
            call,
            lambda error: isinstance(error, Refused) and error.kind in NOT_YET,
            seconds=settings.role_propagation(),
            every=1,
        )

    def _observed(self, client: Client, found: warehouses.Found, declared: WarehouseArgs) -> Found[WarehouseArgs]:
        return observed(found, declared, credential_kind_told=client.server().reports_credential_kind)

    def _require(self, client: Client, new: WarehouseArgs) -> None:
        client.server().require(
            {
                "storage.sts_endpoint": new.storage.sts_endpoint,
                "storage.storage_layout": new.storage.storage_layout,
                "allowed_format_versions": new.allowed_format_versions,
                "default_format_version": new.default_format_version,
            }
        )


class Warehouse(Resource, module="lakekeeper", name="Warehouse"):
    """A Lakekeeper warehouse on S3.

    `storage` takes the fields of `S3Profile`, `credential` those of `AccessKey` or
    `SystemIdentity`, `delete_profile` is `{"type": "hard"}` or `{"type": "soft", "expiration_seconds": N}`.
    `deletion` says what happens to tables when the warehouse is destroyed.
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
        deletion: pulumi.Input[Deletion] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = given(
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
            deletion=deletion,
            adopt=adopt or None,
        )
        super().__init__(WarehouseProvider(), resource_name, props, delete_first(opts))

    @property
    def warehouse_id(self) -> pulumi.Output[str]:
        """Id of the warehouse on the server.

        The resource's own id, and no output beside it, since a preview of an update knows only the former.
        """
        return self.id
