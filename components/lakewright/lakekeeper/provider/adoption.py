"""Taking over existing objects: when a stack may, and what an `up` is about to take over or is refused.

A stack takes over an object with `adopt`, or when an interrupted run of this very stack began to create it. An engine
calls `check` in previews too, and for an object that it does not know yet without old properties.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider import pending_creations as pending
from lakewright.lakekeeper.provider.diagnostics import note, warn
from lakewright.lakekeeper.provider.diff import Change
from lakewright.lakekeeper.provider.inputs import ResourceInputs, has_unknown, is_unknown
from lakewright.lakekeeper.provider.resource_state import ObservedResource
from lakewright.lakekeeper.provider.run_context import NaturalKey, OwnObjects, RunContext


@dataclass(frozen=True)
class Adopting:
    """What taking an object over changes of it, and why it must not be: each in a few words."""

    changes: list[str]
    problems: list[str] = field(default_factory=list[str])


class Adopter(Protocol):
    """The parts of a provider that decide about adoption."""

    natural_key: tuple[str, ...]
    seen_by: tuple[str, ...]
    belongs_to_maker: bool

    @property
    def kind(self) -> str:
        """Name of the resource class."""
        ...

    @property
    def run(self) -> RunContext:
        """The context of this run."""
        ...

    def client(self, server: ServerRef) -> Client:
        """Return the client of a server."""
        ...

    def title(self, declared: Any) -> str:
        """Name a declaration in messages."""
        ...

    def existing(self, client: Client, new: Any) -> tuple[str, ObservedResource[Any]] | None:
        """Return the object that has a declaration's natural key, and its id."""
        ...

    def contents(self, client: Client, object_id: str, new: Any) -> str:
        """Describe what an existing object holds."""
        ...

    def replaces(self, change: Change, new: Any, client: Callable[[], Client]) -> bool:
        """Return whether a change needs a new object."""
        ...

    def adopting(self, there: ObservedResource[Any], new: Any) -> Adopting:
        """Return what taking over an existing object changes."""
        ...


def refused(provider: Adopter, declared: ResourceInputs) -> str | None:
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
            provider.run.own_objects.note_absent(_key(provider, declared))
        if found is None or provider.run.own_objects.has(provider.kind, found[0]):
            return None
        if adopts:
            return _announce(provider, client, found, declared)
        begun = is_begun(provider, declared)
        differs = provider.contents(client, found[0], declared) if begun else ""
    except (LakekeeperError, UnresolvedCredentialError) as error:
        if adopts:
            warn(f"{what}: could not check for an existing object to adopt: {error}")
        return None
    if begun and not differs:
        note(f"{what} ({found[0]}) exists already: an interrupted run of this stack began to create it")
        return None
    return refusal(what, differs)


@contextmanager
def creating(provider: Adopter, client: Client, declared: ResourceInputs) -> Generator[None]:
    """Look for an existing object before the block creates it, unless the check of this run has looked already.

    A create whose answer is lost takes effect or not, and an equal object of another stack may be there already. Only
    a look before it can tell the two apart.

    Raises:
        LakekeeperError: The server could not answer. Nothing was created.
    """
    key = _key(provider, declared)
    is_owned = provider.belongs_to_maker and provider.natural_key and not getattr(declared, "adopt", False)
    try:
        if is_owned and not provider.run.own_objects.was_absent(key):
            try:
                if provider.existing(client, declared) is None:
                    provider.run.own_objects.note_absent(key)
            except LakekeeperError as error:
                error.add(f"Nothing was created: it is not known whether {provider.title(declared)} exists already.")
                raise
        yield
    finally:
        provider.run.own_objects.created(key)


def was_absent(provider: Adopter, declared: ResourceInputs) -> bool:
    """Whether a look of this run, before its create, found no such object."""
    return provider.run.own_objects.was_absent(_key(provider, declared))


def appeared(what: str) -> str:
    """Why an object is not taken over that was not there when this run looked, and what to do about it."""
    return (
        f"{what} exists now, though it did not when this run looked for it. Another stack was faster, or a gateway on"
        " the way sent this run's request twice, so it is not certain who made it. If no other stack declares it, take"
        " it over with `adopt=True` (`adopt: true` in a tenant's spec), and let the gateway not repeat POST."
    )


def note_adopt(provider: Adopter, declared: ResourceInputs, *, in_state: bool) -> None:
    """Remember a declaration with `adopt`, for `warn_of_spent_adopt`."""
    if getattr(declared, "adopt", False):
        provider.run.own_objects.checked_with_adopt(_key(provider, declared), in_state=in_state)


def warn_of_spent_adopt(own_objects: OwnObjects) -> None:
    """Warn if `adopt` is declared and has nothing left to take over. Called once, after all else was checked."""
    if own_objects.has_nothing_to_adopt():
        warn(
            "`adopt` has nothing left to take over: this stack has every object that is declared with it. Remove it, or"
            " it will take over what another stack makes later."
        )


def _key(provider: Adopter, declared: ResourceInputs) -> NaturalKey:
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


def is_begun(provider: Adopter, declared: ResourceInputs) -> bool:
    """Whether an interrupted run of this very stack began to create the object."""
    return pending.was_begun(provider.kind, declared, provider.natural_key)


def _announce(
    provider: Adopter, client: Client, found: tuple[str, ObservedResource[Any]], declared: ResourceInputs
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
    note(f"{what} ({found[0]}) exists already and is adopted; {changes}")
    return None


def _can_look(provider: Adopter, declared: ResourceInputs, *, adopts: bool) -> bool:
    """Whether an existing object matters, and so much of it is known that it can be looked at."""
    key = [getattr(declared, name) for name in provider.natural_key]
    if not (adopts or provider.belongs_to_maker) or not key or has_unknown([*key, declared.server]):
        return False
    later = ", ".join(f"`{name}`" for name in provider.seen_by if is_unknown(getattr(declared, name)))
    if later and adopts:
        what = provider.title(declared)
        note(f"{what}: an existing object is looked for, and its changes are printed, once {later} can be known")
    return not later


def fixed(provider: Adopter, client: Client, there: ResourceInputs, new: ResourceInputs) -> list[Change]:
    """The differences for which the server would need another object."""
    changes = difference.between(there, new)
    return [change for change in changes if change.known and provider.replaces(change, new, lambda: client)]


def changes_of(there: ResourceInputs, new: ResourceInputs) -> Adopting:
    """What taking over changes, property by property."""
    changes = difference.between(there, new)
    return Adopting([str(change) for change in changes if difference.needs_calls([change])])
