"""Lookups of tables and views: the entries of a namespace, and the details of a table or view."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from lakewright.lakekeeper.api.catalog import namespaces, tables, tabulars, views
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError, NothingFoundError
from lakewright.lakekeeper.lookups.catalog import make_nothing_error, require_active
from lakewright.lakekeeper.server.lookup_base import LookupResult, Server, as_output, format_names, reach
from lakewright.lakekeeper.table.schema.columns import Json, current_schema, type_text
from lakewright.lakekeeper.table.schema.layout import column_names, partitions, sort_texts
from lakewright.names.types import namespace_parts


class TabularEntry(LookupResult):
    """A table or view in a list."""

    warehouse_id: str
    tabular_id: str
    namespace: str
    """Levels of the namespace, outermost first, separated by dots."""
    name: str
    protected: bool


class ColumnInfo(LookupResult):
    """A column in the form of a declaration; nested types as text."""

    field_id: int
    name: str
    type: str
    required: bool
    doc: str | None
    default: Any
    """Value for rows that do not set the column; None if there is no default."""


class TableInfo(TabularEntry):
    """A table. Columns, partitions and sort order are in the form of a declaration."""

    location: str
    format_version: int
    columns: tuple[ColumnInfo, ...]
    identifier: tuple[str, ...]
    partition_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    properties: dict[str, str]
    snapshot_id: int | None
    """Current snapshot; None if no rows were ever written."""
    updated_at: datetime


class ViewInfo(TabularEntry):
    """The current version of a view."""

    location: str
    columns: tuple[ColumnInfo, ...]
    sql: dict[str, str]
    """Definition of the view, by SQL dialect."""
    default_namespace: str
    """Namespace for names in the definition that have none."""
    properties: dict[str, str]
    version_id: int


def get_tables(*, server: Server, warehouse_id: str, namespace: str, recursive: bool = False) -> list[TabularEntry]:
    """Return the tables of a namespace of an active warehouse; with `recursive`, also of all namespaces below it."""
    return _entries(reach(server), warehouse_id, namespace, "table", recursive=recursive)


def get_views(*, server: Server, warehouse_id: str, namespace: str, recursive: bool = False) -> list[TabularEntry]:
    """Return the views of a namespace of an active warehouse; with `recursive`, also of all namespaces below it."""
    return _entries(reach(server), warehouse_id, namespace, "view", recursive=recursive)


def get_table(*, server: Server, warehouse_id: str, namespace: str, name: str) -> TableInfo:
    """Return a table of an active warehouse by namespace and name. Raises NothingFoundError."""
    client = reach(server)
    metadata = tables.load(client, warehouse_id, tuple(namespace_parts(namespace)), name)
    if metadata is None:
        raise _make_missing_error(client, warehouse_id, namespace, name, "table")
    names = column_names(metadata)
    schema = current_schema(metadata)
    snapshot = metadata.get("current-snapshot-id")
    table_id = str(metadata["table-uuid"])
    return TableInfo(
        warehouse_id=warehouse_id,
        tabular_id=table_id,
        namespace=namespace,
        name=name,
        protected=tables.is_protected(client, warehouse_id, table_id),
        location=metadata["location"],
        format_version=metadata["format-version"],
        columns=_columns(schema),
        identifier=tuple(names[field_id] for field_id in schema.get("identifier-field-ids") or ()),
        partition_by=tuple(str(partition) for partition in partitions(metadata) if partition.transform != "void"),
        sort_by=tuple(sort_texts(metadata)),
        properties=metadata.get("properties") or {},
        snapshot_id=None if snapshot in {None, -1} else snapshot,
        updated_at=datetime.fromtimestamp(metadata["last-updated-ms"] / 1000, UTC),
    )


def get_view(*, server: Server, warehouse_id: str, namespace: str, name: str) -> ViewInfo:
    """Return a view of an active warehouse by namespace and name. Raises NothingFoundError."""
    client = reach(server)
    path = tuple(namespace_parts(namespace))
    metadata = views.load(client, warehouse_id, path, name)
    if metadata is None:
        raise _make_missing_error(client, warehouse_id, namespace, name, "view")
    version = next(entry for entry in metadata["versions"] if entry["version-id"] == metadata["current-version-id"])
    schema = next(entry for entry in metadata["schemas"] if entry["schema-id"] == version["schema-id"])
    view_id = str(metadata["view-uuid"])
    return ViewInfo(
        warehouse_id=warehouse_id,
        tabular_id=view_id,
        namespace=namespace,
        name=name,
        protected=tables.is_protected(client, warehouse_id, view_id, "view"),
        location=metadata["location"],
        columns=_columns(schema),
        sql={
            representation["dialect"]: representation["sql"]
            for representation in version["representations"]
            if representation["type"] == "sql"
        },
        default_namespace=".".join(version["default-namespace"]),
        properties=metadata.get("properties") or {},
        version_id=version["version-id"],
    )


def _columns(schema: Json) -> tuple[ColumnInfo, ...]:
    return tuple(
        ColumnInfo(
            field_id=field["id"],
            name=field["name"],
            type=type_text(field["type"]),
            required=bool(field.get("required")),
            doc=field.get("doc"),
            default=field.get("write-default"),
        )
        for field in schema["fields"]
    )


def _entries(
    client: Client, warehouse_id: str, namespace: str, kind: Literal["table", "view"], *, recursive: bool
) -> list[TabularEntry]:
    path = tuple(namespace_parts(namespace))
    try:
        tabular_list = list(tabulars.list_kind(client, warehouse_id, path, kind))
        below = namespaces.list_children(client, warehouse_id, path) if recursive else []
    except NotFoundError:
        raise make_nothing_error(client, warehouse_id, namespace) from None
    if not tabular_list:
        require_active(client, warehouse_id)
    entries = [
        TabularEntry(
            warehouse_id=warehouse_id,
            tabular_id=tabular.tabular_id,
            namespace=".".join(tabular.namespace),
            name=tabular.name,
            protected=tabular.protected,
        )
        for tabular in sorted(tabular_list)
    ]
    for child in sorted(below, key=lambda child: child.path):
        entries += _entries(client, warehouse_id, ".".join(child.path), kind, recursive=True)
    return entries


def _make_missing_error(
    client: Client, warehouse_id: str, namespace: str, name: str, kind: Literal["table", "view"]
) -> Exception:
    """Return the error for a missing table or view, with the existing tables or views."""
    try:
        existing = _entries(client, warehouse_id, namespace, kind, recursive=False)
    except NothingFoundError as nothing_there:
        return nothing_there
    return NothingFoundError(
        f"{kind} `{namespace}.{name}` is not in warehouse {warehouse_id} at {client.endpoint}, or hidden from this"
        f" identity. Available: {format_names(tabular.name for tabular in existing)}."
    )


get_table_output = as_output(get_table)
get_tables_output = as_output(get_tables)
get_view_output = as_output(get_view)
get_views_output = as_output(get_views)
