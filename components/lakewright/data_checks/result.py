"""The results of checks, and their exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Outcome = Literal["passed", "failed", "not evaluated"]


@dataclass(frozen=True)
class Verdict:
    """The result of one assertion, before the runner adds its check and the time."""

    assertion: str
    """`exists`, `min_rows`, `newer_than`, `max_bytes`, `can read`, ..."""
    expected: str
    found: str
    outcome: Outcome

    @classmethod
    def of(cls, assertion: str, expected: str, found: str, *, holds: bool) -> Verdict:
        """Return a verdict of an assertion that was evaluated."""
        return cls(assertion, expected, found, "passed" if holds else "failed")


@dataclass(frozen=True)
class CheckResult:
    """The result of one assertion of a check. It holds no secrets."""

    place: str
    """Path in the spec: `checks.0`."""
    check: str
    """The checked object: `table executions.results.rows`."""
    assertion: str
    expected: str
    found: str
    outcome: Outcome
    at: str
    """When it was evaluated (RFC 3339, UTC)."""
    identity: str
    """The identity that read the data."""


@dataclass
class StackChecks:
    """The results of one tenant."""

    stack: str
    tenant: str
    environment: str
    checks: list[CheckResult] = field(default_factory=list[CheckResult])
    problems: list[str] = field(default_factory=list[str])
    """Why none of the tenant's checks could be evaluated."""

    @property
    def failed(self) -> list[CheckResult]:
        """Return the results that contradict the spec."""
        return [check for check in self.checks if check.outcome == "failed"]

    @property
    def not_evaluated(self) -> list[CheckResult]:
        """Return the results that prove nothing."""
        return [check for check in self.checks if check.outcome == "not evaluated"]

    def to_json(self) -> dict[str, Any]:
        """Return the results as JSON."""
        return {
            "stack": self.stack,
            "tenant": self.tenant,
            "environment": self.environment,
            "checks": [asdict(check) for check in self.checks],
            "problems": list(self.problems),
        }


def exit_code_of(results: Sequence[StackChecks]) -> int:
    """Return 1 if a check could not be evaluated, else 7 if one failed, else 0."""
    if any(result.problems or result.not_evaluated for result in results):
        return 1
    return 7 if any(result.failed for result in results) else 0


def to_json(results: Iterable[StackChecks], *, seconds: float) -> dict[str, Any]:
    """Return the document that `lakewright check --json` prints."""
    listed = list(results)
    return {
        "version": 1,
        "seconds": round(seconds, 3),
        "exit": exit_code_of(listed),
        "stacks": [result.to_json() for result in listed],
    }
