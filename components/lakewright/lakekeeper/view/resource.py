"""View: an Iceberg view, with its query by SQL dialect, changed in place."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulumi
from pulumi.dynamic import DiffResult, Resource
from typing_extensions import override

from lakewright.lakekeeper.api.catalog import namespaces, tables, tabulars, views
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.catalog.views import ViewMetadata
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    AlreadyExistsError,
    NotFoundError,
    NothingFoundError,
    ProtectedError,
)
from lakewright.lakekeeper.api.management import project_record
from lakewright.lakekeeper.provider.adoption import Adopting
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.creation import Origin, create_or_find, explain_unfinished
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.diff import Change, list_changes
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, InactiveWarehouseError, NotOwnedError
from lakewright.lakekeeper.provider.inputs import has_unknown
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, drop_none
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.lakekeeper.view.args import ViewArgs
from lakewright.lakekeeper.view.requests import commit_requests, create_request, observe_view
from lakewright.ownership.marked_object import MarkedObject

_MOVE_ADVICE = "Remove `renamed_from`: `up` then creates the view in the new namespace, and drops the old view."


class ViewProvider(LakekeeperProvider[ViewArgs]):
    """Provider of views. The id of a resource is the uuid that the view was created with."""

    args = ViewArgs
    natural_key = ("warehouse_id", "namespace", "name")

    @override
    def title(self, args: ViewArgs) -> str:
        return f"view `{args.namespace}.{args.name}` in warehouse {args.warehouse_id} at {args.server.endpoint}"

    @override
    def find_marked(self, client: Client, args: ViewArgs) -> MarkedObject | None:
        return project_record.find_marked_warehouse(client, args.warehouse_id)

    @override
    def find_existing(self, client: Client, new: ViewArgs) -> tuple[str, ObservedResource[ViewArgs]] | None:
        metadata = views.load(client, new.warehouse_id, new.path, new.name)
        return None if metadata is None else (_read_id(metadata), self._observe(client, metadata, new))

    @override
    def plan_adoption(self, live: ObservedResource[ViewArgs], new: ViewArgs) -> Adopting:
        return Adopting([change.path for change in list_changes(live.declared, new)], [])

    @override
    def make(self, client: Client, new: ViewArgs) -> tuple[str, ObservedResource[ViewArgs]]:
        spelled = self._spell_default_namespace(client, new)
        body = create_request(spelled, _now_ms())
        metadata, origin = create_or_find(
            lambda: views.create(client, new.warehouse_id, new.path, body),
            lambda: views.load(client, new.warehouse_id, new.path, new.name),
        )
        with explain_unfinished(self.title(new), origin, adopts=new.adopt):
            if origin is not Origin.CREATED:
                live_args = observe_view(metadata, new)
                differs = ", ".join(change.path for change in list_changes(live_args, new))
                self.require_ours(client, live_args, new, origin, differs and f"with other {differs}")
            return _read_id(metadata), self._converge(client, metadata, None, new, spelled)

    @override
    def find(self, client: Client, resource: RecordedResource[ViewArgs]) -> ObservedResource[ViewArgs] | None:
        state = resource.declared
        metadata = views.load(client, state.warehouse_id, state.path, state.name)
        if metadata is not None:
            return self._observe_live(client, metadata, resource)
        active = client.is_active(state.warehouse_id)
        if active is False:
            warn(f"{self.title(state)} cannot be seen while its warehouse is inactive")
            computed = {key: resource.outs[key] for key in ("view_id", "drift") if key in resource.outs}
            return ObservedResource(state, computed, state.warehouse_id)
        return None

    def _observe_live(
        self, client: Client, metadata: ViewMetadata, resource: RecordedResource[ViewArgs]
    ) -> ObservedResource[ViewArgs]:
        """Return the view with the name. The state keeps the recorded uuid until an `up` changes a recreated view."""
        observed, view_id = self._observe(client, metadata, resource.declared), _read_id(metadata)
        recorded_id = _read_recorded_id(resource)
        if view_id == recorded_id:
            return observed
        warn(f"{self.title(resource.declared)} was dropped and recreated: its uuid is {view_id} now, was {recorded_id}")
        return replace(observed, computed={"view_id": recorded_id, "drift": [_describe_recreation(view_id)]})

    @override
    def change(self, client: Client, resource: RecordedResource[ViewArgs], new: ViewArgs) -> ObservedResource[ViewArgs]:
        old = resource.declared
        is_moved = (old.path, old.name) != (new.path, new.name)
        if is_moved:
            self._rename(client, resource, new)
        metadata = views.load(client, new.warehouse_id, new.path, new.name)
        if metadata is None:
            raise DeletedOutsideStackError(f"{self.title(new)} no longer exists. Run `up --refresh`.")
        if not _is_view_of_state(metadata, resource):
            raise self._make_taken_error(old, new) if is_moved else self._make_foreign_error(metadata, resource)
        return self._converge(client, metadata, old, new, self._spell_default_namespace(client, new))

    def _rename(self, client: Client, resource: RecordedResource[ViewArgs], new: ViewArgs) -> None:
        """Rename the view of the state, unless it does not have its earlier name: an interrupted update renamed it.

        Raises:
            NotOwnedError: Another view has the earlier name, or another table or view has the new name.
        """
        old = resource.declared
        live_view = views.load(client, old.warehouse_id, old.path, old.name)
        if live_view is None:
            return
        if not _is_view_of_state(live_view, resource):
            raise self._make_foreign_error(live_view, resource)
        try:
            views.rename(client, new.warehouse_id, (old.path, old.name), (new.path, new.name))
        except AlreadyExistsError:
            raise self._make_taken_error(old, new) from None
        except NotFoundError as missing:
            # Servers before 0.14 report the view as missing if its new name is taken.
            if missing.kind != "NoSuchViewException":
                raise
            # A request that was repeated, or a change of case, which these servers refuse: the view has the name.
            renamed_view = views.load(client, new.warehouse_id, new.path, new.name)
            if renamed_view is None or not _is_view_of_state(renamed_view, resource):
                raise self._make_taken_error(old, new) from None

    def _make_foreign_error(self, metadata: ViewMetadata, resource: RecordedResource[ViewArgs]) -> NotOwnedError:
        return NotOwnedError(
            f"{self.title(resource.declared)} is another view now ({_read_id(metadata)}, expected"
            f" {_read_recorded_id(resource)}), and was not changed. Drop that view, or run `up --refresh` to change it."
        )

    def _make_taken_error(self, old: ViewArgs, new: ViewArgs) -> NotOwnedError:
        return NotOwnedError(
            f"{self.title(old)} cannot be renamed: another table or view, which may be dropped, has the name"
            f" `{new.namespace}.{new.name}`. Choose another name, or drop or purge the other object."
        )

    @override
    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Return the changes. Refuse a move that would leave the grants of the former namespace."""
        result = super().diff(_id, _olds, _news)
        old, new = self.args.from_state(_olds), self.args.from_state(_news)
        if not (result.replaces or has_unknown([old.namespace, new.namespace])) and (
            not namespaces.is_same(old.path, new.path)
        ):
            client = self._reach(old.server, new.server)
            tabulars.refuse_move(client, self.title(old), old.path, new.path, _MOVE_ADVICE)
        return result

    @override
    def refuse_replacement(
        self, client: Client, resource: RecordedResource[ViewArgs], new: ViewArgs, changes: list[Change]
    ) -> None:
        if live_view := self._find_own(client, resource):
            self._refuse_protected(client, resource.declared, live_view)

    @override
    def remove(self, client: Client, resource: RecordedResource[ViewArgs]) -> None:
        state = resource.declared
        live_view = self._find_own(client, resource)
        if live_view is None:
            return
        self._refuse_protected(client, state, live_view)
        with contextlib.suppress(NotFoundError):
            tabulars.drop(client, state.warehouse_id, live_view)

    def _find_own(self, client: Client, resource: RecordedResource[ViewArgs]) -> Tabular | None:
        """Return the view of the state; None if it does not exist, or another view has its name.

        Raises:
            InactiveWarehouseError: The warehouse hides its views.
        """
        state = resource.declared
        metadata = views.load(client, state.warehouse_id, state.path, state.name)
        if metadata is None:
            if client.is_active(state.warehouse_id) is False:
                raise InactiveWarehouseError(
                    f"{self.title(state)} cannot be seen while its warehouse is inactive. Set `active: true` and run"
                    " `up` first.",
                    state.warehouse_id,
                )
            return None
        view_id = _read_id(metadata)
        if view_id != _read_recorded_id(resource):
            warn(f"{self.title(state)} is another view now ({view_id}), and was not dropped")
            return None
        return Tabular(state.path, state.name, "view", view_id)

    def _refuse_protected(self, client: Client, state: ViewArgs, live_view: Tabular) -> None:
        """Raise ProtectedError if the server protects a view."""
        if tables.is_protected(client, state.warehouse_id, live_view.tabular_id, "view"):
            raise ProtectedError(
                f"{self.title(state)} is protected, and was not dropped. Set `protected: false` and run `up` first."
            )

    def _converge(
        self, client: Client, metadata: ViewMetadata, old: ViewArgs | None, new: ViewArgs, spelled: ViewArgs
    ) -> ObservedResource[ViewArgs]:
        """Change a view to its declaration. `spelled` has the default namespace as the server spells it."""
        for body in commit_requests(metadata, old, spelled, _now_ms()):
            metadata = views.commit(client, new.warehouse_id, new.path, new.name, body)
        view_id = _read_id(metadata)
        if new.protected is not None and new.protected != self._read_protected(client, view_id, new):
            tables.protect(client, new.warehouse_id, view_id, "view", protected=new.protected)
        return ObservedResource(new, {"view_id": view_id})

    def _spell_default_namespace(self, client: Client, new: ViewArgs) -> ViewArgs:
        """Return a declaration with the default namespace as the server spells it. It forgets other spellings.

        Raises:
            NothingFoundError: The declared default namespace does not exist, or is hidden.
        """
        live_namespace = namespaces.get_cached(client, new.warehouse_id, new.default_path)
        if live_namespace is not None:
            return new.model_copy(update={"default_namespace": ".".join(live_namespace.path)})
        if new.default_namespace and namespaces.get(client, new.warehouse_id, new.default_path) is None:
            raise NothingFoundError(
                f"{self.title(new)} was not changed: its default namespace `{new.default_namespace}` does not exist in"
                " the warehouse, or is hidden from this identity. Create it first, or declare another"
                " `default_namespace`."
            )
        return new

    def _observe(self, client: Client, metadata: ViewMetadata, args: ViewArgs) -> ObservedResource[ViewArgs]:
        view_id = _read_id(metadata)
        protected = self._read_protected(client, view_id, args)
        live_args = observe_view(metadata, args).model_copy(update={"protected": protected})
        return ObservedResource(live_args, {"view_id": view_id})

    def _read_protected(self, client: Client, view_id: str, args: ViewArgs) -> bool | None:
        if args.protected is None:  # needs a separate call
            return None
        return tables.is_protected(client, args.warehouse_id, view_id, "view")


def _read_id(metadata: ViewMetadata) -> str:
    return str(metadata["view-uuid"])


def _read_recorded_id(resource: RecordedResource[ViewArgs]) -> str:
    return str(resource.outs.get("view_id") or resource.id)


def _is_view_of_state(metadata: ViewMetadata, resource: RecordedResource[ViewArgs]) -> bool:
    """Return whether a view is that of the state, or the recreated view that a refresh reported."""
    view_id = _read_id(metadata)
    return view_id == _read_recorded_id(resource) or _describe_recreation(view_id) in resource.drift


def _describe_recreation(view_id: str) -> str:
    return f"recreated as {view_id}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class View(Resource, module="lakekeeper", name="View"):
    """An Iceberg view. Its namespace must exist.

    Its query is declared for each SQL dialect: an engine reads the query of its own dialect only. Changes are made in
    place. A view has no data, so a view that is no longer declared is dropped unless the server protects it.
    """

    view_id: pulumi.Output[str]
    """Uuid of the view."""
    warehouse_id: pulumi.Output[str]
    namespace: pulumi.Output[str]
    name: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        warehouse_id: pulumi.Input[str],
        namespace: pulumi.Input[str],
        name: pulumi.Input[str],
        columns: pulumi.Input[Sequence[pulumi.Input[Mapping[str, Any]]]],
        sql: pulumi.Input[Mapping[str, pulumi.Input[str]]],
        default_catalog: pulumi.Input[str] | None = None,
        default_namespace: pulumi.Input[str] | None = None,
        properties: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        protected: pulumi.Input[bool] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            warehouse_id: Warehouse that the view is in.
            namespace: Namespace that the view is in, with dots between its levels.
            name: Name of the view. A change renames the view in place.
            columns: The columns that the query returns, in order.
            sql: Query by SQL dialect: `{"spark": "SELECT ...", "trino": "SELECT ..."}`.
            default_catalog: Catalog of table names in the query that have none. Default: the catalog in which an engine
                has the view.
            default_namespace: Namespace of table names in the query that have none. Default: the view's namespace.
            properties: Declared view properties. Other properties, which engines write, are not changed.
            protected: Whether the server refuses to drop the view. If left out, the server keeps its value.
            adopt: Take over an existing view of this name, and change it to match the declaration.
            opts: Options of the resource.
        """
        props = drop_none(
            server=server,
            warehouse_id=warehouse_id,
            namespace=namespace,
            name=name,
            columns=columns,
            sql=sql,
            default_catalog=default_catalog,
            default_namespace=default_namespace,
            properties=properties,
            protected=protected,
            adopt=adopt or None,
        )
        super().__init__(ViewProvider(), resource_name, {**props, "view_id": None}, delete_first(opts))
