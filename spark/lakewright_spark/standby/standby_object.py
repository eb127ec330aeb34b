"""The parts that a table and a view of a standby have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyiceberg.typedef import Identifier

from lakewright_spark.errors import LeaseLostError, StandbyError
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.fence import FinishedCopy
from lakewright_spark.standby.mark import StandbyMark


@dataclass(frozen=True)
class StandbyObject(ABC):
    """A table or view in the source, and its copy in the standby."""

    identifier: Identifier
    source_name: str
    """The source, as marks name it."""
    source: Endpoint | None
    """None: the source is lost."""
    standby: Endpoint
    check_claim: Callable[[], None] = lambda: None
    """Raises LeaseLostError if another process may change the standby."""

    @property
    def name(self) -> str:
        """Name within the warehouse."""
        return ".".join(self.identifier)

    def has_lost_claim(self, error: BaseException) -> bool:
        """Return whether another process may change the standby, after an error of a promotion."""
        try:
            self.check_claim()
        except LeaseLostError:
            return True
        return isinstance(error, LeaseLostError)

    @abstractmethod
    def find_copy(self) -> tuple[Any, StandbyMark] | None:
        """Return the object in the standby and its mark; None if the standby has no object of the name."""

    def find_promotion(self) -> StandbyMark | None:
        """Return the mark of an object that was promoted."""
        copy = self.find_copy()
        return copy[1] if copy and copy[1].promoted_at else None

    def promote_last_copy(self, now: datetime) -> StandbyMark:
        """Let the standby have users, without the source, and return the mark. Changes after the copy are lost."""
        return self.find_promotion() or self._release(now)

    def mark_source(self) -> None:
        """Let later migrations leave out what the promotion left in the source. Without the mark they refuse its name.

        The promotion has ended, so no error of the source changes its result.
        """
        with suppress(Exception):
            self._mark_source(FinishedCopy("", str(self.standby)).to_property())

    @abstractmethod
    def _mark_source(self, properties: dict[str, str]) -> None:
        """Set properties of what the promotion left in the source."""

    @abstractmethod
    def _release(self, now: datetime) -> StandbyMark:
        """Let the standby have users, and return the mark."""

    def _require_source(self) -> Endpoint:
        if self.source is None:
            raise StandbyError(f"{self}: expected {self.source_name}, which was given up as lost")
        return self.source
