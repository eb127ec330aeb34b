"""SIGTERM and SIGINT as a wish to end that the supervisor hears of; told twice, it is to end without a grace."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lakewright_spark.scheduler.supervisor import Control

_WISHES = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def control() -> Iterator[Control]:
    """A control that signals set for the block; only the main thread can be told."""
    made = Control()
    if threading.current_thread() is not threading.main_thread():
        yield made
        return

    def told(*_: object) -> None:
        if made.ended.is_set():
            made.at_once.set()
        made.ended.set()

    def listen() -> None:
        for number in _WISHES:
            signal.signal(number, told)

    made.listen = listen
    before = {number: signal.getsignal(number) for number in _WISHES}
    listen()
    try:
        yield made
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
