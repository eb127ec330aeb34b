"""A table of a spec from the metadata of a table. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from lakewright_spark.policies.model import PREFIX, TablePolicies
from pydantic import ValidationError

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


class UndeclarableTableError(Exception):
    """A table has no form in specs. The message is the reason."""


def table_document(warehouse: str, table: Tabular, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table as a spec has it; only what is not a default.

    Raises:
        UndeclarableTableError: Specs have no such table.
    """
    found: Json = dict(metadata)
    name = str(QualifiedName(warehouse, table.namespace, table.name))
    properties, policies = _properties(found)
    schema = current_schema(found)
    names = column_names(found)
    document: dict[str, Any] = {
        "name": name,
        "columns": [_column(field) for field in cast(list[Json], schema["fields"])],
        "identifier": [names[number] for number in cast(list[int], schema.get("identifier-field-ids") or [])],
        "partition_by": [str(field) for field in partitions(found)],
        "sort_by": sort_texts(found),
        "properties": properties,
        "policies": policies,
        "format_version": found["format-version"] if found["format-version"] != _USUAL_FORMAT else None,
        "protected": table.protected or None,
    }
    return {key: value for key, value in document.items() if value not in (None, [], {})}


def differences(spec: TableSpec, metadata: Mapping[str, Any]) -> list[str]:
    """Return what adopting a table with this declaration would change or refuse; empty if nothing."""
    declared = TableArgs(
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
    made = commit(dict(metadata), None, declared, {})
    return [*made.changes, *made.problems]


def _properties(metadata: Json) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the properties to declare, and the policies among them."""
    found = cast(dict[str, str], metadata.get("properties") or {})
    own = {key: value for key, value in found.items() if key.startswith(PREFIX)}
    try:
        policies = TablePolicies.from_properties(own)
    except (ValueError, ValidationError) as error:
        raise UndeclarableTableError(f"its policies cannot be read: {' '.join(str(error).split())}") from None
    others = {
        key: value
        for key, value in found.items()
        if key not in own and not is_engines(key, value) and not [*property_mistakes({key: value})]
    }
    return others, policies.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def is_engines(key: str, value: str) -> bool:
    """Return whether an engine wrote a property without being asked."""
    return key in ENGINE_PROPERTIES and ENGINE_PROPERTIES[key] in (None, value)


def _column(field: Json) -> dict[str, Any]:
    """Return a column, or a field of a nested one."""
    found: dict[str, Any] = {"name": field["name"], "type": _type(field["type"])}
    if field.get("required"):
        found["required"] = True
    if field.get("doc"):
        found["doc"] = field["doc"]
    if field.get("write-default") is not None:
        found["default"] = field["write-default"]
    return found


def _type(kind: Any) -> Any:
    """Return a type as text if that says everything, else as a mapping."""
    if not isinstance(kind, dict):
        return type_text(kind)
    detailed = _detailed(cast(Json, kind))
    text = type_text(kind)
    try:
        is_whole = _parsed(text) == _parsed(detailed)
    except ValidationError:
        return detailed  # the check of the whole spec names the mistake
    return text if is_whole else detailed


def _parsed(kind: Any) -> Column:
    return Column.model_validate({"name": "unused", "type": kind})


def _detailed(kind: Json) -> dict[str, Any]:
    match kind["type"]:
        case "struct":
            return {"type": "struct", "fields": [_column(field) for field in cast(list[Json], kind["fields"])]}
        case "list":
            required = {"element_required": True} if kind.get("element-required") else {}
            return {"type": "list", "element": _type(kind["element"]), **required}
        case _:
            required = {"value_required": True} if kind.get("value-required") else {}
            return {"type": "map", "key": _type(kind["key"]), "value": _type(kind["value"]), **required}
