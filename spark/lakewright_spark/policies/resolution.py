"""Effective policies of a table: its own properties, or else the last pattern with the policy. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewright_spark.policies.builtin import own_policies
from lakewright_spark.policies.model import POLICIES, PolicyPattern, TablePolicies, to_property_name
from lakewright_spark.table_identifier import TableIdentifier

THE_TABLE = "the table"
LAKEWRIGHT = "lakewright"
"""Policies of this package's own tables."""


@dataclass(frozen=True)
class Resolved:
    """The policies of one table, and the source of each: `the table`, `lakewright`, or the text of the pattern."""

    policies: TablePolicies
    sources: Mapping[str, str]
    mistakes: tuple[str, ...] = ()
    """Conflicts with the table's columns and partitions, if these were checked."""


def resolve(table: TableIdentifier, properties: Mapping[str, str], patterns: Sequence[PolicyPattern]) -> Resolved:
    """Return the effective policies of a table with these properties. Each policy is taken as a whole from one source.

    Raises ValueError if a property with the name of a policy is not a valid policy.
    """
    policies = TablePolicies()
    sources: dict[str, str] = {}
    if builtin := own_policies(table):
        policies, sources = builtin, dict.fromkeys(_list_set_policies(builtin), LAKEWRIGHT)
    for pattern in () if builtin else patterns:
        if pattern.matches(table.warehouse, table.namespace, table.name):
            policies = pattern.override(policies)
            sources |= dict.fromkeys(_list_set_policies(pattern), pattern.match)
    table_policies = TablePolicies.from_properties(properties)
    return Resolved(
        table_policies.override(policies), sources | dict.fromkeys(_list_set_policies(table_policies), THE_TABLE)
    )


def property_name(policy: str) -> str:
    """Return the property of a policy by its name, such as `orphan-files`. Raises ValueError for an unknown name."""
    if (name := policy.replace("-", "_")) not in POLICIES:
        raise ValueError(f"expected one of {', '.join(sorted(name.replace('_', '-') for name in POLICIES))}")
    return to_property_name(name)


def _list_set_policies(policies: TablePolicies) -> list[str]:
    return [name for name in POLICIES if getattr(policies, name) is not None]
