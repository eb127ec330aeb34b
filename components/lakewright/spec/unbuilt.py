"""The one place that says what a spec may declare but this version does not build: refused by name, never ignored."""

from collections.abc import Mapping
from typing import Any, cast

from lakewright.spec.data import TablePolicies
from lakewright.spec.problems import Problem, SpecError
from lakewright.spec.table import TableSpec
from lakewright.spec.tenant import TenantSpec

_UNBUILT = {
    "policies": "policies are not supported yet",
    "maintenance": "maintenance is not supported yet",
}


def unbuilt(document: Mapping[str, Any]) -> list[Problem]:
    """The sections of a spec, as written or as read, that nothing would be made of."""
    found = [Problem(name, f"{told}; remove the section") for name, told in _UNBUILT.items() if document.get(name)]
    tables = cast(list[Any], document.get("tables") or []) if isinstance(document.get("tables"), list) else []
    return found + [
        Problem(f"tables.{index}.policies", f"{_UNBUILT['policies']}; remove them")
        for index, table in enumerate(tables)
        if _has_policies(table)
    ]


def _has_policies(table: Any) -> bool:
    if isinstance(table, TableSpec):
        return table.policies != TablePolicies()
    return isinstance(table, Mapping) and bool(cast(Mapping[str, Any], table).get("policies"))


def refuse_unbuilt(spec: TenantSpec) -> None:
    """Raise SpecError if anything is declared that would not be built."""
    if problems := unbuilt(dict(spec)):
        raise SpecError(f"tenant {spec.name}", problems)
