"""The result of an attempt: the attempt, the expected result, the actual result, and the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["allowed", "denied"]
"""Result of an attempt. Manifests and policies are read instead of tried: their content decides it."""

AttemptResult = Outcome | Literal["not proven"]
"""`not proven`: the attempt could not be made, or its response proves neither."""


@dataclass(frozen=True)
class VerifyCheck:
    """One attempt of a probe. It holds no secrets."""

    probe: str
    identity: str
    """Identity that tried; empty if manifests or policies were read."""
    warehouse: str
    """The warehouse that the attempt used; empty if it used none in particular."""
    attempt: str
    expected: Outcome
    found: AttemptResult
    evidence: str
    """Status codes, error types, names."""
    remedy: str = ""
    """How to make the check hold; empty if it holds, or if the evidence says it."""

    @property
    def holds(self) -> bool:
        """Return whether the result is as expected."""
        return self.found == self.expected


@dataclass(frozen=True)
class Attempt:
    """An attempt, before the runner adds the probe and the identity."""

    attempt: str
    expected: Outcome
    result: AttemptResult
    evidence: str
    remedy: str = ""
    """How to make the check hold, if it does not."""


def expect_denied(attempt: str, result: AttemptResult, evidence: str, remedy: str = "") -> Attempt:
    """Return an attempt that must be denied."""
    return Attempt(attempt, "denied", result, evidence, remedy)


def expect_allowed(attempt: str, result: AttemptResult, evidence: str, remedy: str = "") -> Attempt:
    """Return an attempt that must be allowed."""
    return Attempt(attempt, "allowed", result, evidence, remedy)


@dataclass(frozen=True)
class Note:
    """Something that a probe does not prove in this environment, and why. It is printed, and fails nothing."""

    text: str
