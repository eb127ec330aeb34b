"""DeletionGuard: depends on all resources of a tenant, so it is deleted first, and refuses while there is data."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, cast

import pulumi
from pulumi.dynamic import DiffResult, Resource
from typing_extensions import override

from lakewright.lakekeeper.api.catalog import contents
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, NotFoundError, ProtectedError
from lakewright.lakekeeper.api.management import project_record, projects, roles, warehouses
from lakewright.lakekeeper.buckets import bucket_mark, handed_over_files, own_bucket, unexplained_objects
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.preflight import surroundings
from lakewright.lakekeeper.preflight import warehouse_contents as warehouse_removal
from lakewright.lakekeeper.provider import adoption, server_identity
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.errors import CannotCountError, HoldsTablesError, NotOwnedError, StillHeldError
from lakewright.lakekeeper.provider.inputs import Deletable, StateOnly
from lakewright.lakekeeper.provider.options import ServerInput, drop_none, not_imported
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.lakekeeper.tenant import protected_removals
from lakewright.names.types import Deletion
from lakewright.ownership.mark import Claimant


class GuardedBucket(OwnBucket):
    """A bucket that is deleted with the stack."""

    emptied: list[str] = []
    """Key prefixes that are emptied with their warehouses. Objects outside them block the deletion."""
    kept: list[str] = []
    """Warehouses that left data in the bucket by `deletion: retain`. If any exist, the bucket is kept."""
    log_bucket: str | None = None
    """Bucket for its logs that is deleted with its contents. It must belong to the stack as well."""


class DeletionGuardArgs(Deletable):
    """The guarded warehouses, and other objects that may contain objects outside the stack."""

    warehouses: Annotated[dict[str, str], StateOnly()]
    """Ids of the warehouses to guard, by name."""
    namespaces: Annotated[dict[str, list[str]] | None, StateOnly()] = None
    """The stack's own namespaces by warehouse name. Other namespaces of these warehouses block the deletion."""
    projects: Annotated[dict[str, list[str]] | None, StateOnly()] = None
    """The stack's own warehouse ids by project id. Other warehouses of these projects block the deletion."""
    roles: Annotated[dict[str, list[str]] | None, StateOnly()] = None
    """Names of the stack's own roles by project id. Other roles of these projects block the deletion."""
    buckets: Annotated[list[GuardedBucket] | None, StateOnly()] = None
    """Buckets that are deleted with the stack."""
    declared: Annotated[dict[str, str] | None, StateOnly()] = None
    """Ids of all warehouses of the stack, by name. A guarded warehouse that is removed from them must be empty."""
    adopted: Annotated[dict[str, str] | None, StateOnly()] = None
    """Key prefixes of adopted warehouses with `deletion: purge`, by name. Unexplained objects block their deletion."""
    record: Annotated[str | None, StateOnly()] = None
    """Id of the tenant's record. A project or bucket whose mark has another id belongs to another stack."""
    purged_warehouses: Annotated[list[str] | None, StateOnly()] = None
    """Names of the warehouses with `deletion: purge`. A protected object in them blocks the deletion."""
    purged_tables: Annotated[dict[str, list[list[str]]] | None, StateOnly()] = None
    """Tables with `deletion: purge` in warehouses with `retain`, by warehouse name: the levels of the namespace and the
    name of the table. Protected tables block the deletion."""


class DeletionGuardProvider(LakekeeperProvider[DeletionGuardArgs]):
    """Provider of the guard. It has no object on the server, and checks for data when it is deleted."""

    args = DeletionGuardArgs

    @override
    def complete_args(self, args: DeletionGuardArgs, olds: dict[str, Any]) -> DeletionGuardArgs:
        """Return the declaration. The guard depends on all other resources, so this is the last check of a run."""
        adoption.warn_of_spent_adopt(self.run.own_objects)
        adoption.note_summary(self.run.own_objects)
        return super().complete_args(args, olds)

    @override
    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Return the changes. Refuse to remove a guarded warehouse with contents, in previews too."""
        result = super().diff(_id, _olds, _news)
        declared_warehouses, old = _news.get("declared"), self.args.from_state(_olds)
        if old.deletion == "protect" and isinstance(declared_warehouses, dict):
            leaving = _list_leaving(old, cast(dict[str, Any], declared_warehouses))
            if leaving:
                self._refuse_removal(self.connect_as_recorded(old.server), old, leaving)
        return result

    def _refuse_removal(self, client: Client, old: DeletionGuardArgs, leaving: list[str]) -> None:
        tables, obstacles, uncounted = _inside(client, old, leaving)
        if tables or obstacles or uncounted:
            raise (HoldsTablesError if tables else StillHeldError if obstacles else CannotCountError)(
                f"warehouse {', '.join(f'`{name}`' for name in leaving)} is no longer declared, and its `deletion`"
                f" is `protect` in the state: {'; '.join([*tables, *obstacles, *uncounted])}. To rename it, use"
                " `renamed_from`; otherwise restore it, or set its `deletion` to `retain` or `purge` and run `up`"
                " before removing it."
            )

    @override
    def make(self, client: Client, new: DeletionGuardArgs) -> tuple[str, ObservedResource[DeletionGuardArgs]]:
        return "guard", ObservedResource(new)

    @override
    def find(
        self, client: Client, resource: RecordedResource[DeletionGuardArgs]
    ) -> ObservedResource[DeletionGuardArgs] | None:
        """Return the guard of the state. Raise MovedServerError if its warehouses may be on another server."""
        state = resource.declared
        if state.deletion == "protect" and not server_identity.is_proven(client, resource.outs):
            for name, warehouse_id in sorted(state.warehouses.items()):
                if warehouses.get(client, warehouse_id) is None:
                    raise server_identity.make_unproven_error(
                        client, f"warehouse `{name}` ({warehouse_id}) at {client.endpoint}"
                    )
        return ObservedResource(state)

    @override
    def change(
        self, client: Client, resource: RecordedResource[DeletionGuardArgs], new: DeletionGuardArgs
    ) -> ObservedResource[DeletionGuardArgs]:
        return ObservedResource(new)

    @override
    def remove(self, client: Client, resource: RecordedResource[DeletionGuardArgs]) -> None:
        state = resource.declared
        self._refuse_foreign_objects(client, state)
        if state.deletion != "protect":
            self._refuse_handed_over(state)
            return
        if state.roles is not None and state.buckets is not None and state.declared is None:
            raise StillHeldError(
                "nothing was destroyed: the state is of an earlier version, which does not record the allowed contents"
                " of buckets. Run `up` first, without other changes, and then `destroy`."
            )
        tables, obstacles, uncounted = _inside(client, state, sorted(state.warehouses))
        for project_id, ours in sorted((state.projects or {}).items()):
            own_roles = None if state.roles is None else state.roles.get(project_id)
            obstacles += _strangers(client, project_id, ours, own_roles)
        for bucket in [bucket.with_resolver(self.secret) for bucket in state.buckets or []]:
            with _collect_uncounted(uncounted):
                if not bucket.kept and (content := own_bucket.describe_contents(bucket, besides=bucket.emptied)):
                    outside = " outside the key prefixes of warehouses with `deletion: purge`" if bucket.emptied else ""
                    obstacles.append(f"{bucket.where} holds {content}{outside}")
            if not bucket.kept:
                obstacles += _neighbours(client, bucket, (state.declared or {}).values())
            with _collect_uncounted(uncounted):
                obstacles += self._find_unexplained(client, bucket, state)
                obstacles += self._find_handed_over(bucket, state)
        protected = protected_removals.find_at_destruction(client, state, uncounted)
        if tables or obstacles:
            contents_text = "; ".join([*tables, *obstacles, *protected, *uncounted])
            if not state.warehouses:
                raise StillHeldError(f"nothing was destroyed: {contents_text}. Remove that, and run `destroy` again.")
            raise (HoldsTablesError if tables else StillHeldError)(
                f"nothing was destroyed, because `deletion` is `protect`: {contents_text}."
                " Remove that, or set `deletion` to `purge` (which removes it) or `retain` (which keeps it) and run"
                " `up` before destroying."
            )
        if protected:
            raise ProtectedError(
                f"nothing was destroyed, because protected objects are never deleted, also under `deletion: purge`:"
                f" {'; '.join([*protected, *uncounted])}."
            )
        if uncounted:
            raise CannotCountError(f"nothing was destroyed: {'; '.join(uncounted)}")

    def _refuse_foreign_objects(self, client: Client, state: DeletionGuardArgs) -> None:
        """Raise NotOwnedError if another stack owns a project or bucket of this stack. Called before any deletion."""
        self.run.record_id = state.record or self.run.record_id
        claimant = self.claimant
        if claimant == Claimant():
            return
        project_ids: set[str] = {*(state.projects or {}), *(state.roles or {})}
        buckets = [bucket.with_resolver(self.secret) for bucket in state.buckets or []]
        marked_objects = [project_record.find_marked_project(client, project_id) for project_id in sorted(project_ids)]
        if not project_ids:
            warehouse_ids = sorted((state.declared or {}).values())
            marked_warehouses = [project_record.find_marked_warehouse(client, own_id) for own_id in warehouse_ids]
            marked_objects += [marked for marked in marked_warehouses if marked]
        marked_objects += bucket_mark.find_marked_buckets(buckets)
        marked_objects += bucket_mark.find_marked_logs([(bucket, bucket.log_bucket) for bucket in buckets])
        problems = [problem for marked in marked_objects if (problem := marked.find_deletion_problem(claimant))]
        if problems:
            raise NotOwnedError(" ".join(problems))

    def _find_unexplained(self, client: Client, bucket: GuardedBucket, state: DeletionGuardArgs) -> list[str]:
        """Describe foreign objects under the key prefixes of adopted warehouses, which a purge would delete."""
        problems: list[str] = []
        for name, key_prefix in sorted((state.adopted or {}).items()):
            warehouse_id = (state.declared or {}).get(name)
            if key_prefix not in bucket.emptied or not warehouse_id:
                continue
            problem = unexplained_objects.describe_problem(client, warehouse_id, name, bucket, key_prefix)
            if problem:
                problems.append(problem)
            else:
                self.run.explained_warehouses.add(warehouse_id)
        return problems

    def _refuse_handed_over(self, state: DeletionGuardArgs) -> None:
        """Raise StillHeldError before the first deletion if a purge would delete tables of another catalog."""
        buckets = [bucket.with_resolver(self.secret) for bucket in state.buckets or []]
        if problems := [problem for bucket in buckets for problem in self._find_handed_over(bucket, state)]:
            raise StillHeldError(f"nothing was destroyed: {'; '.join(problems)}.")

    def _find_handed_over(self, bucket: GuardedBucket, state: DeletionGuardArgs) -> list[str]:
        """Describe tables under key prefixes to empty that a migration gave to another catalog."""
        problems: list[str] = []
        for key_prefix in bucket.emptied:
            problem = handed_over_files.describe_problem(bucket, key_prefix, (state.declared or {}).values())
            if problem:
                problems.append(problem)
            else:
                self.run.unshared_places.add((bucket.bucket, key_prefix))
        return problems


def _inside(client: Client, state: DeletionGuardArgs, names: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the contents of warehouses: tables, other blocking objects, and errors of counting."""
    tables: list[str] = []
    obstacles: list[str] = []
    uncounted: list[str] = []
    for name in names:
        warehouse_id = state.warehouses[name]
        own_namespaces = None if state.namespaces is None else state.namespaces.get(name)
        with _collect_uncounted(uncounted):
            if tabulars := warehouse_removal.list_tabulars(client, warehouse_id, name):
                tables.append(f"at {client.endpoint} warehouse `{name}` holds {contents.describe(tabulars)}")
            elif own_namespaces is not None:
                obstacles += warehouse_removal.list_obstacles(client, warehouse_id, name, own_namespaces)
    return tables, obstacles, uncounted


def _list_leaving(old: DeletionGuardArgs, declared: dict[str, Any]) -> list[str]:
    """Return the guarded warehouses that the stack no longer declares under any name."""
    declared_ids = {warehouse_id for warehouse_id in declared.values() if isinstance(warehouse_id, str)}
    return sorted(
        name
        for name, warehouse_id in old.warehouses.items()
        if name not in declared and warehouse_id not in declared_ids
    )


def _neighbours(client: Client, bucket: GuardedBucket, ours: Iterable[str]) -> list[str]:
    """Describe other warehouses under the key prefixes to empty."""
    if not bucket.emptied:
        return []
    around = surroundings.look_around(client)
    warehouse_ids = [*ours]
    return [
        *{
            neighbour.id: f"{bucket.where} has {neighbour} under a key prefix of a warehouse with `deletion: purge`"
            for prefix in bucket.emptied
            for neighbour in around.find_overlapping(bucket, prefix, warehouse_ids)
        }.values()
    ]


@contextmanager
def _collect_uncounted(uncounted: list[str]) -> Generator[None]:
    """Collect errors of counting, to report them together with other problems."""
    try:
        yield
    except CannotCountError as error:
        uncounted.append(str(error))


def _strangers(client: Client, project_id: str, ours: list[str], our_roles: list[str] | None) -> list[str]:
    """Describe objects of a project outside the stack, which block its deletion; none if it does not exist."""
    try:
        objects = {
            "warehouses": [
                warehouse
                for warehouse in warehouses.list_all(client, project_id)
                if warehouses.read_id(warehouse) not in ours
            ]
        }
        if our_roles is not None:
            own_names = {name.casefold() for name in our_roles}
            objects["roles"] = [
                role for role in roles.list_all(client, project_id) if _name(role).casefold() not in own_names
            ]
    except (NotFoundError, ForbiddenError):
        if projects.read_name(client, project_id) is not None:
            raise
        return []
    return [
        f"at {client.endpoint} project {project_id} holds {kind} that the stack does not declare"
        f" (delete them first): {', '.join(sorted(map(_name, strangers)))}"
        for kind, strangers in objects.items()
        if strangers
    ]


def _name(document: dict[str, Any]) -> str:
    return str(document["name"])


class DeletionGuard(Resource, module="lakekeeper", name="DeletionGuard"):
    """Guards warehouses against destruction. Set `depends_on` to all resources that must be kept when it refuses.

    `buckets` takes the fields of `GuardedBucket`. With `declared`, it also refuses an `up` or a preview that removes a
    guarded warehouse with contents from the program.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        warehouses: pulumi.Input[Mapping[str, pulumi.Input[str]]],
        namespaces: pulumi.Input[Mapping[str, Sequence[str]]] | None = None,
        projects: pulumi.Input[Mapping[str, Sequence[pulumi.Input[str]]]] | None = None,
        roles: pulumi.Input[Mapping[str, Sequence[str]]] | None = None,
        buckets: pulumi.Input[Sequence[Mapping[str, Any]]] | None = None,
        declared: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        adopted: pulumi.Input[Mapping[str, str]] | None = None,
        record: pulumi.Input[str] | None = None,
        purged_warehouses: pulumi.Input[Sequence[str]] | None = None,
        purged_tables: pulumi.Input[Mapping[str, Sequence[Sequence[str]]]] | None = None,
        deletion: pulumi.Input[Deletion] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            warehouses: Ids of the warehouses to guard, by name.
            namespaces: The stack's own namespaces by warehouse name. Other namespaces of these warehouses block the
                deletion.
            projects: The stack's own warehouse ids by project id. Other warehouses of these projects block the
                deletion.
            roles: Names of the stack's own roles by project id. Other roles of these projects block the deletion.
            buckets: Buckets that are deleted with the stack.
            declared: Ids of all warehouses of the stack, by name. A guarded warehouse that is removed from them must be
                empty.
            adopted: Key prefixes of adopted warehouses with `deletion: purge`, by name. Unexplained objects block their
                deletion.
            record: Id of the tenant's record. A project or bucket whose mark has another id belongs to another stack.
            purged_warehouses: Names of the warehouses with `deletion: purge`. A protected object in them blocks the
                deletion.
            purged_tables: Tables with `deletion: purge` in warehouses with `retain`, by warehouse name: the levels of
                the namespace and the name of the table. Protected tables block the deletion.
            deletion: Effect on data when the resource is deleted: `protect` refuses while there is data, `retain` keeps
                it, `purge` deletes it.
            opts: Options of the resource.
        """
        props = drop_none(
            server=server,
            warehouses=warehouses,
            namespaces=namespaces,
            projects=projects,
            roles=roles,
            buckets=buckets,
            declared=declared,
            adopted=adopted,
            record=record,
            purged_warehouses=purged_warehouses,
            purged_tables=purged_tables,
            deletion=deletion,
        )
        super().__init__(DeletionGuardProvider(), resource_name, props, not_imported(opts))
