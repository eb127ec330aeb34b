"""Partition specs and sort orders on a schema, with the rules of Iceberg's Rust library, which Lakekeeper uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lakewright_sandbox.typed.json_values import is_object

Json = dict[str, Any]

TIMES = {"year", "month", "day", "hour"}


def index_columns(kind: Any, path: str = "") -> Iterator[tuple[int, str, Any]]:
    """Yield id, path and type of every field in a schema or type."""
    if not is_object(kind):
        return
    for field in kind.get("fields", []):
        yield field["id"], f"{path}{field['name']}", field["type"]
        yield from index_columns(field["type"], f"{path}{field['name']}.")
    for part in ("element", "key", "value"):
        if part in kind:
            yield kind[f"{part}-id"], f"{path}{part}", kind[part]
            yield from index_columns(kind[part], f"{path}{part}.")


def find_spec_fault(fields: list[Json], schema: Json) -> str | None:
    """Return why a partition spec does not fit a schema; None if it fits."""
    columns = list(index_columns(schema))
    types = {number: kind for number, _, kind in columns}
    numbers = {path: number for number, path, _ in columns}
    names: set[str] = set()
    field_ids: set[int] = set()
    transforms: dict[tuple[int, str], str] = {}
    for field in fields:
        name, transform, source = field["name"], field["transform"], field.get("source-id")
        if not name:
            return "Cannot use empty partition name"
        if name in names:
            return f"Cannot use partition name more than once: {name}"
        names.add(name)
        if source is not None and (fault := _find_source_fault(field, types, numbers, transforms)):
            return fault
        if source is not None:
            transforms[source, _group(transform)] = name
        if (number := field.get("field-id")) in field_ids:
            return f"Cannot use field id more than once in one PartitionSpec: {number}"
        if number is not None:
            field_ids.add(number)
    return None


def _find_source_fault(
    field: Json, types: dict[int, Any], numbers: dict[str, int], transforms: dict[tuple[int, str], str]
) -> str | None:
    name, transform, source = field["name"], field["transform"], field["source-id"]
    if (earlier := transforms.get((source, _group(transform)))) is not None:
        return (
            f"Cannot add redundant partition with source id `{source}` and transform `{_group(transform)}`. A partition"
            f" with the same source id and transform already exists with name `{earlier}`"
        )
    if (column := numbers.get(name)) is not None and transform != "identity":
        return (
            f"Cannot create partition with name: '{name}' that conflicts with schema field and is not an identity "
            "transform."
        )
    if column not in (None, source):
        return (
            "Cannot create identity partition sourced from different field in schema. Field name "
            f"'{name}' has id `{column}` in schema but partition source id is `{source}`"
        )
    if source not in types:
        return f"Cannot find partition source field with id `{source}` in schema"
    if transform != "void" and is_object(types[source]):
        return f"Cannot partition by non-primitive source field: '{types[source]['type']}'."
    return None


def _group(transform: str) -> str:
    """Return the name under which a column may have one transform."""
    return "time" if transform in TIMES else transform


def find_order_fault(fields: list[Json], schema: Json) -> str | None:
    """Return why a sort order does not fit a schema; None if it fits."""
    numbers = {number for number, _, _ in index_columns(schema)}
    for field in fields:
        if "source-id" in field and field["source-id"] not in numbers:
            return f"Cannot find source column for sort field: source_id {field['source-id']}"
    return None


def find_name_fault(schema: Json, document: Json) -> str | None:
    """Return why a table cannot get a schema: a new column has the name of a field of one of its partition specs."""
    partitions = {field["name"] for spec in document["partition-specs"] for field in spec["fields"]}
    earlier = {path for existing in document["schemas"] for _, path, _ in index_columns(existing)}
    if not earlier:
        return None
    for _, path, _ in index_columns(schema):
        if path in partitions and path not in earlier:
            return (
                f"Cannot add schema field '{path}' because it conflicts with existing partition field name. Schema "
                "evolution cannot introduce field names that match existing partition field names."
            )
    return None
