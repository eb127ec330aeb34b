"""Namespace: a group of tables in a warehouse, optionally nested in another namespace."""

from collections.abc import Mapping
from typing import Annotated, Any

import pulumi
from pulumi.dynamic import Resource
from pydantic import AfterValidator
from typing_extensions import override

from lakewright.lakekeeper.api.catalog import contents, namespaces
from lakewright.lakekeeper.api.catalog.namespaces import ListedNamespace, Path
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotEmptyError, ProtectedError
from lakewright.lakekeeper.api.management import permissions as managed
from lakewright.lakekeeper.api.management import project_record, warehouses
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.creation import create_or_find, explain_unfinished
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.diff import Change
from lakewright.lakekeeper.provider.errors import CannotCountError, DeletedOutsideStackError, HoldsTablesError
from lakewright.lakekeeper.provider.inputs import CreateOnly, Deletable, NeedsOpenFga, Replace, ServerKeeps, Update
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, drop_none
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.names.types import Deletion, NamespacePath, namespace_parts
from lakewright.ownership.marked_object import MarkedObject


def _own_properties(properties: dict[str, str] | None) -> dict[str, str] | None:
    for key in properties or {}:
        if key in namespaces.SERVER_OWNED:
            raise ValueError(f"`{key}` belongs to the server" + ("; use `location`" if key == "location" else ""))
        if key != key.lower():
            raise ValueError(f"property `{key}` must be in lower case")
    return properties


def _strip_slash(location: str | None) -> str | None:
    return location.rstrip("/") if location else None


class NamespaceArgs(Deletable):
    """Inputs of a namespace."""

    warehouse_id: Annotated[str, Replace()]
    """Warehouse that the namespace is in."""
    name: Annotated[NamespacePath, Replace()]
    """Its levels, separated by dots: `sales.daily`."""
    properties: Annotated[
        dict[str, str] | None, AfterValidator(_own_properties), Update(via="properties"), ServerKeeps()
    ] = None
    """Properties, keys in lower case. If omitted, the server keeps its values."""
    location: Annotated[str | None, AfterValidator(_strip_slash), Replace(), ServerKeeps()] = None
    """Folder of the namespace's tables, within the warehouse. If omitted, the server chooses it."""
    protected: Annotated[bool | None, Update(via="protection"), ServerKeeps()] = None
    """Whether the server refuses to drop it. If omitted, the server keeps its value."""
    managed_access: Annotated[bool | None, Update(via="managed-access"), ServerKeeps(), NeedsOpenFga()] = None
    """Whether only principals with `manage_grants` can grant privileges in it. If omitted, the server keeps its
    value."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over an existing namespace of this name."""

    @property
    def path(self) -> Path:
        """Levels of the namespace, outermost first."""
        return tuple(namespace_parts(self.name))


NamespaceResponse = dict[str, Any]


class NamespaceProvider(LakekeeperProvider[NamespaceArgs]):
    """Creates, reads, changes and drops namespaces.

    The resource id is `WAREHOUSE_ID/NAME`. The server's id changes when a namespace is recreated.
    """

    args = NamespaceArgs
    natural_key = ("warehouse_id", "name")

    @override
    def title(self, args: NamespaceArgs) -> str:
        return f"namespace `{args.name}` in warehouse {args.warehouse_id} at {args.server.endpoint}"

    @override
    def find_marked(self, client: Client, args: NamespaceArgs) -> MarkedObject | None:
        return project_record.find_marked_warehouse(client, args.warehouse_id)

    @override
    def find_existing(self, client: Client, new: NamespaceArgs) -> tuple[str, ObservedResource[NamespaceArgs]] | None:
        response = namespaces.get(client, new.warehouse_id, new.path)
        return None if response is None else (_make_id(new), self._observe(client, response, new))

    @override
    def contents(self, client: Client, object_id: str, new: NamespaceArgs) -> str:
        return contents.read_namespace(client, new.warehouse_id, new.path).in_words

    @override
    def make(self, client: Client, new: NamespaceArgs) -> tuple[str, ObservedResource[NamespaceArgs]]:
        location = {"location": new.location} if new.location else {}
        response, origin = create_or_find(
            lambda: namespaces.create(client, new.warehouse_id, new.path, {**(new.properties or {}), **location}),
            lambda: namespaces.get(client, new.warehouse_id, new.path),
        )
        with explain_unfinished(self.title(new), origin, adopts=new.adopt):
            live_args = self._observe(client, response, new).declared
            changes = difference.list_changes(*_as_created(live_args, new, response))
            differs = f"with other {', '.join(change.path for change in changes)}" if changes else ""
            self.require_ours(client, live_args, new, origin, differs, object_id=_make_id(new))
            return _make_id(new), self._converge(client, response, new)

    @override
    def find(self, client: Client, resource: RecordedResource[NamespaceArgs]) -> ObservedResource[NamespaceArgs] | None:
        state = resource.declared
        shared_entry = namespaces.get_cached(client, state.warehouse_id, state.path)
        if (
            shared_entry is not None
            and shared_entry.namespace_id
            and state.properties is None
            and state.location is None
        ):
            return self._add_protection(client, shared_entry.namespace_id, state, protected=shared_entry.protected)
        response = namespaces.get(client, state.warehouse_id, state.path)
        if response is not None:
            return self._observe(client, response, state, shared_entry)
        if _inactive(client, state.warehouse_id):
            warn(f"namespace `{state.name}` cannot be seen while its warehouse {state.warehouse_id} is inactive")
            return ObservedResource(state, {"namespace_id": resource.outs.get("namespace_id")}, state.warehouse_id)
        return None

    @override
    def change(
        self, client: Client, resource: RecordedResource[NamespaceArgs], new: NamespaceArgs
    ) -> ObservedResource[NamespaceArgs]:
        response = namespaces.get(client, new.warehouse_id, new.path)
        if response is None:
            inactive = _inactive(client, new.warehouse_id)
            raise DeletedOutsideStackError(
                f"{self.title(new)} no longer exists"
                f"{', or is hidden because the warehouse is inactive' if inactive else ''}. Run `up --refresh`."
            )
        return self._converge(client, response, new)

    @override
    def refuse_replacement(
        self, client: Client, resource: RecordedResource[NamespaceArgs], new: NamespaceArgs, changes: list[Change]
    ) -> None:
        old = resource.declared
        live_namespace = namespaces.get(client, old.warehouse_id, old.path)
        if live_namespace is None:
            return
        if old.deletion == "purge":
            if protected := _list_protected(client, old, live_namespace):
                raise ProtectedError(
                    f"{self.title(old)} would be replaced ({', '.join(str(change) for change in changes)}), and these"
                    f" are protected: {', '.join(protected)}. Nothing was deleted. Remove the protection first."
                )
            return
        if tables := contents.read_namespace(client, old.warehouse_id, old.path).tabulars:
            raise HoldsTablesError(
                f"{self.title(old)} would be replaced ({', '.join(str(change) for change in changes)}); it holds"
                f" {contents.describe(tables)}. `deletion` is `{old.deletion}` in the state: to lose the tables, set"
                " it to `purge` and run `up` before this change."
            )

    @override
    def remove(self, client: Client, resource: RecordedResource[NamespaceArgs]) -> None:
        state = resource.declared
        if state.deletion == "retain":
            return
        try:
            deleted = contents.delete_namespace(client, state.warehouse_id, state.path)
        except NotEmptyError as refused:
            if state.deletion == "purge":
                live_namespace = namespaces.get(client, state.warehouse_id, state.path)
                if live_namespace and (protected := _list_protected(client, state, live_namespace)):
                    raise ProtectedError(
                        f"{self.title(state)} is not dropped, and nothing in it was deleted, because these are"
                        f" protected: {', '.join(protected)}. Remove the protection first."
                    ) from None
                self._purge(client, state)
                return
            inside = contents.read_namespace(client, state.warehouse_id, state.path)
            if not inside.tabulars:
                if not inside.namespaces:
                    _name_views(client, state, refused)
                raise
            raise HoldsTablesError(
                f"{self.title(state)} is not dropped: it holds {contents.describe(inside.tabulars)}. Drop them, or set"
                " `deletion` to `purge` (or `retain`) and run `up` first."
            ) from None
        if not deleted and state.deletion == "protect" and _inactive(client, state.warehouse_id):
            raise CannotCountError(
                f"{self.title(state)} cannot be dropped while its warehouse is inactive. Set `active: true` and run"
                " `up` first."
            )

    def _purge(self, client: Client, state: NamespaceArgs) -> None:
        """Delete the namespace with its contents and their files."""
        try:
            contents.purge(client, state.warehouse_id, state.path)
            contents.delete_namespace(client, state.warehouse_id, state.path)
        except NotEmptyError as refused:
            _name_views(client, state, refused)
            raise

    def _converge(
        self, client: Client, response: NamespaceResponse, new: NamespaceArgs
    ) -> ObservedResource[NamespaceArgs]:
        observed = self._observe(client, response, new)
        live_args, namespace_id = observed.declared, namespaces.read_id(response)
        if new.properties is not None and (before := live_args.properties or {}) != new.properties:
            updates = {key: value for key, value in new.properties.items() if before.get(key) != value}
            removals = sorted(before.keys() - new.properties.keys())
            namespaces.change_properties(client, new.warehouse_id, new.path, updates, removals)
        if new.protected is not None and live_args.protected != new.protected:
            namespaces.protect(client, new.warehouse_id, namespace_id, protected=new.protected)
        if new.managed_access is not None and live_args.managed_access != new.managed_access:
            managed.set_namespace_access(client, namespace_id, managed=new.managed_access)
        return ObservedResource(new, observed.computed)

    def _observe(
        self,
        client: Client,
        response: NamespaceResponse,
        args: NamespaceArgs,
        shared_entry: ListedNamespace | None = None,
    ) -> ObservedResource[NamespaceArgs]:
        """Return a response as inputs, comparable with the declared inputs. Read declared properties only."""
        namespace_id = namespaces.read_id(response)
        properties = None if args.properties is None else _own(response)
        location = _strip_slash(response["properties"].get("location")) if args.location else None
        now = args.model_copy(update={"properties": properties, "location": location})
        same = shared_entry is not None and shared_entry.namespace_id == namespace_id
        return self._add_protection(
            client, namespace_id, now, protected=shared_entry.protected if shared_entry and same else None
        )

    def _add_protection(
        self, client: Client, namespace_id: str, args: NamespaceArgs, *, protected: bool | None
    ) -> ObservedResource[NamespaceArgs]:
        """Add protection and managed access, which the response of a namespace does not contain.

        A list may have reported the protection already.
        """
        access = None
        if args.protected is None:
            protected = None
        elif protected is None:
            protected = namespaces.is_protected(client, args.warehouse_id, namespace_id)
        if args.managed_access is not None:
            access = managed.read_namespace_access(client, namespace_id)
        now = args.model_copy(update={"protected": protected, "managed_access": access})
        return ObservedResource(now, {"namespace_id": namespace_id})


def _own(response: NamespaceResponse) -> dict[str, str]:
    """Return the properties that do not belong to the server."""
    properties: dict[str, str] = response["properties"]
    return {key: value for key, value in properties.items() if key not in namespaces.SERVER_OWNED}


def _list_protected(client: Client, state: NamespaceArgs, live_namespace: NamespaceResponse) -> list[str]:
    """Return the names of protected objects: the namespace itself, and objects in it."""
    inside = contents.read_namespace(client, state.warehouse_id, state.path).protected
    is_protected = namespaces.is_protected(client, state.warehouse_id, namespaces.read_id(live_namespace))
    return [state.name, *inside] if is_protected else inside


def _name_views(client: Client, state: NamespaceArgs, refused: NotEmptyError) -> None:
    """Add the views that have the namespace as default namespace to the message of a refusal."""
    if views := contents.find_views_with_default(client, state.warehouse_id, state.path):
        names = ", ".join(views[: contents.MAX_NAMED_TABLES])
        more = f" and {len(views) - contents.MAX_NAMED_TABLES} more" if len(views) > contents.MAX_NAMED_TABLES else ""
        refused.add(
            f"`{state.name}` is, or was in an earlier version, the default namespace of these views: {names}{more}."
            " Drop the views first, and create them again with another default namespace. Soft-deleted views count"
            " until they expire."
        )


def _make_id(args: NamespaceArgs) -> str:
    return f"{args.warehouse_id}/{args.name}"


def _as_created(
    live_args: NamespaceArgs, new: NamespaceArgs, response: NamespaceResponse
) -> tuple[NamespaceArgs, NamespaceArgs]:
    """Return the found inputs, and the declared inputs as an interrupted creation leaves them.

    Creation sets the properties. Protection and managed access are set afterwards.
    """
    initial = {"protected": None, "managed_access": None, "properties": new.properties or {}}
    return live_args.model_copy(update={"properties": _own(response)}), new.model_copy(update=initial)


def _inactive(client: Client, warehouse_id: str) -> bool:
    """Return whether a warehouse exists and is inactive. Its namespaces then appear to be missing."""
    warehouse = client.lists.get_cached(
        (client, "warehouse", warehouse_id), lambda: warehouses.get(client, warehouse_id)
    )
    return warehouse is not None and warehouse["status"] != "active"


class Namespace(Resource, module="lakekeeper", name="Namespace"):
    """A namespace, named by its levels, separated by dots: `sales.daily`. Its parent must exist first."""

    namespace_id: pulumi.Output[str]
    warehouse_id: pulumi.Output[str]
    name: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        warehouse_id: pulumi.Input[str],
        name: pulumi.Input[str],
        properties: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        location: pulumi.Input[str] | None = None,
        protected: pulumi.Input[bool] | None = None,
        managed_access: pulumi.Input[bool] | None = None,
        deletion: pulumi.Input[Deletion] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            warehouse_id: Warehouse that the namespace is in.
            name: Its levels, separated by dots: `sales.daily`.
            properties: Properties, keys in lower case. If omitted, the server keeps its values.
            location: Folder of the namespace's tables, within the warehouse. If omitted, the server chooses it.
            protected: Whether the server refuses to drop it. If omitted, the server keeps its value.
            managed_access: Whether only principals with `manage_grants` can grant privileges in it. If omitted, the
                server keeps its value.
            deletion: Effect on data when the resource is deleted: `protect` refuses while there is data, `retain` keeps
                it, `purge` deletes it.
            adopt: Take over an existing namespace of this name.
            opts: Options of the resource.
        """
        props = drop_none(
            server=server,
            warehouse_id=warehouse_id,
            name=name,
            properties=properties,
            location=location,
            protected=protected,
            managed_access=managed_access,
            deletion=deletion,
            adopt=adopt or None,
        )
        super().__init__(NamespaceProvider(), resource_name, {**props, "namespace_id": None}, delete_first(opts))
