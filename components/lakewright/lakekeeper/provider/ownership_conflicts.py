"""Conflicts between `Grant`, `Grants` and `RoleMembers` of one program that would undo each other's work.

The engine checks all declared resources in one process, in previews too, so conflicts are found before any call. A
removed resource keeps the grants that another resource of the run declares. Objects that do not exist yet have no id,
so the program compares the outputs for their ids. Resources of other stacks are unknown, and their grants are drift.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, GrantEntry

if TYPE_CHECKING:
    import pulumi

    from lakewright.lakekeeper.provider.inputs import Declared

OWNED = {"Grants": "all grants", "RoleMembers": "all members"}
"""The object that a resource owns, by the kind of a resource that owns all of an object."""

ClaimKey = tuple[Any, ...]
"""The server, and the object on it."""


@dataclass(frozen=True)
class Claim:
    """The claim of one resource of a program."""

    resource: Literal["Grant", "Grants", "RoleMembers"]
    name: str
    """Name of the resource in the program."""
    entries: frozenset[GrantEntry] = frozenset()
    on: Declared | None = field(default=None, compare=False)
    """Object of the grants, as the program names it."""

    @property
    def owns_all(self) -> bool:
        """Return whether the resource owns everything on its object."""
        return self.resource in OWNED

    def is_same_resource(self, other: Claim) -> bool:
        """Return whether both claims are of one resource, which an engine may check more than once."""
        return (self.resource, self.name) == (other.resource, other.name)


class Claims:
    """The claims of one run. Safe to share between threads."""

    def __init__(self) -> None:
        """Create an empty registry."""
        self._lock = threading.Lock()
        self._by_key: dict[ClaimKey, list[Claim]] = {}

    def add(self, key: ClaimKey, claim: Claim) -> str | None:
        """Add a claim, unless it conflicts with another claim; return the reason of the conflict."""
        with self._lock:
            for claims in self._by_key.values():
                claims[:] = [earlier for earlier in claims if not earlier.is_same_resource(claim)]
            existing = self._by_key.setdefault(key, [])
            for other in existing:
                if claim.owns_all or other.owns_all:
                    return _conflict(claim, other)
            existing.append(claim)
            return None

    def entries_of_others(self, key: ClaimKey, claim: Claim) -> frozenset[GrantEntry]:
        """Return the grants that other resources of this run declare on the object."""
        with self._lock:
            other_claims = [other for other in self._by_key.get(key, []) if not other.is_same_resource(claim)]
            return frozenset(entry for other in other_claims for entry in other.entries)

    def list_others(self, claim: Claim, entry: GrantEntry) -> list[Claim]:
        """Return the claims of other resources of this run that contain a grant, on any object."""
        with self._lock:
            all_claims = [other for claims in self._by_key.values() for other in claims]
            return [other for other in all_claims if entry in other.entries and not other.is_same_resource(claim)]


def _conflict(claim: Claim, other: Claim) -> str:
    owner, adder = (other, claim) if other.owns_all else (claim, other)
    owned = OWNED[owner.resource]
    if adder.owns_all:
        return f"{other.resource} `{other.name}` owns {owned} there already; there can be one such resource for each"
    return (
        f"{owner.resource} `{owner.name}` owns {owned} there, and would take away what {adder.resource} `{adder.name}`"
        f" gives. Declare it in `{owner.name}`, or give everything there by `Grant` alone"
    )


class Declarations:
    """Claims of one program on objects whose ids are not known yet. Lives in the program's process."""

    def __init__(self) -> None:
        """Create an empty registry."""
        self._claims = Claims()
        self._kept_alive: list[pulumi.Output[Any]] = []
        """Outputs of the declarations. They are kept alive so that no other output gets the same `id()`."""

    def add(self, claim: Claim, on: pulumi.Input[Mapping[str, Any]], relation: pulumi.Input[str] = "") -> None:
        """Add the claim of a declared resource.

        Args:
            claim: The claim.
            on: The object, as the program declares it.
            relation: `assignee` for members of a role.

        Raises:
            pulumi.RunError: The resource conflicts with another resource.
        """
        import pulumi  # noqa: PLC0415 - slow to load, and not needed by users of the client alone

        parts: dict[str, Any] = dict(on) if isinstance(on, Mapping) else {"": on}
        if relation == ASSIGNEE:
            parts["relation"] = ASSIGNEE
        outputs = [cast("pulumi.Output[Any]", part) for part in parts.values() if isinstance(part, pulumi.Output)]
        if not outputs:
            return  # All ids are known, so the check of the provider compares them.
        self._kept_alive += outputs
        key = tuple(sorted((name, _identity(part)) for name, part in parts.items()))
        if reason := self._claims.add(key, claim):
            raise pulumi.RunError(f"{claim.resource} {claim.name}: {reason}")


def _identity(part: Any) -> str:
    import pulumi  # noqa: PLC0415 - as above

    return f"output {id(cast(object, part))}" if isinstance(part, pulumi.Output) else str(part).casefold()
