"""A tenant's row in the table of a preview: what is created, updated, replaced and deleted, and which data are lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakewright.ci.documents import FleetPreview, PreviewStep, StackPreview
from lakewright.names.tenant_parts import mask_tenant

DATA_TYPES = frozenset({"Warehouse", "Table", "Bucket", "BucketV2", "StoreBucket", "Namespace", "Project"})
"""Kinds of resources that hold data, or the entry of data in the catalog."""
_DATA_PACKAGES = ("pulumi-python:", "aws:")
"""Packages of these kinds: a Namespace of Kubernetes holds no data."""
_DROPPED_COLUMNS = (("-", "columns"), ("+", "dropped_columns"))
"""Changes of a table that drop columns."""
_EFFECTS = {
    "create": "create",
    "adopt": "adopt",
    "import": "import",
    "import-replacement": "replace",
    "update": "update",
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "discard-replaced": "replace",
    "delete": "delete",
    "retain": "retain",
    "retain-replaced": "replace",
    "discard": "delete",
    "read-discard": "delete",
    "remove-pending-replace": "delete",
}
_DANGER = ("delete", "replace", "update", "adopt", "create", "import", "drift", "retain")
"""Effects, the most dangerous first."""


@dataclass(frozen=True)
class ResourceChange:
    """The change of one resource."""

    effect: str
    """`create`, `update`, `replace`, `delete`, `retain`, `adopt`, `import`, or `drift` (a change outside the stack)."""
    type: str
    name: str
    loses_data: bool
    step: PreviewStep


@dataclass(frozen=True)
class TenantChanges:
    """The changes of one stack, the most dangerous first."""

    stack: StackPreview
    changes: tuple[ResourceChange, ...]

    @property
    def title(self) -> str:
        """The stack's name, with the tenant's name if it differs."""
        stack, tenant = self.stack.stack, self.stack.tenant
        return stack if tenant in ("", stack) else f"{stack} ({tenant})"

    @property
    def has_failed(self) -> bool:
        """Whether the stack could not be previewed."""
        stack = self.stack
        return stack.status in ("failed", "interrupted") or bool(stack.error) or stack.exit not in (None, 0, 7)

    @property
    def is_skipped(self) -> bool:
        """Whether the stack was not previewed, as an earlier preview failed."""
        return self.stack.status == "skipped"

    @property
    def is_absent(self) -> bool:
        """Whether the stack does not exist yet."""
        return self.stack.status == "not deployed"

    @property
    def losses(self) -> list[ResourceChange]:
        """The changes that lose data."""
        return [change for change in self.changes if change.loses_data]

    def count(self, effect: str) -> int:
        """Return the number of resources with this effect."""
        return sum(change.effect == effect for change in self.changes)

    def rank_danger(self) -> tuple[int | str, ...]:
        """Return a sort key that puts the most dangerous tenant first."""
        counts = (-len(self.losses), *(-self.count(effect) for effect in _DANGER))
        return (*counts[:3], 0 if self.has_failed else 1, 0 if self.is_skipped else 1, *counts[3:], self.stack.stack)


def list_tenant_changes(preview: FleetPreview) -> list[TenantChanges]:
    """Return the changes of all stacks, the most dangerous first."""
    return sorted(
        (TenantChanges(stack, _list_changes(stack)) for stack in preview.stacks), key=TenantChanges.rank_danger
    )


def _list_changes(stack: StackPreview) -> tuple[ResourceChange, ...]:
    """Return one change for each resource: a replacement has up to three steps, and an adoption may have an update."""
    changes: dict[str, ResourceChange] = {}
    for step in stack.steps:
        change = _parse_change(step)
        if change is None:
            continue
        key = step.urn or f"{step.type} {step.name}"
        before = changes.get(key)
        if before is None or _rank_change(change) < _rank_change(before):
            changes[key] = change
        if before is not None and {before.effect, change.effect} == {"adopt", "update"}:
            changes[key] = replace(changes[key], effect="adopt")
    return tuple(sorted(changes.values(), key=lambda change: (_rank_change(change), change.type, change.name)))


def _rank_change(change: ResourceChange) -> tuple[int, int, int]:
    # The step `replace` has the properties; the steps before and after it have none.
    return (not change.loses_data, _DANGER.index(change.effect), not change.step.properties)


def _parse_change(step: PreviewStep) -> ResourceChange | None:
    effect = _EFFECTS.get(step.op)
    if step.op == "refresh":
        effect = "drift" if step.result in ("update", "delete") else None
    if effect is None or step.type == "pulumi:pulumi:Stack" or step.type.startswith("pulumi:providers:"):
        return None
    kind = step.type.rpartition(":")[2].rpartition("/")[2]
    return ResourceChange(effect, step.type, step.name, _loses_data(step, kind, effect), step)


def _loses_data(step: PreviewStep, kind: str, effect: str) -> bool:
    if kind not in DATA_TYPES or not step.type.startswith(_DATA_PACKAGES):
        return False
    if effect in ("delete", "replace"):
        return True
    drops = any((line.sign, line.path.partition("[")[0]) in _DROPPED_COLUMNS for line in step.properties)
    return kind == "Table" and effect == "update" and drops


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
