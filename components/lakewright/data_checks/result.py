"""The results of checks, and their exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lakewright.errors import LakewrightError
from lakewright.terminal.json_document import make_head


class DataCheckError(LakewrightError):
    """Base of this package's errors."""


class NotEvaluatedError(DataCheckError):
    """A check could not be evaluated. The message says why, and what to do."""


Outcome = Literal["passed", "failed", "not evaluated"]


@dataclass(frozen=True)
class Verdict:
    """The result of one assertion, before the runner adds its check and the time."""

    assertion: str
    """`exists`, `min_rows`, `newer_than`, `max_bytes`, `can read`, ..."""
    expected: str
    finding: str
    outcome: Outcome

    @classmethod
    def from_evaluation(cls, assertion: str, expected: str, finding: str, *, holds: bool) -> Verdict:
        """Return a verdict of an assertion that was evaluated."""
        return cls(assertion, expected, finding, "passed" if holds else "failed")


@dataclass(frozen=True)
class CheckResult:
    """The result of one assertion of a check. It holds no secrets."""

    spec_path: str
    """Path in the spec: `checks.0`."""
    check: str
    """The checked object: `table executions.results.rows`."""
    assertion: str
    expected: str
    finding: str
    outcome: Outcome
    at: str
    """When it was evaluated (RFC 3339, UTC)."""
    identity: str
    """The identity that read the data."""

    def to_json(self) -> dict[str, str]:
        """Return the result as JSON. Its keys are a contract with readers of `lakewright check --json`."""
        return {
            "place": self.spec_path,
            "check": self.check,
            "assertion": self.assertion,
            "expected": self.expected,
            "found": self.finding,
            "outcome": self.outcome,
            "at": self.at,
            "identity": self.identity,
        }


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
            "checks": [check.to_json() for check in self.checks],
            "problems": list(self.problems),
        }


def compute_exit_code(results: Sequence[StackChecks]) -> int:
    """Return 1 if a check could not be evaluated, else 7 if a check failed, else 0."""
    if any(result.problems or result.not_evaluated for result in results):
        return 1
    return 7 if any(result.failed for result in results) else 0


def to_json(results: Iterable[StackChecks], *, seconds: float) -> dict[str, Any]:
    """Return the document that `lakewright check --json` prints."""
    all_results = list(results)
    return {
        **make_head("check"),
        "seconds": round(seconds, 3),
        "exit": compute_exit_code(all_results),
        "stacks": [result.to_json() for result in all_results],
    }
