"""Taking over existing objects: when a stack may, and what an `up` is about to take over or is refused.

A stack takes over an object with `adopt`, or when an interrupted run of this very stack began to create it. An engine
calls `check` in previews too, and for an object that it does not know yet without old properties.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.credentials.references import UnresolvedCredential
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider import pending_creations as pending
from lakewright.lakekeeper.provider.diagnostics import tell, warn
from lakewright.lakekeeper.provider.diff import Change
from lakewright.lakekeeper.provider.inputs import ResourceInputs, has_unknown, is_unknown

if TYPE_CHECKING:
    from lakewright.lakekeeper.provider.base import LakekeeperProvider


@dataclass(frozen=True)
class Adopting:
    """What taking an object over changes of it, and why it must not be: each in a few words."""

    changes: list[str]
    problems: list[str] = field(default_factory=list[str])


Key = tuple[str, ...]
"""Kind, server and natural key of an object."""


class OwnObjects:
    """Objects of the running stack. Safe to share between threads.

    An engine compares each object of the state, and checks the replacement of one while the old object is still there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids: set[tuple[str, str]] = set()
        self._absent: set[Key] = set()
        self._with_adopt: dict[Key, bool] = {}

    def add(self, kind: str, object_id: str) -> None:
        """Remember that an object is in the state."""
        with self._lock:
            self._ids.add((kind, object_id))

    def has(self, kind: str, object_id: str) -> bool:
        """Whether an object is in the state, as far as the engine compared it."""
        with self._lock:
            return (kind, object_id) in self._ids

    def note_absent(self, key: Key) -> None:
        """Remember that a look found nothing, so that what is there after this run's create is this run's."""
        with self._lock:
            self._absent.add(key)

    def was_absent(self, key: Key) -> bool:
        """Whether a look before the create found nothing. A look that failed proves nothing."""
        with self._lock:
            return key in self._absent

    def created(self, key: Key) -> None:
        """Forget the look: it proves nothing for a later create."""
        with self._lock:
            self._absent.discard(key)

    def checked_with_adopt(self, key: Key, *, in_state: bool) -> None:
        """Remember that a declaration has `adopt`, and whether the state has its object already."""
        with self._lock:
            self._with_adopt[key] = in_state and self._with_adopt.get(key, True)

    def has_nothing_to_adopt(self) -> bool:
        """Whether declarations have `adopt`, and the state has the objects of all of them."""
        with self._lock:
            return bool(self._with_adopt) and all(self._with_adopt.values())

    def forget(self) -> None:
        """Begin another run."""
        with self._lock:
            self._ids.clear()
            self._with_adopt.clear()
            self._absent.clear()


of_process = OwnObjects()
"""Objects of the one run that this provider process serves."""


def refused(provider: "LakekeeperProvider[Any]", declared: ResourceInputs) -> str | None:
    """Look for an existing object before it is created.

    Returns:
        Why it cannot be taken over; None if there is none, or if it will be taken over, which is then printed.
    """
    adopts = bool(getattr(declared, "adopt", False))
    if not _can_look(provider, declared, adopts=adopts):
        return None
    what = provider.title(declared)
    try:
        client = provider.client(declared.server)
        found = provider.existing(client, declared)
        if found is None:
            of_process.note_absent(_key(provider, declared))
        if found is None or of_process.has(provider.kind, found[0]):
            return None
        if adopts:
            return _announce(provider, client, found, declared)
        begun = is_begun(provider, declared)
        differs = provider.contents(client, found[0], declared) if begun else ""
    except (LakekeeperError, UnresolvedCredential) as error:
        if adopts:
            warn(f"{what}: could not check for an existing object to adopt: {error}")
        return None
    if begun and not differs:
        tell(f"{what} ({found[0]}) exists already: an interrupted run of this stack began to create it")
        return None
    return refusal(what, differs)


@contextmanager
def creating(provider: "LakekeeperProvider[Any]", client: Client, declared: ResourceInputs) -> Generator[None]:
    """Look for an existing object before the block creates it, unless the check of this run has looked already.

    A create whose answer is lost takes effect or not, and an equal object of another stack may be there already. Only
    a look before it can tell the two apart.

    Raises:
        LakekeeperError: The server could not answer. Nothing was created.
    """
    key = _key(provider, declared)
    is_owned = provider.belongs_to_maker and provider.natural_key and not getattr(declared, "adopt", False)
    try:
        if is_owned and not of_process.was_absent(key):
            try:
                if provider.existing(client, declared) is None:
                    of_process.note_absent(key)
            except LakekeeperError as error:
                error.add(f"Nothing was created: it is not known whether {provider.title(declared)} exists already.")
                raise
        yield
    finally:
        of_process.created(key)


def was_absent(provider: "LakekeeperProvider[Any]", declared: ResourceInputs) -> bool:
    """Whether a look of this run, before its create, found no such object."""
    return of_process.was_absent(_key(provider, declared))


def appeared(what: str) -> str:
    """Why an object is not taken over that was not there when this run looked, and what to do about it."""
    return (
        f"{what} exists now, though it did not when this run looked for it. Another stack was faster, or a gateway on"
        " the way sent this run's request twice, so it is not certain who made it. If no other stack declares it, take"
        " it over with `adopt=True` (`adopt: true` in a tenant's spec), and let the gateway not repeat POST."
    )


def note_adopt(provider: "LakekeeperProvider[Any]", declared: ResourceInputs, *, in_state: bool) -> None:
    """Remember a declaration with `adopt`, for `warn_of_spent_adopt`."""
    if getattr(declared, "adopt", False):
        of_process.checked_with_adopt(_key(provider, declared), in_state=in_state)


def warn_of_spent_adopt() -> None:
    """Warn if `adopt` is declared and has nothing left to take over. Called once, after all else was checked."""
    if of_process.has_nothing_to_adopt():
        warn(
            "`adopt` has nothing left to take over: this stack has every object that is declared with it. Remove it, or"
            " it will take over what another stack makes later."
        )


def _key(provider: "LakekeeperProvider[Any]", declared: ResourceInputs) -> Key:
    natural = (str(getattr(declared, name)).casefold() for name in provider.natural_key)
    return (provider.kind, "" if has_unknown(declared.server) else declared.server.endpoint, *natural)


def refusal(what: str, differs: str) -> str:
    """Why an existing object is not taken over, and what to do about it."""
    recovery = (
        ""
        if pending.is_reported()
        else " If an interrupted run of this stack made it, run `lakewright up`, which takes that over by itself."
    )
    return (
        f"{what} exists already{f', {differs}' if differs else ''}, and this stack did not make it."
        f" Choose another name, or take it over with `adopt=True` (`adopt: true` in a tenant's spec).{recovery}"
    )


def is_begun(provider: "LakekeeperProvider[Any]", declared: ResourceInputs) -> bool:
    """Whether an interrupted run of this very stack began to create the object."""
    return pending.was_begun(provider.kind, declared, provider.natural_key)


def _announce(
    provider: "LakekeeperProvider[Any]", client: Client, found: tuple[str, Any], declared: ResourceInputs
) -> str | None:
    """Print what will be taken over and changed; the answer is why it cannot be, if it cannot."""
    what, there = provider.title(declared), found[1].declared
    if immutable := fixed(provider, client, there, declared):
        changes = "; ".join(map(str, immutable))
        return f"{what} exists already, and the server cannot change {changes}. Declare what is there."
    adopting = provider.adopting(found[1], declared)
    if adopting.problems:
        return f"{what} exists already, and cannot be taken over as it is declared: {' '.join(adopting.problems)}"
    changes = f"this changes: {'; '.join(adopting.changes)}" if adopting.changes else "nothing of it changes"
    tell(f"{what} ({found[0]}) exists already and is adopted; {changes}")
    return None


def _can_look(provider: "LakekeeperProvider[Any]", declared: ResourceInputs, *, adopts: bool) -> bool:
    """Whether an existing object matters, and so much of it is known that it can be looked at."""
    key = [getattr(declared, name) for name in provider.natural_key]
    if not (adopts or provider.belongs_to_maker) or not key or has_unknown([*key, declared.server]):
        return False
    later = ", ".join(f"`{name}`" for name in provider.seen_by if is_unknown(getattr(declared, name)))
    if later and adopts:
        what = provider.title(declared)
        tell(f"{what}: an existing object is looked for, and its changes are printed, once {later} can be known")
    return not later


def fixed(
    provider: "LakekeeperProvider[Any]", client: Client, there: ResourceInputs, new: ResourceInputs
) -> list[Change]:
    """The differences for which the server would need another object."""
    changes = difference.between(there, new)
    return [change for change in changes if change.known and provider.replaces(change, new, lambda: client)]


def changes_of(there: ResourceInputs, new: ResourceInputs) -> Adopting:
    """What taking over changes, property by property."""
    changes = difference.between(there, new)
    return Adopting([str(change) for change in changes if difference.needs_calls([change])])
