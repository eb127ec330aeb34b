"""Signals that end a run in an orderly way: Ctrl-C, SIGTERM of a scheduler, SIGHUP of a closed terminal."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Handle signals during a `with` block. The first signal ends the run in an orderly way.

    The second signal ends it at once. Only the main thread can handle signals. An ignored SIGHUP, as under `nohup`,
    remains ignored.

    Python runs a handler on the main thread, after its present call. A signal that arrives right before that thread
    waits for a lock does not wake it, so the handler may never run. Python writes the numbers of signals to a socket at
    once, and another thread reads them.
    """

    def __init__(self) -> None:
        """Prepare to handle signals."""
        self._before: dict[signal.Signals, Any] = {}
        self._descriptor_before = -1
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start to handle signals."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if number is signal.SIGHUP and before is signal.SIG_IGN:
                    continue
                self._before[number] = before
                signal.signal(number, self._first)
            self._descriptor_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the previous signal handlers."""
        if self._before:
            signal.set_wakeup_fd(self._descriptor_before)
        for number, before in self._before.items():
            signal.signal(number, before)
        self._writer.close()
        if self._thread is None:
            self._reader.close()

    def call_at_first(self, on_first: Callable[[], None]) -> None:
        """Call `on_first` on a new thread at the first signal, or now if that has arrived."""
        self._thread = threading.Thread(target=self._read, args=(on_first,), daemon=True, name="interrupt")
        self._thread.start()

    def _read(self, on_first: Callable[[], None]) -> None:
        has_arrived = False
        with self._reader:
            while numbers := self._reader.recv(64):
                if not has_arrived and self._before.keys() & {*numbers}:
                    has_arrived = True
                    on_first()

    def _first(self, _number: int, _frame: object) -> None:
        for number in self._before:
            signal.signal(number, _end_at_once)


def _end_at_once(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
