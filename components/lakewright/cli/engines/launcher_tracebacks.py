"""Leave out the tracebacks that the Pulumi CLI's Python launcher prints when a run ends early."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulumi.automation.events import EngineEvent

_LAUNCHER = "pulumi-language-python-exec"
_BEGIN = "Traceback (most recent call last):"
_BETWEEN = "During handling of the above exception, another exception occurred:"
_INTERRUPTED = "KeyboardInterrupt"


class LauncherTracebacks:
    """Forwards events except the tracebacks of an interrupted launcher.

    The CLI interrupts the program of a failed run. The launcher then prints its own traceback, one line per event,
    after the error. Tracebacks of other origin or with another last line are forwarded.
    """

    def __init__(self, on_event: Callable[[EngineEvent], None]) -> None:
        """Forward events to `on_event`."""
        self._on_event = on_event
        self._held: list[EngineEvent] = []
        self._is_after_traceback = False

    def __call__(self, event: EngineEvent) -> None:
        """Forward an event, or hold it while it may be part of a traceback."""
        diagnostic = event.diagnostic_event
        if diagnostic is None or diagnostic.severity != "info#err":
            self._on_event(event)
            return
        line = diagnostic.message.strip("\n")
        if line == _BEGIN:
            self.flush()
            self._held.append(event)
        elif self._held:
            self._continue(event, line)
        elif not (line == _BETWEEN and self._is_after_traceback):
            self._on_event(event)

    def flush(self) -> None:
        """Forward held events: their traceback did not end."""
        held_events, self._held = self._held, []
        for event in held_events:
            self._on_event(event)

    def _continue(self, event: EngineEvent, line: str) -> None:
        self._held.append(event)
        is_first_frame = len(self._held) == 2
        if is_first_frame and _LAUNCHER not in line:
            self.flush()
        elif line.strip() and not line.startswith(" "):
            self._is_after_traceback = line.startswith(_INTERRUPTED)
            if self._is_after_traceback:
                self._held.clear()
            self.flush()
