"""Checks of tables and views against their warehouses, on the document as written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from lakewright_spark.suggestions import suggest_name

from lakewright.names.table_name import QualifiedName, parse_table_name
from lakewright.spec.checks.units import no_such_warehouse
from lakewright.spec.checks.warehouses import list_levels, list_namespaces
from lakewright.validation.documents import join_names, list_items
from lakewright.validation.problems import SpecMistake

_ALLOWED_DELETIONS = {
    "protect": ("protect", "retain", "purge"),
    "retain": ("retain", "purge"),
    "archive": ("retain",),
    "purge": ("purge",),
}
"""Allowed `deletion` of a table by its warehouse's. With others, destroying would fail midway or drop the table."""


def table_checks(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield tables and views whose warehouse or namespace is not declared or contradicts them. Never raises."""
    warehouses = {str(warehouse.get("name")): warehouse for _, warehouse in list_items(document, "warehouses")}
    tables: dict[tuple[str, ...], tuple[int, QualifiedName]] = {}
    for section in ("tables", "views"):
        for index, item in list_items(document, section):
            name = _parse_table(item.get("name"))
            if name is None:
                continue
            warehouse = warehouses.get(name.warehouse)
            if warehouse is None:
                yield (section, index, "name"), no_such_warehouse(name.warehouse, [*warehouses])
                continue
            yield from _find_namespace(section, index, name, warehouse)
            if section == "tables":
                tables.setdefault(name.levels, (index, name))
                yield from _compare_with_warehouse(index, item, name, warehouse)
                continue
            yield from _check_default_namespace(index, item, name, warehouse)
            if table := tables.get(name.levels):
                expectation = f"expected another name than that of the table `{table[1]}` of tables.{table[0]}"
                yield (section, index, "name"), expectation


def _find_namespace(
    section: str, index: int, name: QualifiedName, warehouse: Mapping[str, Any]
) -> Iterator[SpecMistake]:
    namespaces = _list_declared_namespaces(warehouse)
    if ".".join(name.namespace) not in namespaces:
        names = join_names(sorted(namespaces))
        yield (
            (section, index, "name"),
            f"expected one of the namespaces of warehouse {name.warehouse}: {names}; declare"
            f" `{'.'.join(name.namespace)}` there{suggest_name('.'.join(name.namespace), namespaces)}",
        )


def _check_default_namespace(
    index: int, view: Mapping[str, Any], name: QualifiedName, warehouse: Mapping[str, Any]
) -> Iterator[SpecMistake]:
    """Yield a default namespace that is not declared in this spelling. The server would forget it."""
    namespaces, default_namespace = _list_declared_namespaces(warehouse), view.get("default_namespace")
    if isinstance(default_namespace, str) and default_namespace not in namespaces:
        yield (
            ("views", index, "default_namespace"),
            f"expected one of the namespaces of warehouse {name.warehouse}, in the same case:"
            f" {join_names(sorted(namespaces))}; declare `{default_namespace}`"
            f" there{suggest_name(default_namespace, namespaces)}",
        )


def _list_declared_namespaces(warehouse: Mapping[str, Any]) -> set[str]:
    return {level for _, path in list_namespaces(warehouse) for level in list_levels(path)}


def _compare_with_warehouse(
    index: int, table: Mapping[str, Any], name: QualifiedName, warehouse: Mapping[str, Any]
) -> Iterator[SpecMistake]:
    version, allowed = table.get("format_version"), warehouse.get("format_versions")
    if version is not None and isinstance(allowed, list) and version not in allowed:
        versions = ", ".join(str(number) for number in cast(list[Any], allowed))
        expectation = f"expected a version that warehouse {name.warehouse} allows: {versions}"
        yield ("tables", index, "format_version"), expectation
    warehouse_deletion, deletion = warehouse.get("deletion") or "protect", table.get("deletion")
    fitting = _ALLOWED_DELETIONS.get(warehouse_deletion) if isinstance(warehouse_deletion, str) else None
    if deletion in _ALLOWED_DELETIONS and fitting and deletion not in fitting:
        yield (
            ("tables", index, "deletion"),
            f"expected {' or '.join(f'`{choice}`' for choice in fitting)}, since warehouse {name.warehouse} has"
            f" `deletion: {warehouse_deletion}`",
        )
    if table.get("dropped_files") == "keep" and (deletion or warehouse_deletion) != "purge":
        yield ("tables", index, "dropped_files"), "expected only with `deletion: purge`, which drops the table"


def _parse_table(text: object) -> QualifiedName | None:
    try:
        return parse_table_name(text) if isinstance(text, str) else None
    except ValueError:
        return None  # the check of the name reports it
