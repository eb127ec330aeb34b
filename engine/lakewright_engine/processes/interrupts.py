"""Signals that end a run in an orderly way: Ctrl-C, SIGTERM of a scheduler, SIGHUP of a closed terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any, Self

from lakewright_engine.processes.prompt_signals import PromptSignals

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Handle signals during a `with` block. The first signal ends the run in an orderly way.

    The second signal ends it at once. Only the main thread can handle signals. An ignored SIGHUP, as under `nohup`,
    remains ignored.
    """

    def __init__(self) -> None:
        """Prepare to handle signals."""
        self._before: dict[signal.Signals, Any] = {}
        self._prompt = PromptSignals(self._note)
        self._lock = threading.Lock()
        self._on_first: Callable[[], None] | None = None
        self._has_arrived = False

    def __enter__(self) -> Self:
        """Start to handle signals."""
        self._prompt.__enter__()
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if number is signal.SIGHUP and before is signal.SIG_IGN:
                    continue
                self._before[number] = before
                signal.signal(number, self._first)
        return self

    def __exit__(self, *error: object) -> None:
        """Restore the previous signal handlers."""
        try:
            self._prompt.__exit__(*error)
        finally:
            for number, before in self._before.items():
                signal.signal(number, before)

    def call_at_first(self, on_first: Callable[[], None]) -> None:
        """Call `on_first` on a new thread at the first signal, or now if that has arrived."""
        with self._lock:
            self._on_first = on_first
            has_arrived = self._has_arrived
        if has_arrived:
            self._start(on_first)

    def _note(self, number: int) -> None:
        """Call `on_first` at the first signal. A handler could not: the main thread may hold a lock that it needs."""
        if number not in self._before:
            return
        with self._lock:
            on_first = None if self._has_arrived else self._on_first
            self._has_arrived = True
        if on_first is not None:
            self._start(on_first)

    @staticmethod
    def _start(on_first: Callable[[], None]) -> None:
        threading.Thread(target=on_first, name="interrupt").start()

    def _first(self, _number: int, _frame: object) -> None:
        for number in self._before:
            signal.signal(number, _end_at_once)


def _end_at_once(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
