"""Engine events in the form of the CLI's event log, the input of the display and of `--json`."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from pulumi.automation.events import EngineEvent

from lakewright_engine.display.hidden_properties import copy_hidden_paths
from lakewright_engine.display.secret_mask import SecretMask
from lakewright_engine.model.properties import to_display_json
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep

OnEvent = Callable[[EngineEvent], None]


class Events:
    """Send numbered events in order, one at a time, and count the changes."""

    def __init__(self, on_event: OnEvent, *, planning: bool, refreshing: bool, mask: SecretMask | None = None) -> None:
        """Send events to a function.

        Args:
            on_event: Receives the events.
            planning: Whether the run is a preview.
            refreshing: Whether the command is `refresh`.
            mask: Masks secret configuration values in messages and program output, and in properties where they are
                displayed.
        """
        self._on_event = on_event
        self._mask = mask or SecretMask()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._planning = planning
        self._refreshing = refreshing
        self._started = time.monotonic()
        self.changes: Counter[str] = Counter()
        self.messages: list[str] = []

    def prelude(self, config: dict[str, str]) -> None:
        """Send the configuration of the stack, the first event."""
        self._send("preludeEvent", {"config": config})

    def report_start(self, step: DeploymentStep) -> None:
        """Report that a step has started."""
        if not step.is_internal:
            self._send("resourcePreEvent", {"metadata": self._metadata(step, step.op), "planning": self._planning})

    def report_end(self, step: DeploymentStep) -> None:
        """Count a finished step."""
        if step.is_internal:
            return
        refresh = step.op == "refresh"
        if self._refreshing if refresh else step.logical:
            self.changes[step.counted_as] += 1

    def outputs(self, step: DeploymentStep) -> None:
        """Report the outputs of a step's resource."""
        if not step.is_internal:
            metadata = self._metadata(step, step.counted_as)
            self._send("resOutputsEvent", {"metadata": metadata, "planning": self._planning})

    def report_failure(self, step: DeploymentStep) -> None:
        """Report that a step has failed."""
        self._send("resOpFailedEvent", {"metadata": self._metadata(step, step.op), "status": 0, "steps": 0})

    def diagnostic(
        self, severity: str, message: str, urn: str = "", *, stream: int = 0, ephemeral: bool = False
    ) -> None:
        """Send a message. An ephemeral message is a resource's status, which its next message replaces."""
        message = self._mask.apply(message)
        if severity in ("error", "warning") and not ephemeral:
            self.messages.append(f"{severity}: {message.strip()}")
        prefix = {"error": "error: ", "warning": "warning: ", "debug": "debug: "}.get(severity, "")
        body: dict[str, Any] = {
            "message": message.rstrip("\n") + "\n",
            "color": "never",
            "severity": severity,
            "prefix": prefix,
        }
        optional = {"urn": urn, "streamId": stream, "ephemeral": ephemeral}
        self._send("diagnosticEvent", body | {key: value for key, value in optional.items() if value})

    def output(self, line: str, *, error: bool) -> None:
        """Send a line that the program printed."""
        severity = "info#err" if error else "info"
        self._send(
            "diagnosticEvent", {"message": self._mask.apply(line) + "\n", "color": "never", "severity": severity}
        )

    def has_reported_error(self, message: str) -> bool:
        """Return whether a message was sent as an error."""
        return f"error: {self._mask.apply(message).strip()}" in self.messages

    def summary(self) -> None:
        """Send the counts of changes and the duration, the last events."""
        seconds = round(time.monotonic() - self._started)
        body = {
            "maybeCorrupt": False,
            "durationSeconds": seconds,
            "resourceChanges": dict(self.changes),
            "PolicyPacks": {},
        }
        self._send("summaryEvent", body)
        self._send("cancelEvent", {})

    def _send(self, kind: str, body: dict[str, Any]) -> None:
        with self._lock:
            number = next(self._numbers)
            event: EngineEvent = cast("Any", EngineEvent).from_json(
                cast(
                    "Any",
                    {"sequence": number, "timestamp": int(time.time()), kind: body if kind != "cancelEvent" else {}},
                )
            )
            copy_hidden_paths(event, body)
            self._mask.attach(event)
            try:
                self._on_event(event)
            except (OSError, SystemExit):
                # The terminal or pipe is closed, and rich requests an exit. The run still ends in an orderly way.
                self._on_event = _ignore

    def _metadata(self, step: DeploymentStep, op: str) -> dict[str, Any]:
        state, diff = step.state, step.diff
        detailed = diff.detailed
        old = self._state(step.old)
        return {
            "op": op,
            "urn": state.urn,
            "type": state.type,
            "provider": state.provider,
            "old": old,
            "new": old if step.new is step.old else self._state(step.new),
            "keys": diff.replace_keys or None,
            "diffs": diff.keys or None,
            "detailedDiff": {p: {"diffKind": k, "inputDiff": i} for p, (k, i) in detailed.items()}
            if detailed
            else None,
            "logical": step.logical,
        }

    def _state(self, state: ResourceState | None) -> dict[str, Any] | None:
        if state is None:
            return None
        return {
            "type": state.type,
            "urn": state.urn,
            "id": state.id,
            "parent": state.parent,
            "provider": state.provider,
            "custom": state.custom,
            "delete": state.delete,
            "protect": state.protect,
            "retainOnDelete": state.retain_on_delete,
            "inputs": to_display_json(state.inputs),
            "outputs": to_display_json(state.outputs),
            "initErrors": [self._mask.apply(error) for error in state.init_errors] or None,
            "hideDiffs": state.hide_diff or None,
        }


def _ignore(_event: EngineEvent) -> None:
    """Discard an event."""
