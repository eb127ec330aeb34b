"""DeletionGuard: depends on all else of a tenant, is therefore deleted first, and refuses while there is data."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, cast

import pulumi
from pulumi.dynamic import DiffResult, Resource
from typing_extensions import override

from lakewright.lakekeeper.api.catalog import contents
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, NotFoundError
from lakewright.lakekeeper.api.management import projects, roles, warehouses
from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.preflight import surroundings
from lakewright.lakekeeper.preflight import warehouse_contents as warehouse_removal
from lakewright.lakekeeper.provider import adoption, server_identity
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.errors import CannotCountError, HoldsTablesError, StillHeldError
from lakewright.lakekeeper.provider.inputs import Deletable, StateOnly
from lakewright.lakekeeper.provider.options import ServerInput, given, not_imported
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.names.types import Deletion


class GuardedBucket(OwnBucket):
    """A bucket that goes with the stack."""

    emptied: list[str] = []
    """Key prefixes that are emptied with their warehouses. What is elsewhere in the bucket stands in the way."""
    kept: list[str] = []
    """Warehouses that left data in the bucket by `deletion: retain`, which is why it stays whatever it holds."""


class DeletionGuardArgs(Deletable):
    """What is guarded: warehouse ids by warehouse name, and what else may hold something that is not the stack's."""

    warehouses: Annotated[dict[str, str], StateOnly()]
    """Ids of the warehouses to guard, by name."""
    namespaces: Annotated[dict[str, list[str]] | None, StateOnly()] = None
    """The stack's own namespaces by warehouse name; of a warehouse that is named here, others stand in the way."""
    projects: Annotated[dict[str, list[str]] | None, StateOnly()] = None
    """The stack's own warehouse ids by id of a project that goes with them; others in it stand in the way."""
    roles: Annotated[dict[str, list[str]] | None, StateOnly()] = None
    """Names of the stack's own roles by id of such a project; of one that is named here, others stand in the way."""
    buckets: Annotated[list[GuardedBucket] | None, StateOnly()] = None
    """Buckets that go with the stack."""
    declared: Annotated[dict[str, str] | None, StateOnly()] = None
    """Ids of all warehouses of the stack, by name. A guarded one that leaves these must hold nothing."""


class DeletionGuardProvider(LakekeeperProvider[DeletionGuardArgs]):
    """Is nothing on the server; looks when it is deleted."""

    args = DeletionGuardArgs

    @override
    def checked(self, declared: DeletionGuardArgs, olds: dict[str, Any]) -> DeletionGuardArgs:
        """As declared. A guard depends on all else, so this is the end of a run's checks."""
        adoption.warn_of_spent_adopt(self.run.own_objects)
        return super().checked(declared, olds)

    @override
    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """As of every resource. A guarded warehouse that leaves the program is looked into, in previews too."""
        result = super().diff(_id, _olds, _news)
        declared, old = _news.get("declared"), self.args.from_state(_olds)
        if old.deletion == "protect" and isinstance(declared, dict):
            leaving = _leaving(old, cast(dict[str, Any], declared))
            if leaving:
                self._refuse_removal(self.recorded_client(old.server), old, leaving)
        return result

    def _refuse_removal(self, client: Client, old: DeletionGuardArgs, leaving: list[str]) -> None:
        tables, others, uncounted = _inside(client, old, leaving)
        if tables or others or uncounted:
            raise (HoldsTablesError if tables else StillHeldError if others else CannotCountError)(
                f"warehouse {', '.join(f'`{name}`' for name in leaving)} is not declared any more, and its `deletion`"
                f" is `protect` in the state: {'; '.join([*tables, *others, *uncounted])}. To rename it, use"
                " `renamed_from`; otherwise put it back, or set its `deletion` to `retain` or `purge` and run `up`"
                " before taking it out."
            )

    @override
    def make(self, client: Client, new: DeletionGuardArgs) -> tuple[str, ObservedResource[DeletionGuardArgs]]:
        return "guard", ObservedResource(new)

    @override
    def find(
        self, client: Client, known: RecordedResource[DeletionGuardArgs]
    ) -> ObservedResource[DeletionGuardArgs] | None:
        """The guard as the state has it. Raises MovedServerError if its warehouses may be on another server."""
        state = known.declared
        if state.deletion == "protect" and not server_identity.is_proven(client, known.outs):
            for name, warehouse_id in sorted(state.warehouses.items()):
                if warehouses.get(client, warehouse_id) is None:
                    raise server_identity.unproven(client, f"warehouse `{name}` ({warehouse_id}) at {client.endpoint}")
        return ObservedResource(state)

    @override
    def change(
        self, client: Client, known: RecordedResource[DeletionGuardArgs], new: DeletionGuardArgs
    ) -> ObservedResource[DeletionGuardArgs]:
        return ObservedResource(new)

    @override
    def remove(self, client: Client, known: RecordedResource[DeletionGuardArgs]) -> None:
        state = known.declared
        if state.deletion != "protect":
            return
        if state.roles is not None and state.buckets is not None and state.declared is None:
            raise StillHeldError(
                "nothing was destroyed: the state is of an earlier version, which does not record what a bucket may"
                " hold. Run `up` first, without other changes, and then `destroy`."
            )
        tables, others, uncounted = _inside(client, state, sorted(state.warehouses))
        for project_id, ours in sorted((state.projects or {}).items()):
            own_roles = None if state.roles is None else state.roles.get(project_id)
            others += _strangers(client, project_id, ours, own_roles)
        for bucket in state.buckets or []:
            with _noting(uncounted):
                if not bucket.kept and (content := own_bucket.held(bucket, besides=bucket.emptied)):
                    outside = " outside the key prefixes of warehouses with `deletion: purge`" if bucket.emptied else ""
                    others.append(f"{bucket.where} holds {content}{outside}")
            if not bucket.kept:
                others += _neighbours(client, bucket, (state.declared or {}).values())
        if tables or others:
            found = "; ".join([*tables, *others, *uncounted])
            if not state.warehouses:
                raise StillHeldError(f"nothing was destroyed: {found}. Remove that, and run `destroy` again.")
            raise (HoldsTablesError if tables else StillHeldError)(
                f"nothing was destroyed, because `deletion` is `protect`: {found}."
                " Remove that, or set `deletion` to `purge` (which removes it) or `retain` (which keeps it) and run"
                " `up` before destroying."
            )
        if uncounted:
            raise CannotCountError(f"nothing was destroyed: {'; '.join(uncounted)}")


def _inside(client: Client, state: DeletionGuardArgs, names: list[str]) -> tuple[list[str], list[str], list[str]]:
    """What warehouses hold: tables, what else stands in the way, and what cannot be counted."""
    tables: list[str] = []
    others: list[str] = []
    uncounted: list[str] = []
    for name in names:
        warehouse_id = state.warehouses[name]
        own = None if state.namespaces is None else state.namespaces.get(name)
        with _noting(uncounted):
            if found := warehouse_removal.held(client, warehouse_id, name):
                tables.append(f"at {client.endpoint} warehouse `{name}` holds {contents.described(found)}")
            elif own is not None:
                others += warehouse_removal.in_the_way(client, warehouse_id, name, own)
    return tables, others, uncounted


def _leaving(old: DeletionGuardArgs, declared: dict[str, Any]) -> list[str]:
    """The guarded warehouses that the stack does not declare any more, under no name."""
    known = {one for one in declared.values() if isinstance(one, str)}
    return sorted(name for name, one in old.warehouses.items() if name not in declared and one not in known)


def _neighbours(client: Client, bucket: GuardedBucket, ours: Iterable[str]) -> list[str]:
    """Warehouses of others under the key prefixes that would be emptied."""
    if not bucket.emptied:
        return []
    around = surroundings.look_around(client)
    known = [*ours]
    return [
        *{
            one.id: f"{bucket.where} has {one} under a key prefix of a warehouse with `deletion: purge`"
            for prefix in bucket.emptied
            for one in around.within(bucket, prefix, known)
        }.values()
    ]


@contextmanager
def _noting(uncounted: list[str]) -> Generator[None]:
    """Collect what cannot be counted, to report it together with what can."""
    try:
        yield
    except CannotCountError as error:
        uncounted.append(str(error))


def _strangers(client: Client, project_id: str, ours: list[str], our_roles: list[str] | None) -> list[str]:
    """What others made in a project, all of which the server wants gone before the project; nothing of one gone."""
    try:
        found = {
            "warehouses": [one for one in warehouses.list_all(client, project_id) if warehouses.id_of(one) not in ours]
        }
        if our_roles is not None:
            known = {name.casefold() for name in our_roles}
            found["roles"] = [one for one in roles.list_all(client, project_id) if _name(one).casefold() not in known]
    except (NotFoundError, ForbiddenError):
        if projects.name_of(client, project_id) is not None:
            raise
        return []
    return [
        f"at {client.endpoint} project {project_id} holds {kind} that the stack does not declare"
        f" (only deleting them helps): {', '.join(sorted(map(_name, strangers)))}"
        for kind, strangers in found.items()
        if strangers
    ]


def _name(found: dict[str, Any]) -> str:
    return str(found["name"])


class DeletionGuard(Resource, module="lakekeeper", name="DeletionGuard"):
    """Guards warehouses against destruction. Give it `depends_on` everything that is to stay when it refuses.

    `buckets` takes the fields of `GuardedBucket`. With `declared`, it also refuses an `up` or a preview in which a
    warehouse that it guards, and that is not empty, leaves the program.
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
        deletion: pulumi.Input[Deletion] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource."""
        props = given(
            server=server,
            warehouses=warehouses,
            namespaces=namespaces,
            projects=projects,
            roles=roles,
            buckets=buckets,
            declared=declared,
            deletion=deletion,
        )
        super().__init__(DeletionGuardProvider(), resource_name, props, not_imported(opts))
