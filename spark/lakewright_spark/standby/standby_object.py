"""The parts that a table and a view of a standby have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from pyiceberg.typedef import Identifier

from lakewright_spark.errors import LakewrightSparkError, LeaseLostError, StandbyError
from lakewright_spark.migration.endpoint import Endpoint, rename_moved
from lakewright_spark.migration.fence import FENCE, FINISHED, FinishedCopy, describe_fence, describe_holder
from lakewright_spark.pyiceberg_client.read_errors import describe_error
from lakewright_spark.standby.mark import StandbyMark


@dataclass(frozen=True)
class StandbyObject(ABC):
    """A table or view in the source, and its copy in the standby."""

    kind: ClassVar[str]
    """The kind of object, as messages name it."""

    identifier: Identifier
    source_name: str
    """The source, as marks name it."""
    source: Endpoint | None
    """None: the source is lost."""
    standby: Endpoint
    check_claim: Callable[[], None] = lambda: None
    """Raises LeaseLostError if another process may change the standby."""

    def __str__(self) -> str:
        """Return the text form."""
        return f"{self.kind} {self.name}"

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

    def mark_source(self) -> str:
        """Let later migrations leave out what the promotion left in the source, and return why they cannot.

        The promotion has ended, so an error of the source does not change its result. Without the mark, a migration
        refuses the name.
        """
        try:
            stopped_properties = self._find_stopped_properties()
            if stopped_properties is not None and not {FENCE, FINISHED} & stopped_properties.keys():
                self._mark_source(FinishedCopy("", str(self.standby)).to_property())
        except Exception as error:  # noqa: BLE001  # any error: the promotion has ended
            return f"not marked as promoted in {self.source_name}: {_describe(error)}"
        return ""

    @abstractmethod
    def _find_stopped_properties(self) -> Mapping[str, str] | None:
        """Return the properties of what the source keeps from its users; None if the source keeps nothing."""

    @abstractmethod
    def _mark_source(self, properties: dict[str, str]) -> None:
        """Set properties of what the source keeps from its users."""

    def _check_without_holder(self, properties: Mapping[str, str]) -> None:
        """Raise StandbyError if a migration or an earlier promotion has the object: the source's users must not."""
        if holder := describe_holder(properties):
            ending = ": drop its copy in the standby" if FINISHED in properties else ""
            raise StandbyError(f"{self}: {holder}{ending}")

    def _check_without_fence(self, properties: Mapping[str, str]) -> None:
        """Raise StandbyError if a migration has the object, which the source's users have."""
        if fence := describe_fence(properties):
            raise StandbyError(f"{self}: {fence}")

    def _describe_moved(self, error: BaseException) -> BaseException:
        """Return an error with the name that the object may have now. The end of a process remains what it is."""
        if not isinstance(error, Exception):
            return error
        moved = ".".join(rename_moved(self.identifier))
        return StandbyError(
            f"{_describe(error)}. {self.source_name} may have the {self.kind} as {moved}: its users do not have it. "
            "Run the promotion again"
        )

    @abstractmethod
    def _release(self, now: datetime) -> StandbyMark:
        """Let the standby have users, and return the mark."""

    def _require_source(self) -> Endpoint:
        if self.source is None:
            raise StandbyError(f"{self}: expected {self.source_name}, which was given up as lost")
        return self.source


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, LakewrightSparkError) else describe_error(error)
