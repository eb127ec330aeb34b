"""Forward signals to the Pulumi CLI, which then finishes its steps, saves the state and releases its lock."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from lakewright_engine.processes.prompt_signals import handle_signals

_FORWARDED_AS = {
    signal.SIGINT: signal.SIGINT,
    signal.SIGTERM: signal.SIGTERM,
    signal.SIGHUP: signal.SIGTERM,  # a SIGHUP would kill the CLI
}
_SAME_REQUEST_SECONDS = 1.0
"""Signals within this time are one request: `timeout` and shells signal both process and group."""


class ForwardedSignals:
    """Forwards each request to end to a child process once.

    A second signal makes the CLI exit immediately and leave its lock and pending operations. Only a second Ctrl-C
    requests that.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Start without a process; `now` returns seconds."""
        self._now = now
        self._process: subprocess.Popen[str] | None = None
        self._last: float | None = None
        self._waiting: signal.Signals | None = None

    @property
    def has_arrived(self) -> bool:
        """Whether a signal has arrived."""
        return self._last is not None

    def forward_to_process(self, process: subprocess.Popen[str]) -> None:
        """Forward signals to this process, including signals received earlier."""
        self._process = process
        if self._waiting is not None:
            process.send_signal(self._waiting)

    def handle(self, number: int, _frame: object = None) -> None:
        """Forward a signal, unless it repeats a request."""
        before, self._last = self._last, self._now()
        is_again = number == signal.SIGINT and before is not None and self._last - before >= _SAME_REQUEST_SECONDS
        if before is not None and not is_again:
            return
        passed = _FORWARDED_AS[signal.Signals(number)]
        if self._process is None:
            self._waiting = passed
        else:
            self._process.send_signal(passed)


@contextmanager
def forward_signals() -> Generator[ForwardedSignals]:
    """Forward SIGINT, SIGTERM and SIGHUP within this context. Ignored signals, as under `nohup`, remain ignored."""
    passed = ForwardedSignals()
    with handle_signals(_FORWARDED_AS, passed.handle):
        yield passed
