"""Adopted resources in events and counts: an engine creates or imports them, and users read that they are adopted.

Providers name the resources that they adopt in a file. AWS objects are imported; components of this package import for
no other reason than adoption.
"""

from __future__ import annotations

import copy
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lakewright_engine.display.report import to_text

from lakewright.ownership.running_stack import FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakewright_engine import Operation, Result
    from pulumi.automation.events import EngineEvent

ADOPT = "adopt"
"""The operation that replaces `create` and `import` in events."""
_OWN_COMPONENT = "lakewright:index:"
"""Type prefix of this package's components."""


@dataclass(frozen=True)
class AdoptionReportingEngine:
    """Runs another engine. Its events and counts say `adopt` instead of `create` or `import` of adopted resources."""

    run_engine: Callable[[Operation, Callable[[EngineEvent], None]], Result]
    """`run` of the other engine."""

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report each event."""
        if operation.verb not in ("preview", "up"):
            return self.run_engine(operation, on_event)
        with tempfile.TemporaryDirectory(prefix="lakewright-") as folder:
            file = Path(folder) / "adopted"
            file.touch(mode=0o600)
            events = _AdoptionEvents(file, on_event)
            environment = {**operation.environment, FILE: str(file)}
            result = self.run_engine(replace(operation, environment=environment), events.forward)
        result.changes = events.count_adoptions(result.changes)
        return result


class _AdoptionEvents:
    """Forwards events, with the operation `adopt` for adopted resources."""

    def __init__(self, file: Path, on_event: Callable[[EngineEvent], None]) -> None:
        self._file = file
        self._on_event = on_event
        self._adopted: dict[str, str] = {}
        """The engine's operation on each adopted resource, by URN."""
        self._finished: set[str] = set()

    def forward(self, event: EngineEvent) -> None:
        """Forward an event. Other receivers of the engine's event see it unchanged."""
        if event.resource_pre_event is not None:
            metadata = event.resource_pre_event.metadata
            op = to_text(metadata.op)
            if self._is_adopted(op, metadata.urn):
                self._adopted[metadata.urn] = op
        if event.summary_event is not None:
            summary = copy.copy(event.summary_event)
            counts = self.count_adoptions(cast("Mapping[Any, int]", summary.resource_changes))
            summary.resource_changes = cast("Any", counts)
            event = copy.copy(event)
            event.summary_event = summary
        self._on_event(self._rename_operation(event))

    def count_adoptions(self, changes: Mapping[Any, int]) -> dict[str, int]:
        """Return the number of resources by operation, with `adopt` for what the engine counts otherwise."""
        counts = {to_text(op): count for op, count in changes.items()}
        for op in (self._adopted[urn] for urn in self._finished):  # Engines do not count failed steps.
            if counts.get(op):
                counts[op] -= 1
                counts[ADOPT] = counts.get(ADOPT, 0) + 1
        return {op: count for op, count in counts.items() if count}

    def _is_adopted(self, op: str, urn: str) -> bool:
        if op == "import":
            return _OWN_COMPONENT in urn.split("::")[2].rpartition("$")[0]
        # `check` has written the URN before the engine can begin the step.
        return op == "create" and urn in self._file.read_text(encoding="utf-8").splitlines()

    def _rename_operation(self, event: EngineEvent) -> EngineEvent:
        for name in ("resource_pre_event", "res_outputs_event", "res_op_failed_event"):
            body = getattr(event, name)
            if body is None or self._adopted.get(body.metadata.urn) != to_text(body.metadata.op):
                continue
            if name == "res_outputs_event":
                self._finished.add(body.metadata.urn)
            event, body = copy.copy(event), copy.copy(body)
            body.metadata = copy.copy(body.metadata)
            body.metadata.op = ADOPT
            setattr(event, name, body)
        return event
