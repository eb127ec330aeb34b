"""Signals whose handlers run at once, although the main thread waits."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any, Self

_WAKE = signal.SIGURG
"""A signal that nothing else here uses. Its default is to be ignored."""
_REPEAT_SECONDS = 0.05
_END_SECONDS = 5
"""Seconds to wait for `on_signal` at the end of the block."""


class PromptSignals:
    """Wake the main thread at each handled signal during a `with` block, so that it runs the signal's handler.

    Python runs handlers on the main thread, after its present call. A signal that arrives right before that thread
    waits for a lock, a socket or a process does not end the wait, so that the handler may never run. Python also writes
    the numbers of signals to a socket at once. A thread reads them, and sends SIGURG to the main thread until the
    handlers have run.

    Only the main thread can handle signals: on other threads the block changes nothing. A process that is forked in
    the block must call `signal.set_wakeup_fd(-1)`, or its signals are read here.
    """

    def __init__(self, on_signal: Callable[[int], None] | None = None) -> None:
        """Prepare to read signals.

        Args:
            on_signal: Called on the reading thread with the number of each signal.
        """
        self._on_signal = on_signal
        self._thread: threading.Thread | None = None
        self._have_run = threading.Event()
        self._ends = False

    def __enter__(self) -> Self:
        """Start to read signals."""
        if threading.current_thread() is threading.main_thread():
            self._main = threading.get_ident()
            self._reader, self._writer = socket.socketpair()
            os.set_blocking(self._writer.fileno(), False)
            thread = threading.Thread(target=self._read, daemon=True, name="signals")
            thread.start()
            self._thread = thread
            self._wake_before: Any = signal.signal(_WAKE, self._note_wake)
            self._descriptor_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reading signals, and restore what was set before."""
        if self._thread is None:
            return
        signal.set_wakeup_fd(self._descriptor_before)
        self._ends = True
        self._have_run.set()
        self._writer.close()
        self._thread.join(_END_SECONDS)
        signal.signal(_WAKE, self._wake_before)
        self._reader.close()

    def _read(self) -> None:
        while numbers := self._reader.recv(64):
            for number in numbers:
                if number != _WAKE:
                    if self._on_signal is not None:
                        self._on_signal(number)
                    self._wake_main_thread()

    def _wake_main_thread(self) -> None:
        """Send SIGURG until the main thread has run its handler. It runs handlers of earlier signals before that."""
        self._have_run.clear()
        while not self._ends:
            signal.pthread_kill(self._main, _WAKE)
            if self._have_run.wait(_REPEAT_SECONDS):
                return

    def _note_wake(self, _number: int, _frame: object) -> None:
        self._have_run.set()
