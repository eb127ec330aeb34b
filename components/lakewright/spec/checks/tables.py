"""What must fit together between a spec's tables and warehouses, checked on the document as written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from lakewright.names.namespace_presets import PRESETS
from lakewright.names.table_name import QualifiedName, parse_table_name
from lakewright.validation.problems import Path

_GOES_WITH = {"protect": ("protect", "retain", "purge"), "retain": ("retain", "purge"), "purge": ("purge",)}
"""What a table's `deletion` may be, by its warehouse's: else destroying would stop half-way, or drop it anyway."""


def table_checks(document: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Tables whose warehouse or namespace is not declared, or contradicts them; never raises, whatever is written."""
    warehouses = {str(one.get("name")): one for _, one in _items(document, "warehouses")}
    for index, table in _items(document, "tables"):
        name = _parsed(table.get("name"))
        if name is None:
            continue
        warehouse = warehouses.get(name.warehouse)
        if warehouse is None:
            there = ", ".join(warehouses) or "none"
            yield ("tables", index, "name"), f"expected one of the warehouses {there}; there is no `{name.warehouse}`"
            continue
        yield from _of_warehouse(index, table, name, warehouse)


def _of_warehouse(
    index: int, table: Mapping[str, Any], name: QualifiedName, warehouse: Mapping[str, Any]
) -> Iterator[tuple[Path, str]]:
    declared = _namespaces(warehouse.get("namespaces"))
    if ".".join(name.namespace) not in declared:
        there = ", ".join(sorted(declared)) or "none"
        yield (
            ("tables", index, "name"),
            f"expected one of the namespaces of warehouse {name.warehouse}: {there}; declare"
            f" `{'.'.join(name.namespace)}` there",
        )
    version, allowed = table.get("format_version"), warehouse.get("format_versions")
    if version is not None and isinstance(allowed, list) and version not in allowed:
        told = ", ".join(str(one) for one in cast(list[Any], allowed))
        yield ("tables", index, "format_version"), f"expected one that warehouse {name.warehouse} allows: {told}"
    of_warehouse, own = warehouse.get("deletion") or "protect", table.get("deletion")
    fitting = _GOES_WITH.get(of_warehouse) if isinstance(of_warehouse, str) else None
    if own in _GOES_WITH and fitting and own not in fitting:
        yield (
            ("tables", index, "deletion"),
            f"expected {' or '.join(f'`{one}`' for one in fitting)}, since warehouse {name.warehouse} has"
            f" `deletion: {of_warehouse}`",
        )


def _items(document: Mapping[str, Any], section: str) -> list[tuple[int, Mapping[str, Any]]]:
    entries = document.get(section)
    found = cast(list[Any], entries) if isinstance(entries, list) else []
    return [(index, cast(Mapping[str, Any], item)) for index, item in enumerate(found) if isinstance(item, Mapping)]


def _parsed(text: object) -> QualifiedName | None:
    try:
        return parse_table_name(text) if isinstance(text, str) else None
    except ValueError:
        return None  # told where the name itself is checked


def _namespaces(written: object) -> set[str]:
    """The namespaces of a warehouse, with the parents that are made for them."""
    paths: list[Any] = []
    if isinstance(written, list):
        paths = cast(list[Any], written)
    elif isinstance(written, Mapping):
        preset = cast(Mapping[str, Any], written)
        also = preset.get("also")
        paths = [
            *PRESETS.get(str(preset.get("preset")), ()),
            *(cast(list[Any], also) if isinstance(also, list) else []),
        ]
    levels = [path.split(".") for path in paths if isinstance(path, str)]
    return {".".join(one[:depth]) for one in levels for depth in range(1, len(one) + 1)}
