"""Signals that end a run in order: Ctrl-C, a scheduler's SIGTERM, and the SIGHUP of a terminal that is gone."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Listen while its `with` block lasts. The first signal ends the run in order, the second one at once.

    Only the main thread can listen. A SIGHUP that is ignored, as under `nohup`, stays ignored.
    """

    def __init__(self) -> None:
        self._started = threading.Lock()
        self._on_first: Callable[[], None] | None = None
        self._has_arrived = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if number is signal.SIGHUP and before is signal.SIG_IGN:
                    continue
                self._before[number] = before
                signal.signal(number, self._first)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def call_at_first(self, on_first: Callable[[], None]) -> None:
        """Call `on_first` on a thread of its own at the first signal; now, if that has arrived already."""
        self._on_first = on_first
        if self._has_arrived:
            self._start(on_first)

    def _first(self, _number: int, _frame: object) -> None:
        for number in self._before:
            signal.signal(number, _end_at_once)
        self._has_arrived = True
        if self._on_first is not None:
            self._start(self._on_first)

    def _start(self, on_first: Callable[[], None]) -> None:
        # The signal may arrive in the middle of `call_at_first`: whoever comes first starts it.
        if self._started.acquire(blocking=False):
            threading.Thread(target=on_first, name="interrupt").start()


def _end_at_once(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
