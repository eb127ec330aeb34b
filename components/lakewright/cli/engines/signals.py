"""Pass requests to end on to the Pulumi CLI, which then finishes its steps, saves the state and releases its lock."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

_PASSED_AS = {
    signal.SIGINT: signal.SIGINT,
    signal.SIGTERM: signal.SIGTERM,
    signal.SIGHUP: signal.SIGTERM,  # a SIGHUP would kill the CLI
}
_ONE_REQUEST_SECONDS = 1.0
"""Signals that follow one another more quickly are one request: `timeout` and shells signal both process and group."""


class PassedSignals:
    """Sends a child process each request to end once.

    A second signal makes the CLI end at once, with its lock and its pending operations left. Only a second Ctrl-C asks
    for that.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._process: subprocess.Popen[str] | None = None
        self._last: float | None = None
        self._waiting: signal.Signals | None = None

    def pass_to(self, process: subprocess.Popen[str]) -> None:
        """Name the process that gets the signals, and those that came before it was known."""
        self._process = process
        if self._waiting is not None:
            process.send_signal(self._waiting)

    def handle(self, number: int, _frame: object = None) -> None:
        """Pass a signal on, unless it repeats a request that the process already has."""
        before, self._last = self._last, self._now()
        is_again = number == signal.SIGINT and before is not None and self._last - before >= _ONE_REQUEST_SECONDS
        if before is not None and not is_again:
            return
        passed = _PASSED_AS[signal.Signals(number)]
        if self._process is None:
            self._waiting = passed
        else:
            self._process.send_signal(passed)


@contextmanager
def passed_signals() -> Generator[PassedSignals]:
    """Pass SIGINT, SIGTERM and SIGHUP on within this context. An ignored signal, as under `nohup`, stays ignored."""
    passed = PassedSignals()
    if threading.current_thread() is not threading.main_thread():
        yield passed
        return
    found: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in _PASSED_AS}
    before = {number: handler for number, handler in found.items() if handler is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, passed.handle)
        yield passed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
