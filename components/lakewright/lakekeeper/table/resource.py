"""Table: an Iceberg table with its schema, partitions, sort order and properties, evolved in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, DiffResult, ReadResult, Resource
from typing_extensions import override

from lakewright.lakekeeper.api.catalog import namespaces, tables
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.management import project_record
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider.adoption import Adopting
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.creation import Origin, create_or_find, explain_unfinished
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.diff import Change
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.provider.inputs import Replace, has_unknown
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, drop_none
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.lakekeeper.table import changes as table_changes
from lakewright.lakekeeper.table import finding as table_finding
from lakewright.lakekeeper.table import removal as table_removal
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.changes import describe_table
from lakewright.lakekeeper.table.finding import LoadedTable
from lakewright.lakekeeper.table.observed import observe
from lakewright.lakekeeper.table.requests import commit, create_request
from lakewright.lakekeeper.table.schema.columns import current_schema, ids_by_path, paths
from lakewright.names.types import Deletion
from lakewright.ownership.marked_object import MarkedObject

COMPUTED = ("table_id", "table_location", "field_ids", "drift", "unsafe")
"""Computed outputs.

`drift` lists changes found by a refresh that no property shows. `unsafe` lists changes that `up` refuses to undo. A
change that properties show is no longer a change once the program declares it.
"""


class TableProvider(LakekeeperProvider[TableArgs]):
    """Provider of tables. The id of a resource is the uuid that the table was created with."""

    args = TableArgs
    seen_by = ("columns", "partition_by", "sort_by", "properties")
    natural_key = ("warehouse_id", "namespace", "name")

    @override
    def title(self, args: TableArgs) -> str:
        return describe_table(args)

    @override
    def find_marked(self, client: Client, args: TableArgs) -> MarkedObject | None:
        return project_record.find_marked_warehouse(client, args.warehouse_id)

    @override
    def find_existing(self, client: Client, new: TableArgs) -> tuple[str, ObservedResource[TableArgs]] | None:
        live_table = table_finding.find_by_name(client, new.warehouse_id, new.path, new.name)
        if live_table is None:
            return None
        now = observe(live_table.metadata, new).model_copy(
            update={"protected": self._read_protected(client, live_table, new)}
        )
        return live_table.table_id, ObservedResource(now, {"metadata": live_table.metadata})

    @override
    def plan_adoption(self, live: ObservedResource[TableArgs], new: TableArgs) -> Adopting:
        needed = commit(live.computed["metadata"], None, new, {})
        also = ["protected"] if live.declared.protected != new.protected else []
        return Adopting([*needed.changes, *also], needed.problems)

    @override
    def make(self, client: Client, new: TableArgs) -> tuple[str, ObservedResource[TableArgs]]:
        body = create_request(new)
        metadata, origin = create_or_find(
            lambda: tables.create(client, new.warehouse_id, new.path, body),
            lambda: tables.load(client, new.warehouse_id, new.path, new.name),
        )
        live_table = LoadedTable(new.path, new.name, metadata)
        with explain_unfinished(self.title(new), origin, adopts=new.adopt):
            if origin is not Origin.CREATED:
                live_table = self._take_over(client, live_table, new, origin)
            self._protect(client, live_table, new)
        return live_table.table_id, _to_observed(new, live_table)

    @override
    def find(self, client: Client, resource: RecordedResource[TableArgs]) -> ObservedResource[TableArgs] | None:
        state, table_id = resource.declared, _table_id(resource)
        live_table = table_finding.find_by_name(client, state.warehouse_id, state.path, state.name)
        if live_table is None:
            active = client.is_active(state.warehouse_id)
            if active is False:
                warn(f"{describe_table(state)} cannot be seen while its warehouse is inactive")
                return ObservedResource(state, _copy_computed(resource), state.warehouse_id)
            lost = table_finding.elsewhere(client, state.warehouse_id, state.path, table_id) if active else None
            if lost is None:
                return None
            if isinstance(lost, Tabular):
                until = table_changes.expiry(client, state.warehouse_id, lost)
                warn(f"{describe_table(state)} was dropped; `up --refresh` restores it if it runs before {until}")
                drift = [f"dropped; can be restored until {until}", *table_changes.list_moves(resource)]
                return ObservedResource(state, {**_copy_computed(resource), "drift": drift})
            live_table = lost
        return self._observe_live(client, resource, live_table)

    def _observe_live(
        self, client: Client, resource: RecordedResource[TableArgs], live_table: LoadedTable
    ) -> ObservedResource[TableArgs]:
        state, is_recreated = resource.declared, live_table.table_id != _table_id(resource)
        where_now = {"namespace": ".".join(live_table.path), "name": live_table.name}
        now = observe(live_table.metadata, state).model_copy(
            update=where_now
            | {"protected": self._read_protected(client, live_table, state), "location": state.location}
        )
        ids = {} if is_recreated else _ids(resource)
        refused = commit(live_table.metadata, now, state, ids).problems
        observed = _to_observed(now, live_table)
        observed.computed.update(table_changes.record_namespace(live_table, state))
        observed.computed["field_ids"] = {**ids, **observed.computed["field_ids"]}
        # The state may come from an earlier refresh. Without later changes, the refused changes are also the same.
        observed.computed["unsafe"] = refused if difference.list_changes(now, state) else [*refused, *_unsafe(resource)]
        # These remain if the program declares the found values.
        lasting = set(commit(live_table.metadata, now, now, ids).problems) | {*resource.drift}
        observed.computed["drift"] = [
            *table_changes.find_hidden_drift(live_table, state, is_recreated=is_recreated),
            *table_changes.find_moves(client, live_table, resource),
            *(problem for problem in observed.computed["unsafe"] if problem in lasting),
        ]
        if is_recreated:
            warn(
                f"{describe_table(state)} was dropped and recreated: its uuid is {live_table.table_id} now, was"
                f" {_table_id(resource)}"
            )
        return observed

    @override
    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Return the changes. Refuse changes that would lose data of the table or its grants."""
        result = super().diff(_id, _olds, _news)
        resource, new = RecordedResource(_id, self.args.from_state(_olds), _olds), self.args.from_state(_news)
        if not result.replaces and self.needs_calls(resource, new):
            if _is_moved(resource.declared, new):
                table_changes.refuse_move(self._reach(resource.declared.server, new.server), resource, new)
            # A refresh calls this too, and must not fail because of drift, which `check` refuses.
            table_changes.refuse(
                new, [problem for problem in self._find_refusals(resource, new) if problem not in _unsafe(resource)]
            )
        # A program never declares `unsafe`. The inputs have it from a refresh, until the program runs again.
        result.changes = bool(result.changes or _news.get("unsafe"))
        return result

    @override
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Check a declaration. Refuse it if a refresh found drift that `up` refuses to undo.

        The engine calls this only for programs, so a refresh reports such drift and does not fail.
        """
        result = super().check(_olds, news)
        resource = (
            RecordedResource(str(_olds.get("table_id")), self.args.from_state(_olds), _olds)
            if _olds.get("unsafe")
            else None
        )
        if result.failures or resource is None:
            return result
        new = self.args.from_state(result.inputs)
        moved = difference.list_changes(resource.declared, new)
        if any(isinstance(change.mark, Replace) for change in moved):
            return result  # `diff` decides on replacements
        problems = self._find_refusals(resource, new)
        return (
            CheckResult(news, [CheckFailure("", table_changes.format_refusal(new, problems))]) if problems else result
        )

    @override
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Read a table. If `up` cannot fix its drift, add that to the inputs for the next `check`."""
        result = super().read(id_, props)
        outs = result.outs or {}
        if outs.get("unsafe"):
            recorded_outputs = {key: outs[key] for key in ("table_id", "field_ids", "unsafe")}
            result.inputs = {**(result.inputs or {}), **recorded_outputs}
        return result

    def _find_refusals(self, resource: RecordedResource[TableArgs], new: TableArgs) -> list[str]:
        """Return why `up` would refuse to change the table to a declaration; empty if that is not known."""
        old = resource.declared
        if has_unknown(list(new.props().values())):
            return []
        live_table = table_finding.find_by_name(
            self.connect_as_recorded(old.server), old.warehouse_id, old.path, old.name
        )
        if live_table is None or live_table.table_id != _table_id(resource):
            return []
        return commit(live_table.metadata, old, new, _ids(resource)).problems

    @override
    def change(
        self, client: Client, resource: RecordedResource[TableArgs], new: TableArgs
    ) -> ObservedResource[TableArgs]:
        live_table = table_changes.find_or_restore(client, resource.declared, new, _table_id(resource))
        live_table = table_changes.rename(client, live_table, new)
        live_table = table_changes.commit_changes(client, live_table, resource.declared, new, _ids(resource))
        self._protect(client, live_table, new)
        return _to_observed(new, live_table)

    @override
    def refuse_replacement(
        self, client: Client, resource: RecordedResource[TableArgs], new: TableArgs, changes: list[Change]
    ) -> None:
        table_removal.refuse_replacement(client, resource.declared, new, _table_id(resource), changes)

    @override
    def remove(self, client: Client, resource: RecordedResource[TableArgs]) -> None:
        table_removal.remove(client, resource.declared, _table_id(resource))

    def _take_over(self, client: Client, live_table: LoadedTable, new: TableArgs, origin: Origin) -> LoadedTable:
        """Change an existing table to match the declaration. Raise NotOwnedError if it must not be adopted."""
        differs = commit(live_table.metadata, None, new, {})
        location = str(live_table.metadata["location"]).rstrip("/")
        moved = [f"location: {location} -> {new.location}"] if new.location not in {None, location} else []
        written = live_table.metadata.get("current-snapshot-id") not in {None, -1}
        observed_table = "; ".join(
            [*moved, *differs.changes, *differs.problems, *(["it contains data"] if written else [])]
        )
        self.require_ours(
            client,
            observe(live_table.metadata, new),
            new,
            origin,
            observed_table and f"not as created: {observed_table}",
        )
        if moved:
            raise NotOwnedError(
                f"{describe_table(new)} is at {location}, not at the declared {new.location}, and cannot be moved."
                " Declare its current location."
            )
        return table_changes.commit_changes(client, live_table, None, new, {})

    def _protect(self, client: Client, live_table: LoadedTable, new: TableArgs) -> None:
        if new.protected is not None and self._read_protected(client, live_table, new) != new.protected:
            tables.protect(client, new.warehouse_id, live_table.table_id, protected=new.protected)

    def _read_protected(self, client: Client, live_table: LoadedTable, args: TableArgs) -> bool | None:
        if args.protected is None:  # needs a separate call
            return None
        return tables.is_protected(client, args.warehouse_id, live_table.table_id)


def _is_moved(old: TableArgs, new: TableArgs) -> bool:
    has_names = not has_unknown([old.namespace, new.namespace])
    return has_names and not namespaces.is_same(old.path, new.path)


def _table_id(resource: RecordedResource[TableArgs]) -> str:
    return str(resource.outs.get("table_id") or resource.id)


def _unsafe(resource: RecordedResource[TableArgs]) -> list[str]:
    return cast(list[str], resource.outs.get("unsafe") or [])


def _ids(resource: RecordedResource[TableArgs]) -> dict[str, int]:
    observed_table = cast(dict[str, float], resource.outs.get("field_ids") or {})
    return {path: int(number) for path, number in observed_table.items()}


def _copy_computed(resource: RecordedResource[TableArgs]) -> dict[str, Any]:
    return {key: resource.outs.get(key) for key in COMPUTED}


def _to_observed(args: TableArgs, live_table: LoadedTable) -> ObservedResource[TableArgs]:
    ids = ids_by_path(current_schema(live_table.metadata))
    mine = {path: ids[path] for path, _, _ in paths(args.columns) if path in ids}
    location = str(live_table.metadata["location"]).rstrip("/")
    computed: dict[str, Any] = {"table_id": live_table.table_id, "table_location": location, "field_ids": mine}
    return ObservedResource(args, {**computed, "drift": [], "unsafe": []})


class Table(Resource, module="lakekeeper", name="Table"):
    """An Iceberg table. Its namespace must exist.

    `columns` are mappings with the fields of `Column`. Changes that keep the data readable are made in place: columns
    are added, renamed (`renamed_from`), reordered, made optional, widened or dropped (`dropped_columns`); partitions,
    sort order and properties change. Changes that would lose data are refused. `deletion` defines what happens when
    the resource is deleted; a table is dropped only with `purge`.
    """

    table_id: pulumi.Output[str]
    """Uuid of the table."""
    table_location: pulumi.Output[str]
    """Location of its files."""
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
        identifier: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        partition_by: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        sort_by: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        properties: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        format_version: pulumi.Input[int] | None = None,
        location: pulumi.Input[str] | None = None,
        protected: pulumi.Input[bool] | None = None,
        dropped_columns: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        undeclared_columns: pulumi.Input[Literal["refuse", "keep"]] | None = None,
        dropped_files: pulumi.Input[Literal["delete", "keep"]] | None = None,
        deletion: pulumi.Input[Deletion] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            warehouse_id: Warehouse that the table is in.
            namespace: Namespace that the table is in, with dots between its levels.
            name: Name of the table. A change renames the table in place.
            columns: The columns, in order.
            identifier: Columns that together identify a row, for engines that update rows. Iceberg does not enforce
                uniqueness.
            partition_by: Partition transforms: `days(at)`, `bucket(16, id) as shard`.
            sort_by: Sort order: `at desc nulls last`.
            properties: Declared table properties. Other properties, which engines and the server write, are not
                changed.
            format_version: Iceberg format version. It can only be raised.
            location: Folder of the table, within the warehouse. If left out, the server chooses it.
            protected: Whether the server refuses to drop the table. If left out, the server keeps its value.
            dropped_columns: Paths of the columns that may be dropped. No other column is dropped.
            undeclared_columns: Handling of columns that jobs added: `refuse` reports them as drift, `keep` ignores
                them.
            dropped_files: Effect on the table's files when `deletion: purge` drops it.
            deletion: Effect on data when the resource is deleted: `protect` refuses while there is data, `retain` keeps
                it, `purge` deletes it.
            adopt: Take over an existing table of this name, and change it to match the declaration.
            opts: Options of the resource.
        """
        props = drop_none(
            server=server,
            warehouse_id=warehouse_id,
            namespace=namespace,
            name=name,
            columns=columns,
            identifier=identifier,
            partition_by=partition_by,
            sort_by=sort_by,
            properties=properties,
            format_version=format_version,
            location=location,
            protected=protected,
            dropped_columns=dropped_columns,
            undeclared_columns=undeclared_columns,
            dropped_files=dropped_files,
            deletion=deletion,
            adopt=adopt or None,
        )
        computed = dict.fromkeys(COMPUTED)
        super().__init__(TableProvider(), resource_name, {**props, **computed}, delete_first(opts))
