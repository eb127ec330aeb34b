"""What the resources of a running program claim: who owns all of an object's grants, and who only adds to them.

An engine checks every declared resource in one process, in previews as well; so two that would undo each other's work
are seen there before any call. It also tells what is handed over within one program: what another resource of the run
declares is not taken away by one that leaves. Objects that are still to be made have no id to be told by: those the
program itself tells apart, by the outputs that stand for the ids. Resources of other stacks are not seen: what those
give is drift here.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import pulumi

from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, GrantEntry

OWNED = {"Grants": "all grants", "RoleMembers": "all members"}
"""Resources that are the only ones to say what there is, and of what."""

ClaimKey = tuple[Any, ...]
"""The server, and the object on it."""


@dataclass(frozen=True)
class Claim:
    """One resource of a program."""

    resource: Literal["Grant", "Grants", "RoleMembers"]
    name: str
    """As the program names it."""
    held: frozenset[GrantEntry] = frozenset()

    @property
    def owns_all(self) -> bool:
        return self.resource in OWNED

    def is_of(self, other: "Claim") -> bool:
        """Whether both are of one resource: it is checked more than once."""
        return (self.resource, self.name) == (other.resource, other.name)


class Claims:
    """The claims of one process. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_place: dict[ClaimKey, list[Claim]] = {}

    def conflict(self, place: ClaimKey, claim: Claim) -> str | None:
        """Why a resource cannot be declared beside another one; else None, and it has its place."""
        with self._lock:
            for claims in self._by_place.values():
                claims[:] = [one for one in claims if not one.is_of(claim)]
            there = self._by_place.setdefault(place, [])
            for other in there:
                if claim.owns_all or other.owns_all:
                    return _reason(claim, other)
            there.append(claim)
            return None

    def of_others(self, place: ClaimKey, claim: Claim) -> frozenset[GrantEntry]:
        """What other resources of this run declare there."""
        with self._lock:
            there = [other for other in self._by_place.get(place, []) if not other.is_of(claim)]
            return frozenset(one for other in there for one in other.held)

    def forget(self) -> None:
        """Begin another run."""
        with self._lock:
            self._by_place.clear()


def _reason(claim: Claim, other: Claim) -> str:
    owner, adder = (other, claim) if other.owns_all else (claim, other)
    what = OWNED[owner.resource]
    if adder.owns_all:
        return f"{other.resource} `{other.name}` owns {what} there already; there can be one such resource for each"
    return (
        f"{owner.resource} `{owner.name}` owns {what} there, and would take away what {adder.resource} `{adder.name}`"
        f" gives. Declare it in `{owner.name}`, or give everything there by `Grant` alone"
    )


of_process = Claims()
"""Of a provider's process: one run of one program."""


class Declarations:
    """What the resources of one program say they are on, as far as that stands for ids that are not known yet."""

    def __init__(self) -> None:
        self._claims = Claims()
        self._kept_alive: list[pulumi.Output[Any]] = []
        """As long as an output lives, no other one has its identity."""

    def declare(self, claim: Claim, on: pulumi.Input[Mapping[str, Any]], relation: pulumi.Input[str] = "") -> None:
        """Raises pulumi.RunError for two resources that cannot be beside each other."""
        parts: dict[str, Any] = dict(on) if isinstance(on, Mapping) else {"": on}
        if relation == ASSIGNEE:
            parts["relation"] = ASSIGNEE
        outputs = [cast(pulumi.Output[Any], part) for part in parts.values() if isinstance(part, pulumi.Output)]
        if not outputs:
            return  # all is known, and told apart when it is checked
        self._kept_alive += outputs
        place = tuple(sorted((name, _told(part)) for name, part in parts.items()))
        if reason := self._claims.conflict(place, claim):
            raise pulumi.RunError(f"{claim.resource} {claim.name}: {reason}")


def _told(part: Any) -> str:
    return f"output {id(cast(object, part))}" if isinstance(part, pulumi.Output) else str(part).casefold()


of_program = Declarations()
"""Of a program's process."""
