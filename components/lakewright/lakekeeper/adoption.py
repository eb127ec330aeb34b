"""Adoption told beforehand: what `adopt=True` is about to take over, and what of it would change.

An engine calls `check` in previews too, and for an object that it does not know yet without old properties.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.credentials import UnresolvedCredential
from lakewright.lakekeeper import difference
from lakewright.lakekeeper.api.client import Client
from lakewright.lakekeeper.api.errors import LakekeeperError
from lakewright.lakekeeper.declared import OnServer, has_unknown, is_unknown
from lakewright.lakekeeper.difference import Change
from lakewright.lakekeeper.notices import tell, warn

if TYPE_CHECKING:
    from lakewright.lakekeeper.provider import LakekeeperProvider


@dataclass(frozen=True)
class Adopting:
    """What taking an object over changes of it, and why it must not be: each in a few words."""

    changes: list[str]
    problems: list[str] = field(default_factory=list[str])


_leaving: set[str] = set()
"""Ids of what this process was asked to replace. An engine checks the new object while the old one is still there."""


def leaves(object_id: str) -> None:
    """Keep in mind that an object is about to be replaced, and so not there to be adopted."""
    _leaving.add(object_id)


def foretold(provider: "LakekeeperProvider[Any]", declared: OnServer) -> str | None:
    """Tell what will be taken over and changed; the answer is why it cannot be, if it cannot."""
    if not _can_look(provider, declared):
        return None
    what = provider.title(declared)
    try:
        client = provider.client(declared.server)
        found = provider.existing(client, declared)
        if found is None or found[0] in _leaving:
            return None
        there = found[1].declared
        if immutable := fixed(provider, client, there, declared):
            changes = "; ".join(map(str, immutable))
            return f"{what} exists already, and the server cannot change {changes}. Declare what is there."
        adopting = provider.adopting(found[1], declared)
        if adopting.problems:
            return f"{what} exists already, and cannot be taken over as it is declared: {' '.join(adopting.problems)}"
    except (LakekeeperError, UnresolvedCredential) as error:
        warn(f"{what}: whether there is something to adopt cannot be told: {error}")
        return None
    changes = f"this changes: {'; '.join(adopting.changes)}" if adopting.changes else "nothing of it changes"
    tell(f"{what} ({found[0]}) exists already and is adopted; {changes}")
    return None


def _can_look(provider: "LakekeeperProvider[Any]", declared: OnServer) -> bool:
    """Whether something is to be taken over, and so much of it is known that it can be looked at."""
    key = [getattr(declared, name) for name in provider.natural_key]
    if not getattr(declared, "adopt", False) or not key or has_unknown([*key, declared.server]):
        return False
    later = ", ".join(f"`{name}`" for name in provider.seen_by if is_unknown(getattr(declared, name)))
    if later:
        what = provider.title(declared)
        tell(f"{what}: whether it exists already, and what adopting it changes, is told once {later} can be known")
    return not later


def fixed(provider: "LakekeeperProvider[Any]", client: Client, there: OnServer, new: OnServer) -> list[Change]:
    """The differences for which the server would need another object."""
    changes = difference.between(there, new)
    return [change for change in changes if change.known and provider.replaces(change, new, lambda: client)]


def changes_of(there: OnServer, new: OnServer) -> Adopting:
    """What taking over changes, property by property."""
    changes = difference.between(there, new)
    return Adopting([str(change) for change in changes if difference.needs_calls([change])])
