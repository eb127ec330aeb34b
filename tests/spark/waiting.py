"""Wait for a condition without using the processor, which the awaited process needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE_SECONDS = 0.05


def wait_until(condition: Callable[[], T], seconds: float = 300.0) -> T:
    """Return the first true result of a condition; fail after this time."""
    give_up = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < give_up, f"still waiting after {seconds} seconds"
        time.sleep(PAUSE_SECONDS)
    return result
