"""Grants on tables that are not to be shared: `sharing: false` is a promise that the spec itself must not break."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakewright.names.table_name import QualifiedName
from lakewright.validation.problems import Path

if TYPE_CHECKING:
    from lakewright.spec.grant import GrantTarget
    from lakewright.spec.tenant import TenantSpec


def sharing_mistakes(spec: TenantSpec) -> Iterator[tuple[Path, str]]:
    """Every grant to others than a warehouse's owner that reaches a table with `sharing: false`.

    Tables are those that are declared, and those that a grant names; of others nobody knows before they are there.
    """
    owners = {warehouse.name: warehouse.owner for warehouse in spec.warehouses}
    declared = [table.path for table in spec.tables]
    for index, grant in enumerate(spec.grants):
        named = [_named(grant.on)] if grant.on.table else []
        for table in dict.fromkeys([*named, *(path for path in declared if _reaches(grant.on, path))]):
            if grant.to != owners.get(table.warehouse) and (where := _closed(spec, table)):
                yield ("grants", index), f"expected no grant that reaches {table}, which is not shared, by {where}"


def _closed(spec: TenantSpec, table: QualifiedName) -> str | None:
    """Where it is said that a table is not shared; None if it is, or nobody says anything."""
    for index, one in enumerate(spec.tables):
        if one.path.same_as(table) and one.policies.sharing is not None:
            return None if one.policies.sharing else f"tables.{index}.policies.sharing"
    for index, pattern in reversed([*enumerate(spec.policies)]):
        matches = pattern.matches(table.warehouse, table.namespace, table.name)
        if pattern.sharing is not None and matches:
            return None if pattern.sharing else f"policies.{index}.sharing"
    return None


def _named(on: GrantTarget) -> QualifiedName:
    namespace, name = on.table_path
    return QualifiedName(on.warehouse or "", tuple(namespace.split(".")), name)


def _reaches(on: GrantTarget, table: QualifiedName) -> bool:
    if on.project or on.table:
        return bool(on.project)
    levels = tuple(on.namespace.split(".")) if on.namespace else ()
    return on.warehouse == table.warehouse and table.namespace[: len(levels)] == levels
