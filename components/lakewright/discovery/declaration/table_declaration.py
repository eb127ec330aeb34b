"""A table of a spec from the metadata of a table. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

from lakewright.field_map.arguments import build_args
from lakewright.field_map.read_back import read_fields
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.requests import commit
from lakewright.lakekeeper.table.schema.columns import Column, Json, current_schema, type_text
from lakewright.lakekeeper.table.schema.layout import column_names, partitions, sort_texts
from lakewright.names.table_name import QualifiedName
from lakewright.spec.table import TableSpec


def declare_table(warehouse: str, table: Tabular, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table as a spec has it; only what is not a default.

    Raises:
        NotExpressibleError: Specs have no such table.
    """
    table_metadata: Json = dict(metadata)
    schema = current_schema(table_metadata)
    names = column_names(table_metadata)
    live: dict[str, Any] = {
        "full_name": str(QualifiedName(warehouse, table.namespace, table.name)),
        "columns": declare_columns(schema["fields"]),
        "identifier": [names[number] for number in cast(list[int], schema.get("identifier-field-ids") or [])],
        "partition_by": [str(field) for field in partitions(table_metadata)],
        "sort_by": sort_texts(table_metadata),
        "properties": table_metadata.get("properties") or {},
        "format_version": table_metadata["format-version"],
        "protected": table.protected,
    }
    return read_fields(TableSpec, live)


def find_differences(spec: TableSpec, metadata: Mapping[str, Any]) -> list[str]:
    """Return what adopting a table with this declaration would change or refuse; empty if nothing."""
    args = TableArgs(
        server=ServerRef(endpoint="http://unused"),
        warehouse_id="unused",
        namespace=".".join(spec.path.namespace),
        **build_args(spec),
    )
    planned_commit = commit(dict(metadata), None, args, {})
    return [*planned_commit.changes, *planned_commit.problems]


def declare_columns(fields: list[Json]) -> list[dict[str, Any]]:
    """Return the fields of an Iceberg schema as columns of a spec; only what is not a default."""
    return [_declare_column(field) for field in fields]


def _declare_column(field: Json) -> dict[str, Any]:
    """Return a column, or a field of a nested column."""
    column: dict[str, Any] = {"name": field["name"], "type": _declare_type(field["type"])}
    if field.get("required"):
        column["required"] = True
    if field.get("doc"):
        column["doc"] = field["doc"]
    if field.get("write-default") is not None:
        column["default"] = field["write-default"]
    return column


def _declare_type(kind: Any) -> Any:
    """Return a type as text if the text is complete, else as a mapping."""
    if not isinstance(kind, dict):
        return type_text(kind)
    detailed = _declare_nested_type(cast(Json, kind))
    text = type_text(kind)
    try:
        is_whole = _parse_column(text) == _parse_column(detailed)
    except ValidationError:
        return detailed  # the check of the whole spec names the mistake
    return text if is_whole else detailed


def _parse_column(kind: Any) -> Column:
    return Column.model_validate({"name": "unused", "type": kind})


def _declare_nested_type(kind: Json) -> dict[str, Any]:
    match kind["type"]:
        case "struct":
            return {"type": "struct", "fields": [_declare_column(field) for field in cast(list[Json], kind["fields"])]}
        case "list":
            required = {"element_required": True} if kind.get("element-required") else {}
            return {"type": "list", "element": _declare_type(kind["element"]), **required}
        case _:
            required = {"value_required": True} if kind.get("value-required") else {}
            return {"type": "map", "key": _declare_type(kind["key"]), "value": _declare_type(kind["value"]), **required}
