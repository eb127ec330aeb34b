"""The interface of a source of records, and the rules that name an actor by the times of its records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakewright_spark.times import parse_json_time

from lakewright.drift.model import Actor, Difference
from lakewright.drift.session import StackResource
from lakewright.errors import LakewrightError


def is_since(at: str, updated: str) -> bool:
    """Return whether a time in whole seconds is in or after the second of the stack's last update."""
    moment, start = parse_json_time(at), parse_json_time(updated)
    return moment is not None and start is not None and moment >= start.replace(microsecond=0)


def is_after(at: str, updated: str) -> bool:
    """Return whether a time is after the stack's last update.

    A time in whole seconds must be of a later second: a record of the update itself may have an equal time.
    """
    moment, start = parse_json_time(at), parse_json_time(updated)
    if moment is None or start is None:
        return False
    return moment > start


class AuditSourceError(LakewrightError):
    """The records of a source cannot be read. The message names the source and the reason in one line."""


@dataclass(frozen=True)
class DriftedObject:
    """A difference and the resource that it is about."""

    difference: Difference
    resource: StackResource
    target_id: str = ""
    """Id of the namespace or table that a grant is on; empty if the states do not have it."""


class AuditSource(Protocol):
    """Records of changes."""

    def actors(self, objects: Sequence[DriftedObject]) -> Iterable[tuple[DriftedObject, Actor]]:
        """Yield, for objects that the source may know, the actor of each record of a matching change.

        Raises:
            AuditSourceError: The records cannot be read.
        """
        ...


def choose_actor(actors: Iterable[Actor], updated: str) -> Actor | None:
    """Return the actor of the changes after a stack's last update; None unless one actor made all of them.

    A record says that a change was allowed, not always that it was made. Records of two actors therefore name none.
    A record that says that the change was made is preferred.
    """
    later = [actor for actor in actors if is_after(actor.at, updated)]
    if len({actor.name for actor in later}) != 1:
        return None
    return max(later, key=lambda actor: (not actor.is_allowed_only, actor.at))
