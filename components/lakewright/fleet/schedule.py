"""Choose the stack that starts next: the order, the limits, and the effect of an error or interrupt."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lakewright.fleet.selection import SelectedStack

_STACKS_PER_CPU = 2
"""A stack waits for servers about half of its time."""
_MOST_BY_DEFAULT = 16


class OnError(StrEnum):
    """Behavior after the first stack that failed."""

    STOP = "stop"
    """Running stacks finish; no other starts."""
    CONTINUE = "continue"


@dataclass(frozen=True)
class Bounds:
    """Limits of concurrent stacks."""

    stacks: int
    by_environment: int
    """Bound for the stacks of one environment, which share its servers."""


def default_parallel_stacks() -> int:
    """Return the default number of concurrent stacks, by the CPUs that this process may use."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cpus * _STACKS_PER_CPU, _MOST_BY_DEFAULT)


class Schedule:
    """The stacks that wait, and the number of running stacks."""

    def __init__(self, stacks: Iterable[SelectedStack], bounds: Bounds) -> None:
        """Start with all stacks waiting."""
        self.waiting = list(stacks)
        self._bounds = bounds
        self._running: Counter[str] = Counter()

    def next(self) -> SelectedStack | None:
        """Return the next stack that may start, and count it as running; None if none may."""
        if self._running.total() >= self._bounds.stacks:
            return None
        for position, stack in enumerate(self.waiting):
            if self._running[stack.environment] < self._bounds.by_environment:
                del self.waiting[position]
                self._running[stack.environment] += 1
                return stack
        return None

    def end(self, stack: SelectedStack) -> None:
        """Count a stack as ended."""
        self._running[stack.environment] -= 1
