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


def observe(metadata: Json, args: TableArgs) -> TableArgs:
    """Return the declared properties as found on the server, and undeclared columns unless they are kept."""
    schema = current_schema(metadata)
    names = column_names(metadata)
    columns = observe_columns(schema, args.columns, keep=args.undeclared_columns == "keep")
    live_properties = cast(dict[str, str], metadata.get("properties") or {})
    identifier = [names[number] for number in cast(list[int], schema.get("identifier-field-ids") or [])]
    properties = {
        "columns": [column.model_dump(exclude_none=True) for column in columns],
        "identifier": _sort_identifier(identifier, args.identifier),
        "partition_by": _list_partitions(metadata, args),
        "sort_by": sort_texts(metadata),
        "properties": {key: value for key, value in live_properties.items() if key in args.properties},
        "format_version": metadata["format-version"] if args.format_version is not None else None,
        "location": str(metadata["location"]).rstrip("/") if args.location is not None else None,
    }
    return TableArgs.from_state({**args.props(), **properties})


def observe_columns(schema: Json, declared_columns: list[Column], *, keep: bool) -> list[Column]:
    """Return the columns of a schema, comparable with a declaration; undeclared columns only without `keep`."""
    return [
        _column(live, _index_columns(declared_columns), keep=keep)
        for live in _fields(schema, declared_columns, keep=keep)
    ]


def _sort_identifier(identifier: list[str], declared_identifier: list[str]) -> list[str]:
    """Return the found identifier, in the declared order if it has the same columns."""
    return declared_identifier if set(identifier) == set(declared_identifier) else identifier


def _index_columns(columns: list[Column]) -> dict[str, Column]:
    return {column.name: column for column in columns}


def _fields(schema: Json, declared_columns: list[Column], *, keep: bool) -> list[Json]:
    fields = cast(list[Json], schema["fields"])
    names = _index_columns(declared_columns)
    return [field for field in fields if not keep or field["name"] in names]


def _column(live: Json, declared_columns: dict[str, Column], *, keep: bool) -> Column:
    declared_column = declared_columns.get(str(live["name"]))
    column: Json = {
        "name": live["name"],
        "type": _type(live["type"], declared_column.type if declared_column else None, keep=keep),
        "required": bool(live.get("required")),
        # An undeclared `doc` or `default` belongs to the engine that wrote it.
        "doc": live.get("doc") if declared_column and declared_column.doc is not None else None,
        "default": live.get("write-default") if declared_column and declared_column.default is not None else None,
        "renamed_from": declared_column.renamed_from if declared_column else None,
    }
    return Column.model_validate(column, context=OBSERVED)


def _type(live: Any, declared_type: Any, *, keep: bool) -> Any:
    if not isinstance(live, dict):
        return live
    parts = cast(Json, live)
    match parts["type"]:
        case "struct":
            inner = declared_type.fields if isinstance(declared_type, StructType) else []
            hide = keep and bool(inner)
            fields = [_column(field, _index_columns(inner), keep=keep) for field in _fields(parts, inner, keep=hide)]
            return {"type": "struct", "fields": [field.model_dump(exclude_none=True) for field in fields]}
        case "list":
            inner = declared_type.element if isinstance(declared_type, ListType) else None
            element = _type(parts["element"], inner, keep=keep)
            return {"type": "list", "element": element, "element_required": bool(parts.get("element-required"))}
        case _:
            key = declared_type.key if isinstance(declared_type, MapType) else None
            value = declared_type.value if isinstance(declared_type, MapType) else None
            return {
                "type": "map",
                "key": _type(parts["key"], key, keep=keep),
                "value": _type(parts["value"], value, keep=keep),
                "value_required": bool(parts.get("value-required")),
            }


def _list_partitions(metadata: Json, args: TableArgs) -> list[str]:
    declared_partitions = [parse_partition(text) for text in args.partition_by]
    unnamed = [(field.column, field.transform) for field in declared_partitions if field.name is None]
    live_partitions = [
        Partition(field.column, field.transform) if (field.column, field.transform) in unnamed else field
        for field in partitions(metadata)
    ]
    live_partitions = [
        field for field in live_partitions if field.transform != "void" or str(field) in args.partition_by
    ]
    if metadata["format-version"] == 1 and {str(field) for field in live_partitions} == set(args.partition_by):
        return args.partition_by  # version 1 never reorders the fields, so the order does not matter
    return [str(field) for field in live_partitions]
