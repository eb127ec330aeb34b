"""Tenants whose previews are equal but for their names."""

from __future__ import annotations

from collections.abc import Sequence

from lakewright.ci.preview_rows import TenantChanges
from lakewright.names.tenant_parts import mask_tenant


def group_rows(rows: Sequence[TenantChanges]) -> list[list[TenantChanges]]:
    """Return tenants with equal changes and messages together, in the order of the first of each group."""
    groups: dict[tuple[object, ...], list[TenantChanges]] = {}
    for row in rows:
        groups.setdefault(_make_signature(row), []).append(row)
    return [*groups.values()]


def _make_signature(row: TenantChanges) -> tuple[object, ...]:
    """Return a key that is equal for previews that differ in the tenant's name only."""
    names = (row.stack.stack, row.stack.tenant)
    changes = [
        (
            change.effect,
            change.type,
            mask_tenant(change.name, names),
            change.loses_data,
            *(mask_tenant(f"{line.sign} {line.path}: {line.text}", names) for line in change.step.properties),
            *change.step.keys,
        )
        for change in row.changes
    ]
    messages = [mask_tenant(message, names) for message in (row.stack.error, *row.stack.messages)]
    return (row.stack.status, row.stack.exit, *sorted(changes), *messages)
