"""Accept changes of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakewright.drift.acceptance.edits import REMOVED, NotExpressibleError, Path, SpecEdit, WrittenSpec, list_edits
from lakewright.drift.model import Difference, DifferenceKind
from lakewright.names.table_name import parse_table_name
from lakewright.validation.documents import items_of, list_of, mapping_of, text_of

_LISTS = ("identifier", "partition_by", "sort_by")
_VALUES = ("format_version", "protected")
_DEFAULTS: Mapping[str, Any] = {"required": False}


def accept_table(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edits for a property of a table, or for a table that is gone."""
    index, table = _table(difference.resource, spec)
    path: Path = ("tables", index)
    if difference.kind is DifferenceKind.GONE:
        return [SpecEdit(path, REMOVED)]
    name, found = difference.property, difference.found
    if name == "columns":
        return list(_columns(path, table, list_of(found)))
    if name == "properties":
        return list(_properties(path, table, mapping_of(difference.declared), mapping_of(found)))
    if name in _LISTS:
        return list_edits(spec, (*path, name), list_of(found))
    if name in _VALUES:
        return [SpecEdit((*path, name), found)]
    if name in ("name", "namespace"):
        raise NotExpressibleError("the table was renamed outside the stack: rename it back, or declare `renamed_from`")
    reason = f"the spec has no field for `{name}` of a table" if name else f"not in one property: {found}"
    raise NotExpressibleError(reason)


def _table(resource: str, spec: WrittenSpec) -> tuple[int, Mapping[str, Any]]:
    for index, item in items_of(spec.document, "tables"):
        name = text_of(item.get("name"))
        if name and resource == f"{spec.tenant}-{parse_table_name(name)}":
            return index, item
    raise NotExpressibleError(f"the spec declares no table {resource}; run `lakewright preview --refresh`")


def _columns(path: Path, table: Mapping[str, Any], found: list[Any]) -> Iterator[SpecEdit]:
    """Yield edits that keep the written columns that stay, in their order."""
    written = [item for _, item in items_of(table, "columns")]
    wanted = [_short(mapping_of(column)) for column in found]
    names, order = [str(column["name"]) for column in written], [str(column["name"]) for column in wanted]
    kept = [name for name in names if name in order]
    if [name for name in order if name in kept] != kept or order[: len(kept)] != kept:
        # Columns moved: written entries keep their fields, but not their comments.
        yield SpecEdit((*path, "columns"), wanted)
        return
    by_name = {str(column["name"]): column for column in wanted}
    for index in reversed(range(len(written))):
        if names[index] not in by_name:
            yield SpecEdit((*path, "columns", index), REMOVED)
    for index, name in enumerate(kept):
        old, new = mapping_of(written[names.index(name)]), by_name[name]
        for key in {*old, *new}:
            if key == "renamed_from" or old.get(key, _DEFAULTS.get(key)) == new.get(key, _DEFAULTS.get(key)):
                continue
            yield SpecEdit((*path, "columns", index, key), new.get(key, REMOVED))
    for offset, name in enumerate(name for name in order if name not in kept):
        yield SpecEdit((*path, "columns", len(kept) + offset), by_name[name])


def _short(column: Mapping[str, Any]) -> dict[str, Any]:
    """Return a column without the fields that have their defaults."""
    return {key: value for key, value in column.items() if value is not None and _DEFAULTS.get(key) != value}


def _properties(
    path: Path, table: Mapping[str, Any], declared: Mapping[str, Any], found: Mapping[str, Any]
) -> Iterator[SpecEdit]:
    written = mapping_of(table.get("properties"))
    for key in [*declared, *(key for key in found if key not in declared)]:
        if declared.get(key) == found.get(key):
            continue
        if key not in written:
            raise NotExpressibleError(f"property `{key}` follows from `policies` of the table; change them by hand")
        yield SpecEdit((*path, "properties", key), found.get(key, REMOVED))
