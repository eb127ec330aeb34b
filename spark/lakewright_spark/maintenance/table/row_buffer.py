"""The tables of namespace `ops` that jobs write, and the buffer that commits the rows of many jobs together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class OpsTable:
    """A table of `ops`: its name, columns in Spark SQL, and partition."""

    name: str
    columns: str
    partition: str


class RowBuffer(Protocol):
    """Collects rows of many tables and commits them together."""

    def add(self, warehouse: str, table: OpsTable, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows of a table of `ops`."""
        ...

    def read_once(self, warehouse: str, name: str, read: Callable[[], T]) -> T:
        """Return what `read` returned for this name at the first call of the run."""
        ...
