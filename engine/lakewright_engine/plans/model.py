"""The model of a kept plan of the embedded engine: what it was made of, the objects it found, and its steps."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, cast

from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import Diff


@dataclass(frozen=True)
class PlanOptions:
    """The options of the preview that decide its steps. An update by the plan uses the same."""

    _: KW_ONLY
    refresh: bool = False
    targets: tuple[str, ...] = ()
    target_dependents: bool = False
    excludes: tuple[str, ...] = ()
    exclude_dependents: bool = False
    replace: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> PlanOptions:
        """Read options. Raise TypeError for an unknown option."""
        values: dict[str, Any] = {
            key: tuple(cast("list[str]", value)) if isinstance(value, list) else value for key, value in body.items()
        }
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON."""
        return json.loads(json.dumps(asdict(self)))


@dataclass(frozen=True)
class StateVersion:
    """The version of a stack's state."""

    hash: str
    """SHA-256 of its resources and pending operations, without times and ciphertexts."""
    time: str
    """Time of its last write, RFC 3339 in UTC; empty for a new stack."""


@dataclass(frozen=True)
class PlannedStep:
    """One step of a preview."""

    op: str
    urn: str
    type: str
    diff: Diff
    old: ResourceState | None
    """The object before the step: id and inputs; None for a creation and for an unchanged resource."""
    new: ResourceState | None
    """The resource after the step; None for a deletion. It has outputs only if a component registered them."""


@dataclass(frozen=True)
class KnownObject:
    """An object as the server had it when the plan was made."""

    state: ResourceState
    exists: bool

    @property
    def key(self) -> tuple[str, str]:
        """URN and id. A URN may have two objects after an interrupted replacement."""
        return self.state.urn, self.state.id


@dataclass(frozen=True)
class PlanSteps:
    """The part of a plan that an update follows."""

    steps: list[PlannedStep]
    objects: list[KnownObject]
    seed: bytes
    """Random seed of the preview, so that the update makes the names that were reviewed."""
