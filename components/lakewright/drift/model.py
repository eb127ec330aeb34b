"""Differences between states and servers, by stack. Values of secrets are `[secret]`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from lakewright.terminal.json_document import make_head

EXIT_DRIFT = 7
"""Exit code of the Pulumi CLI for unexpected changes (`--expect-no-changes`)."""
EXIT_PROBLEM = 1


class DifferenceKind(StrEnum):
    """Kinds of differences."""

    CHANGED = "changed"
    """A property differs."""
    GONE = "gone"
    """The object no longer exists."""
    UNMANAGED = "unmanaged"
    """The object is in the tenant's scope, but in no stack."""
    UNREACHABLE = "unreachable"
    """The server did not respond, so the object could not be checked."""
    CHECK = "check"
    """A check of the spec's `checks` failed."""


class UnmanagedSearch(StrEnum):
    """The objects outside all stacks that a run searches for."""

    NONE = "none"
    """No search: only the differences that a refresh finds."""
    OBJECTS = "objects"
    """Objects that jobs never create: warehouses, roles, members, grants, queue settings, policies of roles, ..."""
    TABLES = "tables"
    """Also namespaces and tables."""


@dataclass(frozen=True)
class Actor:
    """The principal that changed an object."""

    name: str
    at: str
    """RFC 3339, UTC."""
    source: str
    """Record that names the actor, such as `cloudtrail` or `managed fields`."""
    is_allowed_only: bool = False
    """Whether the record says that the change was allowed, and not that it was made."""

    def describe(self) -> str:
        """Return `by NAME`, or `allowed for NAME` if the record does not say that the change was made."""
        return f"allowed for {self.name}" if self.is_allowed_only else f"by {self.name}"


@dataclass(frozen=True)
class IgnoredBy:
    """The rule of `drift.ignore` that accepts a difference."""

    reason: str
    until: str
    """Last day of the rule, as YYYY-MM-DD; empty if it does not expire."""
    place: str
    """File and path of the rule."""


@dataclass(frozen=True)
class Difference:
    """One difference between a state and a server."""

    tenant: str
    stack: str
    urn: str
    """URN of the resource; empty for an object that is in no stack."""
    type: str
    resource: str
    """Name for display."""
    property: str
    """Path of the property; empty if the difference is the whole object."""
    declared: Any
    found: Any
    kind: DifferenceKind
    actor: Actor | None = None
    ignored: IgnoredBy | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ScanProblem:
    """A part of a stack that could not be checked."""

    stack: str
    message: str


Finding = Difference | ScanProblem


@dataclass
class StackDrift:
    """The differences of one stack."""

    stack: str
    tenant: str
    environment: str = ""
    resources: int = 0
    """Number of resources that were compared."""
    total_resources: int = 0
    """Number of resources as `up` counts them: also resources without an object, such as components and providers."""
    differences: list[Difference] = field(default_factory=list[Difference])
    problems: list[str] = field(default_factory=list[str])
    """Parts that could not be checked, and the reasons."""
    locked: tuple[str, ...] = ()
    """Holders of the stack's lock: an update is running, so differences may be its doing."""

    @property
    def drift(self) -> list[Difference]:
        """Differences that no rule ignores, without objects that could not be checked."""
        return [
            difference
            for difference in self.differences
            if not difference.ignored and difference.kind is not DifferenceKind.UNREACHABLE
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the stack as JSON."""
        return {
            "stack": self.stack,
            "tenant": self.tenant,
            "environment": self.environment,
            "resources": self.resources,
            "total_resources": self.total_resources,
            "locked": list(self.locked),
            "differences": [difference.to_json() for difference in self.differences],
            "problems": self.problems,
        }


@dataclass
class DriftReport:
    """The differences of all stacks of one run."""

    stacks: list[StackDrift] = field(default_factory=list[StackDrift])
    seconds: float = 0.0
    """Time that the run took."""
    groups: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Differences with one cause on several tenants, as JSON."""
    notes: list[str] = field(default_factory=list[str])
    """Rules of `drift.ignore` that are expired or match nothing, archived warehouses, and enforced limits."""

    @property
    def exit_code(self) -> int:
        """1 if anything could not be checked, else 7 if anything differs that no rule ignores, else 0."""
        if any(stack.problems for stack in self.stacks):
            return EXIT_PROBLEM
        return EXIT_DRIFT if any(stack.drift for stack in self.stacks) else 0

    def differences(self) -> Iterator[Difference]:
        """Yield the differences of all stacks."""
        for stack in self.stacks:
            yield from stack.differences

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            **make_head("drift"),
            "seconds": round(self.seconds, 3),
            "exit": self.exit_code,
            "stacks": [stack.to_json() for stack in self.stacks],
            "groups": self.groups,
            "notes": self.notes,
        }
