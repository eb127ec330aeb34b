"""Cross checks of `checks`: the warehouses, roles and columns that they name are declared. Never raises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakewright_spark.suggestions import suggest_name

from lakewright.names.table_name import QualifiedName, parse_table_name
from lakewright.spec.checks.units import no_such_warehouse
from lakewright.validation.documents import as_mapping, as_text, join_names, list_items, list_names
from lakewright.validation.problems import SpecMistake

TIME_TYPES = ("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
"""Iceberg types of columns that have the time of a row."""


def data_check_mistakes(document: Mapping[str, Any], roles: list[str]) -> Iterator[SpecMistake]:
    """Yield entries of `checks` that name a warehouse, role or column that the spec does not declare.

    Args:
        document: The spec as written.
        roles: Roles that warehouses have without being declared.
    """
    warehouses = list_names(document, "warehouses")
    granted = [as_text(grant.get("to")) or "" for _, grant in list_items(document, "grants")]
    role_names = [*roles, *(to.removeprefix("role:") for to in granted if to.startswith("role:"))]
    for index, check in list_items(document, "checks"):
        if (table := _parse_table(check.get("table"))) is not None:
            if table.warehouse not in warehouses:
                yield ("checks", index, "table"), no_such_warehouse(table.warehouse, warehouses)
            yield from _column(document, index, table, as_text(check.get("column")))
        target = as_mapping(check.get("on"))
        for path, warehouse in (
            (("warehouse",), check.get("warehouse")),
            (("on", "warehouse"), target.get("warehouse")),
        ):
            if isinstance(warehouse, str) and warehouse not in warehouses:
                yield ("checks", index, *path), no_such_warehouse(warehouse, warehouses)
        kind, _, role = (as_text(check.get("principal")) or "").partition(":")
        if kind == "role" and role not in role_names:
            yield (
                ("checks", index, "principal"),
                f"expected one of the roles {join_names(dict.fromkeys(role_names))}; role `{role}` is not declared"
                f"{suggest_name(role, role_names)}",
            )


def _column(document: Mapping[str, Any], index: int, table: QualifiedName, column: str | None) -> Iterator[SpecMistake]:
    """Yield a column that a declared table lacks, or that has no time. Other tables are made by jobs."""
    tables = [item for _, item in list_items(document, "tables") if _same(item.get("name"), table)]
    if column is None or not tables:
        return
    types = {str(part.get("name")): as_text(part.get("type")) for _, part in list_items(tables[0], "columns")}
    if column not in types:
        yield (
            ("checks", index, "column"),
            f"expected one of the columns {join_names(types)}; there is no `{column}`{suggest_name(column, types)}",
        )
    elif types[column] not in TIME_TYPES:
        yield (
            ("checks", index, "column"),
            f"expected a column of type {', '.join(TIME_TYPES)}; `{column}` has type {types[column]}",
        )


def _same(written: object, table: QualifiedName) -> bool:
    parsed = _parse_table(written)
    return parsed is not None and parsed.same_as(table)


def _parse_table(text: object) -> QualifiedName | None:
    try:
        return parse_table_name(text) if isinstance(text, str) else None
    except ValueError:
        return None  # the check of the name reports it
