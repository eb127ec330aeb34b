"""Accept changes of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakewright.drift.acceptance.edits import REMOVED, Path, SpecEdit, WrittenSpec
from lakewright.drift.acceptance.field_edits import edit_field
from lakewright.drift.model import Difference, DifferenceKind
from lakewright.field_map.marks import NotExpressibleError
from lakewright.names.table_name import parse_table_name
from lakewright.spec.table import TableSpec
from lakewright.validation.documents import as_list, as_mapping, as_text, list_items

_DEFAULTS: Mapping[str, Any] = {"required": False}


def accept_table(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edits for a property of a table, or for a deleted table."""
    index = find_index("tables", difference.resource, spec)
    path: Path = ("tables", index)
    table = as_mapping(spec.get_value(*path))
    if difference.kind is DifferenceKind.GONE:
        return [SpecEdit(path, REMOVED)]
    name, value = difference.property, difference.found
    if name == "columns":
        return list(_edit_columns(path, table, as_list(value)))
    if name == "properties":
        return list(_edit_properties(path, table, as_mapping(difference.declared), as_mapping(value)))
    if not name:
        raise NotExpressibleError(f"not in one property: {value}")
    if refusal := TableSpec.refused_properties.get(name):
        raise NotExpressibleError(refusal)
    return edit_field(TableSpec, path, difference, spec, title="a table")


def find_index(section: str, resource: str, spec: WrittenSpec) -> int:
    """Return the index in `tables` or `views` of the entry that declares a resource. Raises NotExpressibleError."""
    for index, item in list_items(spec.document, section):
        name = as_text(item.get("name"))
        if name and resource == f"{spec.tenant}-{parse_table_name(name)}":
            return index
    kind = section.removesuffix("s")
    raise NotExpressibleError(f"the spec declares no {kind} {resource}; run `lakewright preview --refresh`")


def _edit_columns(path: Path, table: Mapping[str, Any], found_columns: list[Any]) -> Iterator[SpecEdit]:
    """Yield edits that keep the remaining columns in their written order."""
    written = [item for _, item in list_items(table, "columns")]
    target = [_drop_defaults(as_mapping(column)) for column in found_columns]
    names, order = [str(column["name"]) for column in written], [str(column["name"]) for column in target]
    remaining_names = [name for name in names if name in order]
    if [name for name in order if name in remaining_names] != remaining_names or order[
        : len(remaining_names)
    ] != remaining_names:
        # Columns moved: written entries keep their fields, but not their comments.
        yield SpecEdit((*path, "columns"), target)
        return
    by_name = {str(column["name"]): column for column in target}
    for index in reversed(range(len(written))):
        if names[index] not in by_name:
            yield SpecEdit((*path, "columns", index), REMOVED)
    for index, name in enumerate(remaining_names):
        old, new = as_mapping(written[names.index(name)]), by_name[name]
        for key in {*old, *new}:
            if key == "renamed_from" or old.get(key, _DEFAULTS.get(key)) == new.get(key, _DEFAULTS.get(key)):
                continue
            yield SpecEdit((*path, "columns", index, key), new.get(key, REMOVED))
    for offset, name in enumerate(name for name in order if name not in remaining_names):
        yield SpecEdit((*path, "columns", len(remaining_names) + offset), by_name[name])


def _drop_defaults(column: Mapping[str, Any]) -> dict[str, Any]:
    """Return a column without the fields that have their defaults."""
    return {key: value for key, value in column.items() if value is not None and _DEFAULTS.get(key) != value}


def _edit_properties(
    path: Path, table: Mapping[str, Any], declared_properties: Mapping[str, Any], found_properties: Mapping[str, Any]
) -> Iterator[SpecEdit]:
    written = as_mapping(table.get("properties"))
    for key in [*declared_properties, *(key for key in found_properties if key not in declared_properties)]:
        if declared_properties.get(key) == found_properties.get(key):
            continue
        if key not in written:
            raise NotExpressibleError(f"property `{key}` follows from `policies` of the table; change them manually")
        yield SpecEdit((*path, "properties", key), found_properties.get(key, REMOVED))
