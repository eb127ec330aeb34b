"""Tables as a reader saw them last: a bounded number of them, each for a few seconds."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from pyiceberg.table import Table

from lakewright_spark.results.file_index import FileIndex

Key = tuple[str, str]
"""Warehouse and path of a result."""


@dataclass(frozen=True)
class Seen:
    """A table as it was at a moment of the clock, in seconds."""

    table: Table
    index: FileIndex
    at: float


class RecentTables:
    """Keeps at most `size` tables, each for `seconds`: it holds their credentials and their metadata."""

    def __init__(self, size: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._size, self._seconds, self._clock = size, seconds, clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[Key, Seen] = OrderedDict()

    def __len__(self) -> int:
        with self._lock:
            return len(self._seen)

    def put(self, key: Key, table: Table, index: FileIndex) -> None:
        """Keep what was seen just now, in place of what is too old or too much."""
        with self._lock:
            self._seen[key] = Seen(table, index, self._clock())
            self._seen.move_to_end(key)
            self._drop_old()
            while len(self._seen) > self._size:
                self._seen.popitem(last=False)

    def get(self, key: Key) -> Seen | None:
        """Return what was seen within the last seconds."""
        with self._lock:
            self._drop_old()
            return self._seen.get(key)

    def forget(self, key: Key) -> None:
        """Drop what was seen of one table."""
        with self._lock:
            self._seen.pop(key, None)

    def _drop_old(self) -> None:
        oldest = self._clock() - self._seconds
        while self._seen and next(iter(self._seen.values())).at < oldest:
            self._seen.popitem(last=False)
