"""Results and exceptions of `lakewright verify`. `lakewright.errors` draws the tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lakewright.errors import LakewrightError
from lakewright.terminal.text_lines import CheckLine
from lakewright.validation.documents import as_list, as_mapping

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


class VerifyError(LakewrightError):
    """Base of this package's errors."""


class IdentityUnavailableError(VerifyError):
    """The credential of a computing unit cannot be obtained from here. The message says what to do."""


class ProbeFailedError(VerifyError):
    """A step that must succeed failed. The message has its status code and error type."""


_FAILED = {"not proven": "not proven"}
"""Status of a check that does not hold, if it is not `failed`."""


def to_check_line(check: VerifyCheck) -> CheckLine:
    """Return a check as a line of text, with its evidence and its remedy."""
    identity = "/".join(part for part in (check.identity, check.warehouse) if part)
    subject = ": ".join(part for part in (check.probe, identity, check.attempt) if part)
    evidence = check.found if check.holds else f"{check.found}, expected {check.expected}"
    status = ("ok", "green") if check.holds else (_FAILED.get(check.found, "failed"), "red")
    return CheckLine(*status, subject, f"{evidence}: {check.evidence}", check.remedy)


def read_failed_checks(document: Mapping[str, Any]) -> Iterator[VerifyCheck]:
    """Yield the checks that do not hold of a document that `lakewright verify --json` printed."""
    for entry in map(as_mapping, as_list(document.get("checks"))):
        check = VerifyCheck(**{name: value for name, value in entry.items() if name != "holds"})
        if not check.holds:
            yield check
