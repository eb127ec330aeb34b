"""SIGTERM and SIGINT as a wish to end that the supervisor hears of."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lakewright_spark.scheduler.supervisor import Control


@contextmanager
def control() -> Iterator[Control]:
    """A control that signals set for the block; only the main thread can be told."""
    made = Control()
    if threading.current_thread() is not threading.main_thread():
        yield made
        return
    before = {number: signal.signal(number, lambda *_: made.ended.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield made
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
