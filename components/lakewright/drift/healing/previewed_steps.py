"""The steps of a preview by resource, as `lakewright preview --json` prints them. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lakewright.validation.documents import as_list, as_mapping

_UNCHANGED = frozenset({"same", "read", "refresh"})
_REPLACEMENT = frozenset({"create-replacement", "delete-replaced", "replace", "discard-replaced", "read-replacement"})
_PROVIDER = "pulumi:providers:"


@dataclass(frozen=True)
class PreviewedStep:
    """The change that an update would make to one resource."""

    op: str
    """Operation; `replace` stands for all parts of a replacement."""
    urn: str
    type: str
    keys: frozenset[str] = frozenset()
    """Top-level properties that change."""

    @property
    def is_change(self) -> bool:
        """Return whether the step changes an object. A provider's settings are not an object."""
        return self.op not in _UNCHANGED and not self.type.startswith((_PROVIDER, "pulumi:pulumi:"))

    def describe(self) -> str:
        """Return the step for messages: `update Warehouse acme-main (protected)`."""
        keys = f" ({', '.join(sorted(self.keys))})" if self.op == "update" and self.keys else ""
        return f"{self.op} {self.type.rpartition(':')[2]} {self.urn.rpartition('::')[2]}{keys}"

    def to_json(self) -> dict[str, Any]:
        """Return the step as JSON."""
        return {"op": self.op, "urn": self.urn, "type": self.type, "keys": sorted(self.keys)}


def read_steps(document: Mapping[str, Any]) -> dict[str, PreviewedStep]:
    """Return the step of each resource by URN. Steps of a refresh are left out."""
    steps: dict[str, PreviewedStep] = {}
    for entry in map(as_mapping, as_list(document.get("steps"))):
        op, urn = str(entry.get("op")), str(entry.get("urn"))
        if op == "refresh":
            continue
        step = PreviewedStep(
            "replace" if op in _REPLACEMENT else op,
            urn,
            str(entry.get("type")),
            frozenset(map(str, as_list(entry.get("keys")))),
        )
        earlier = steps.get(urn)
        if earlier is None or not earlier.is_change:
            steps[urn] = step
        elif earlier.op == step.op:
            steps[urn] = replace(step, keys=earlier.keys | step.keys)
    return steps


def list_changes(steps: Iterable[PreviewedStep]) -> list[PreviewedStep]:
    """Return the steps that change an object."""
    return [step for step in steps if step.is_change]
