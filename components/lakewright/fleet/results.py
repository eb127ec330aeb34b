"""The result of an operation on each stack of a fleet, and the report of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakewright.fleet.selection import SelectedStack
from lakewright.terminal.json_document import make_head
from lakewright.validation.documents import as_list, as_mapping, as_text

INTERRUPTED_EXIT = 130
UNEXPECTED_CHANGES_EXIT = 7

_NO_CHANGE = {"same", "read", "read-replacement", "refresh", "discard", "discard-replaced"}
_OPERATION_KEYS = ("steps", "changes", "outputs", "messages")
_ADVICE = "Continue with: "
"""Beginning of the last line of an interrupted operation, which says nothing about the stack."""
_EMPTY: dict[str, Any] = {"steps": [], "changes": {}, "outputs": {}, "messages": []}


class StackStatus(StrEnum):
    """Results of the operation on a stack."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    """There are changes; after `up` and `refresh` they are made."""
    PASSED = "passed"
    """All checks of `verify` hold."""
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"
    """Not started, because of an earlier error or an interrupt."""
    NOT_DEPLOYED = "not deployed"
    """The backend has no such stack, only the project has its file."""


DONE = frozenset({StackStatus.UNCHANGED, StackStatus.CHANGED, StackStatus.PASSED, StackStatus.NOT_DEPLOYED})
"""Statuses of stacks that need no second attempt."""


@dataclass(frozen=True)
class StackResult:
    """The result of one stack."""

    stack: SelectedStack
    status: StackStatus
    seconds: float = 0.0
    exit: int | None = None
    """Exit code of the stack's process; None if it did not start or was killed."""
    error: str = ""
    """The first error, in one line."""
    log: str = ""
    """The file with the whole output."""
    is_resumed: bool = False
    """Whether the result is from the run that was resumed."""
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The output of the command with --json."""

    @property
    def changes(self) -> dict[str, int]:
        """Number of resources by operation, without unchanged resources."""
        changes = as_mapping(self.document.get("changes"))
        return {op: count for op, count in changes.items() if op not in _NO_CHANGE and count}

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the stack in the fleet's JSON document."""
        body = {key: value for key, value in self.document.items() if key not in ("stack", "exit")}
        return {
            "stack": self.stack.name,
            "tenant": self.stack.tenant,
            "environment": self.stack.environment,
            "labels": self.stack.labels,
            "status": self.status.value,
            "seconds": round(self.seconds, 3),
            "exit": self.exit,
            "error": self.error,
            "log": self.log,
            "resumed": self.is_resumed,
            **_EMPTY,
            **body,
        }


class WaveStatus(StrEnum):
    """Results of a wave of `fleet up --waves`."""

    PASSED = "passed"
    """All stacks are updated, and nothing differs from their states."""
    FAILED = "failed"
    """A stack is not updated, differs from its state, or fails a check of its spec."""
    UPDATED = "updated"
    """All stacks of the last wave are updated. No wave depends on it, so it is not checked."""
    SKIPPED = "skipped"
    """Not started, because of an earlier wave."""


@dataclass(frozen=True)
class WaveResult:
    """The result of a wave."""

    name: str
    """The text of the option, such as `canary` or `10%`."""
    stacks: tuple[str, ...]
    status: WaveStatus
    faults: tuple[str, ...] = ()
    """Reasons of a failure, one line each."""

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the wave in the fleet's JSON document."""
        return {
            "wave": self.name,
            "stacks": list(self.stacks),
            "status": self.status.value,
            "faults": list(self.faults),
        }


@dataclass(frozen=True)
class FleetReport:
    """The results of all stacks, sorted by name."""

    command: str
    results: Sequence[StackResult]
    seconds: float
    is_interrupted: bool = False
    waves: Sequence[WaveResult] = ()
    """The results of the waves in their order; empty for a run without waves."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of stacks by status, in the order of the statuses."""
        counter = Counter(result.status for result in self.results)
        return {status.value: counter[status] for status in StackStatus if counter[status]}

    @property
    def remaining(self) -> list[StackResult]:
        """The stacks that need another attempt."""
        return [result for result in self.results if result.status not in DONE]

    @property
    def not_deployed(self) -> list[str]:
        """The names of the stacks that the backend does not have."""
        return [result.stack.name for result in self.results if result.status is StackStatus.NOT_DEPLOYED]

    @property
    def exit_code(self) -> int:
        """Return 130 after an interrupt, 1 after an error, 7 for unexpected changes, else 0."""
        if self.is_interrupted:
            return INTERRUPTED_EXIT
        if self.remaining:
            return 1
        return max((result.exit or 0 for result in self.results), default=0)

    def to_json(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return {
            **make_head(self.command),
            "stacks": [result.to_json() for result in self.results],
            "summary": self.counts,
            **({"waves": [wave.to_json() for wave in self.waves]} if self.waves else {}),
            "seconds": round(self.seconds, 3),
            "exit": self.exit_code,
        }


def create_result(
    stack: SelectedStack,
    exit_code: int,
    document: Mapping[str, Any],
    error_lines: Iterable[str],
    *,
    seconds: float,
    log: str,
    is_interrupted: bool = False,
) -> StackResult:
    """Return the result of a stack whose process ended.

    Args:
        stack: The stack.
        exit_code: Exit code of its process; negative for a signal.
        document: The JSON that it printed; empty if it printed none.
        error_lines: Its output to standard error.
        seconds: Duration.
        log: File with the whole output.
        is_interrupted: Whether the process was asked to stop.
    """
    known_exit = exit_code if exit_code >= 0 else None
    if exit_code in (0, UNEXPECTED_CHANGES_EXIT):
        return StackResult(stack, _derive_status(document), seconds, known_exit, "", log, document=document)
    status = StackStatus.INTERRUPTED if is_interrupted else StackStatus.FAILED
    error = find_first_error(exit_code, document, error_lines)
    return StackResult(stack, status, seconds, known_exit, error, log, document=document)


def find_first_error(exit_code: int, document: Mapping[str, Any], error_lines: Iterable[str]) -> str:
    """Return the first error of a failed stack in one line."""
    messages = [text for text in as_list(document.get("messages")) if as_text(text)]
    texts = [line.strip() for line in error_lines]
    lines = [line for line in texts if line and not line.startswith(_ADVICE)]
    failed = [*messages, *lines]
    error = next((text for text in failed if text.startswith("error: ")), "")
    if not error and (probes := as_list(document.get("failed_probes"))):
        return f"checks that do not hold: {', '.join(map(str, probes))}"
    if not error and exit_code < 0:
        return f"its process was ended by signal {-exit_code}"
    if "Traceback (most recent call last)" in error:  # the first line names the process, the last line the error
        error = " ".join(error.splitlines()[:: max(1, len(error.splitlines()) - 1)])
    last = lines[-1] if lines else f"exit code {exit_code} without an error message"
    return " ".join((error.removeprefix("error: ") or last).split())


def _derive_status(document: Mapping[str, Any]) -> StackStatus:
    if "holds" in document:
        return StackStatus.PASSED
    changes = as_mapping(document.get("changes"))
    changed = any(count and op not in _NO_CHANGE for op, count in changes.items())
    return StackStatus.CHANGED if changed else StackStatus.UNCHANGED
