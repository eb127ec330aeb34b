"""Convert a table's metadata to a declaration. Pure functions."""

from __future__ import annotations

from typing import Any, cast

from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.schema.columns import (
    OBSERVED,
    Column,
    Json,
    ListType,
    MapType,
    StructType,
    current_schema,
)
from lakewright.lakekeeper.table.schema.layout import Partition, column_names, parse_partition, partitions, sort_texts


def observed(metadata: Json, declared: TableArgs) -> TableArgs:
    """Return the declared properties as found on the server, and undeclared columns unless they are kept."""
    schema = current_schema(metadata)
    names = column_names(metadata)
    keep = declared.undeclared_columns == "keep"
    columns = [
        _column(live, _by_name(declared.columns), keep=keep) for live in _fields(schema, declared.columns, keep=keep)
    ]
    properties = cast(dict[str, str], metadata.get("properties") or {})
    identifier = [names[number] for number in cast(list[int], schema.get("identifier-field-ids") or [])]
    found = {
        "columns": [column.model_dump(exclude_none=True) for column in columns],
        "identifier": _in_order(identifier, declared.identifier),
        "partition_by": _partition_by(metadata, declared),
        "sort_by": sort_texts(metadata),
        "properties": {key: value for key, value in properties.items() if key in declared.properties},
        "format_version": metadata["format-version"] if declared.format_version is not None else None,
        "location": str(metadata["location"]).rstrip("/") if declared.location is not None else None,
    }
    return TableArgs.from_state({**declared.props(), **found})


def _in_order(found: list[str], declared: list[str]) -> list[str]:
    """Return the found identifier, in the declared order if it has the same columns."""
    return declared if set(found) == set(declared) else found


def _by_name(columns: list[Column]) -> dict[str, Column]:
    return {column.name: column for column in columns}


def _fields(schema: Json, declared: list[Column], *, keep: bool) -> list[Json]:
    fields = cast(list[Json], schema["fields"])
    names = _by_name(declared)
    return [field for field in fields if not keep or field["name"] in names]


def _column(live: Json, declared: dict[str, Column], *, keep: bool) -> Column:
    known = declared.get(str(live["name"]))
    made: Json = {
        "name": live["name"],
        "type": _type(live["type"], known.type if known else None, keep=keep),
        "required": bool(live.get("required")),
        # An undeclared `doc` or `default` belongs to the engine that wrote it.
        "doc": live.get("doc") if known and known.doc is not None else None,
        "default": live.get("write-default") if known and known.default is not None else None,
        "renamed_from": known.renamed_from if known else None,
    }
    return Column.model_validate(made, context=OBSERVED)


def _type(live: Any, declared: Any, *, keep: bool) -> Any:
    if not isinstance(live, dict):
        return live
    parts = cast(Json, live)
    match parts["type"]:
        case "struct":
            inner = declared.fields if isinstance(declared, StructType) else []
            hide = keep and bool(inner)
            fields = [_column(field, _by_name(inner), keep=keep) for field in _fields(parts, inner, keep=hide)]
            return {"type": "struct", "fields": [field.model_dump(exclude_none=True) for field in fields]}
        case "list":
            inner = declared.element if isinstance(declared, ListType) else None
            element = _type(parts["element"], inner, keep=keep)
            return {"type": "list", "element": element, "element_required": bool(parts.get("element-required"))}
        case _:
            key = declared.key if isinstance(declared, MapType) else None
            value = declared.value if isinstance(declared, MapType) else None
            return {
                "type": "map",
                "key": _type(parts["key"], key, keep=keep),
                "value": _type(parts["value"], value, keep=keep),
                "value_required": bool(parts.get("value-required")),
            }


def _partition_by(metadata: Json, declared: TableArgs) -> list[str]:
    wanted = [parse_partition(text) for text in declared.partition_by]
    unnamed = [(field.column, field.transform) for field in wanted if field.name is None]
    found = [
        Partition(field.column, field.transform) if (field.column, field.transform) in unnamed else field
        for field in partitions(metadata)
    ]
    found = [field for field in found if field.transform != "void" or str(field) in declared.partition_by]
    if metadata["format-version"] == 1 and {str(field) for field in found} == set(declared.partition_by):
        return declared.partition_by  # version 1 never reorders the fields, so the order does not matter
    return [str(field) for field in found]
