"""A table of a spec from the metadata of a table. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from lakewright_spark.policies.model import PREFIX, TablePolicies
from pydantic import ValidationError

from lakewright.errors import LakewrightError
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.requests import commit
from lakewright.lakekeeper.table.schema.columns import Column, Json, current_schema, type_text
from lakewright.lakekeeper.table.schema.layout import column_names, partitions, sort_texts
from lakewright.lakekeeper.table.schema.properties import property_mistakes
from lakewright.names.table_name import QualifiedName
from lakewright.spec.table import TableSpec

_USUAL_FORMAT = 2
ENGINE_PROPERTIES: Mapping[str, str | None] = {
    "owner": None,
    "created-at": None,
    "write.parquet.compression-codec": "zstd",
    "commit.retry.num-retries": None,
}
"""Properties that engines write to each table, with the value that they write; None for any value."""


class UndeclarableTableError(LakewrightError):
    """A table has no form in specs. The message is the reason."""


def declare_table(warehouse: str, table: Tabular, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table as a spec has it; only what is not a default.

    Raises:
        UndeclarableTableError: Specs have no such table.
    """
    table_metadata: Json = dict(metadata)
    name = str(QualifiedName(warehouse, table.namespace, table.name))
    properties, policies = _split_properties(table_metadata)
    schema = current_schema(table_metadata)
    names = column_names(table_metadata)
    document: dict[str, Any] = {
        "name": name,
        "columns": [_declare_column(field) for field in cast(list[Json], schema["fields"])],
        "identifier": [names[number] for number in cast(list[int], schema.get("identifier-field-ids") or [])],
        "partition_by": [str(field) for field in partitions(table_metadata)],
        "sort_by": sort_texts(table_metadata),
        "properties": properties,
        "policies": policies,
        "format_version": table_metadata["format-version"]
        if table_metadata["format-version"] != _USUAL_FORMAT
        else None,
        "protected": table.protected or None,
    }
    return {key: value for key, value in document.items() if value not in (None, [], {})}


def find_differences(spec: TableSpec, metadata: Mapping[str, Any]) -> list[str]:
    """Return what adopting a table with this declaration would change or refuse; empty if nothing."""
    args = TableArgs(
        server=ServerRef(endpoint="http://unused"),
        warehouse_id="unused",
        namespace=".".join(spec.path.namespace),
        name=spec.path.name,
        columns=spec.columns,
        identifier=spec.identifier,
        partition_by=spec.partition_by,
        sort_by=spec.sort_by,
        properties={**spec.properties, **spec.policies.properties()},
        format_version=spec.format_version,
        undeclared_columns=spec.undeclared_columns,
    )
    planned_commit = commit(dict(metadata), None, args, {})
    return [*planned_commit.changes, *planned_commit.problems]


def _split_properties(metadata: Json) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the properties to declare, and the policies among them."""
    properties = cast(dict[str, str], metadata.get("properties") or {})
    policy_properties = {key: value for key, value in properties.items() if key.startswith(PREFIX)}
    try:
        policies = TablePolicies.from_properties(policy_properties)
    except (ValueError, ValidationError) as error:
        raise UndeclarableTableError(f"its policies cannot be read: {' '.join(str(error).split())}") from None
    plain_properties = {
        key: value
        for key, value in properties.items()
        if key not in policy_properties
        and not is_written_by_engine(key, value)
        and not [*property_mistakes({key: value})]
    }
    return plain_properties, policies.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def is_written_by_engine(key: str, value: str) -> bool:
    """Return whether an engine wrote a property without being asked."""
    return key in ENGINE_PROPERTIES and ENGINE_PROPERTIES[key] in (None, value)


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
