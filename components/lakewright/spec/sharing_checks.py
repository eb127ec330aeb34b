"""Grants that contradict `sharing: false` of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakewright_spark.policies.model import PolicyPattern

from lakewright.names.table_name import QualifiedName
from lakewright.names.types import namespace_parts
from lakewright.spec.grant import GrantSpec, GrantTarget
from lakewright.spec.table import TableSpec
from lakewright.spec.warehouse import WarehouseSpec
from lakewright.validation.problems import Path


def find_sharing_mistakes(
    warehouses: Sequence[WarehouseSpec],
    tables: Sequence[TableSpec],
    grants: Sequence[GrantSpec],
    policies: Sequence[PolicyPattern],
) -> Iterator[tuple[Path, str]]:
    """Yield each grant that lets others than a warehouse's owner reach a table with `sharing: false`.

    Only declared tables and tables that a grant names are checked; others may not exist yet.
    """
    owners = {warehouse.name: warehouse.owner for warehouse in warehouses}
    declared_tables = [table.path for table in tables]
    for index, grant in enumerate(grants):
        granted_tables = [_read_table_name(grant.on)] if grant.on.table else []
        for table in dict.fromkeys([*granted_tables, *(path for path in declared_tables if _reaches(grant.on, path))]):
            if grant.to != owners.get(table.warehouse) and (
                setting := _find_forbidding_setting(table, tables, policies)
            ):
                yield ("grants", index), f"expected no grant that reaches {table}, which is not shared, by {setting}"


def _find_forbidding_setting(
    table: QualifiedName, tables: Sequence[TableSpec], policies: Sequence[PolicyPattern]
) -> str | None:
    """Return the path of the setting that forbids sharing a table; None if it may be shared."""
    for index, spec in enumerate(tables):
        if spec.path.same_as(table) and spec.policies.sharing is not None:
            return None if spec.policies.sharing else f"tables.{index}.policies.sharing"
    for index, pattern in reversed([*enumerate(policies)]):
        matches = pattern.matches(table.warehouse, table.namespace, table.name)
        if pattern.sharing is not None and matches:
            return None if pattern.sharing else f"policies.{index}.sharing"
    return None


def _read_table_name(on: GrantTarget) -> QualifiedName:
    namespace, name = on.table_path
    return QualifiedName(on.warehouse or "", tuple(namespace.split(".")), name)


def _reaches(on: GrantTarget, table: QualifiedName) -> bool:
    if on.project or on.table:
        return bool(on.project)
    # The server ignores case.
    levels = tuple(level.casefold() for level in namespace_parts(on.namespace)) if on.namespace else ()
    _, *namespace, _ = table.levels
    return on.warehouse == table.warehouse and tuple(namespace[: len(levels)]) == levels
