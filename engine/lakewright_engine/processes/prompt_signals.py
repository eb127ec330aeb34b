"""Signals whose handlers run at once, although the main thread waits."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from typing import Any, Self

_WAKE = signal.SIGURG
"""A signal that nothing else here uses. Its default is to be ignored."""
_REPEAT_SECONDS = 0.05
_END_SECONDS = 5
"""Seconds to wait for the reading thread when the block ends."""


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
            on_signal: Called on the reading thread with the number of each signal. It must not wait.
        """
        self._on_signal = on_signal
        self._thread: threading.Thread | None = None
        self._runs = 0
        """How often the main thread has run the handler of SIGURG."""
        self._needed_runs = 0

    def __enter__(self) -> Self:
        """Start to read signals."""
        if threading.current_thread() is threading.main_thread():
            self._main = threading.get_ident()
            self._reader, self._writer = socket.socketpair()
            os.set_blocking(self._writer.fileno(), False)
            thread = threading.Thread(target=self._read, daemon=True, name="signals")
            thread.start()
            self._thread = thread
            self._wake_before: Any = signal.signal(_WAKE, self._note_run)
            self._descriptor_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reading signals, and restore what was set before."""
        if self._thread is None:
            return
        try:
            signal.set_wakeup_fd(self._descriptor_before)
            signal.signal(_WAKE, signal.SIG_DFL if self._wake_before is None else self._wake_before)
        finally:
            self._writer.close()
            self._thread.join(_END_SECONDS)

    def _read(self) -> None:
        with self._reader:
            while True:
                seconds = _REPEAT_SECONDS if self._runs < self._needed_runs else None
                if select.select([self._reader], [], [], seconds)[0]:
                    numbers = self._reader.recv(64)
                    if not numbers:
                        return
                    self._note_numbers([number for number in numbers if number != _WAKE])
                if self._runs < self._needed_runs:
                    signal.pthread_kill(self._main, _WAKE)

    def _note_numbers(self, numbers: list[int]) -> None:
        if numbers:
            # A run that has begun may have passed over the new signals; the run after it has not.
            self._needed_runs = self._runs + 2
        for number in numbers:
            if self._on_signal is not None:
                self._on_signal(number)

    def _note_run(self, _number: int, _frame: object) -> None:
        self._runs += 1


@contextmanager
def handle_signals(numbers: Iterable[signal.Signals], handler: Callable[[int, Any], None]) -> Generator[None]:
    """Call a handler of signals at once within this context. Ignored signals, as under `nohup`, remain ignored.

    Only the main thread can handle signals: on other threads the context changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in numbers}
    before = {number: earlier for number, earlier in handlers.items() if earlier is not signal.SIG_IGN}
    with PromptSignals():
        try:
            for number in before:
                signal.signal(number, handler)
            yield
        finally:
            for number, earlier in before.items():
                signal.signal(number, earlier)
