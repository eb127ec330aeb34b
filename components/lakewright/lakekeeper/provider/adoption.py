"""Adoption of existing objects: whether a stack may adopt an object, and which changes that causes.

A stack adopts an object with `adopt`, or if an interrupted run of the same stack started to create it. The engine also
calls `check` in previews. It passes no old properties for an object that is not in the state.
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
from lakewright.lakekeeper.provider.run_context import NaturalKey, OwnObjects, RunContext, Taking
from lakewright.ownership.consent import ConsentKind
from lakewright.ownership.mark import Claimant
from lakewright.ownership.marked_object import MarkedObject
from lakewright.ownership.running_stack import record_adopted_resource


@dataclass(frozen=True)
class Adopting:
    """Changes that adopting an object makes, and reasons against it, each in a few words."""

    changes: list[str]
    problems: list[str] = field(default_factory=list[str])
    sent_again: tuple[str, ...] = ()
    """Properties that are sent as they are declared, since the server does not show them."""


class Adopter(Protocol):
    """Members of a provider that adoption uses."""

    natural_key: tuple[str, ...]
    seen_by: tuple[str, ...]
    belongs_to_maker: bool

    @property
    def kind(self) -> str:
        """Name of the resource class."""
        ...

    @property
    def run(self) -> RunContext:
        """Context of this run."""
        ...

    def client(self, server: ServerRef) -> Client:
        """Return the client of a server."""
        ...

    def title(self, args: Any) -> str:
        """Return the name of a declared object for messages."""
        ...

    def find_existing(self, client: Client, new: Any) -> tuple[str, ObservedResource[Any]] | None:
        """Return the object that has a declaration's natural key, and its id."""
        ...

    def contents(self, client: Client, object_id: str, new: Any) -> str:
        """Describe the contents of an existing object."""
        ...

    def replaces(self, change: Change, new: Any, client: Callable[[], Client]) -> bool:
        """Return whether a change needs a new object."""
        ...

    def plan_adoption(self, live: ObservedResource[Any], new: Any) -> Adopting:
        """Return what adopting an existing object changes."""
        ...

    @property
    def claimant(self) -> Claimant:
        """The running stack."""
        ...

    def find_marked(self, client: Client, args: Any) -> MarkedObject | None:
        """Return the object whose mark says who owns a declared object."""
        ...


def find_adoption_conflict(provider: Adopter, args: ResourceInputs) -> str | None:
    """Look for an existing object before creation, and print what adopting it changes.

    Returns:
        Why the object cannot be adopted; None if there is no such object, or it will be adopted.
    """
    adopts = bool(getattr(args, "adopt", False))
    if not _can_look(provider, args, adopts=adopts):
        return None
    title = provider.title(args)
    try:
        client = provider.client(args.server)
        existing = provider.find_existing(client, args)
        if existing is None:
            provider.run.own_objects.note_absent(_key(provider, args))
            if adopts:
                provider.run.own_objects.note_compared(_key(provider, args), Taking.CREATED)
        if existing is None or provider.run.own_objects.has(provider.kind, existing[0]):
            return None
        if adopts:
            missing = find_missing_consent(provider, client, args)
            return missing or _announce(provider, client, existing, args)
        begun = is_begun(provider, args)
        owned = find_other_owner(provider, client, args) if begun else None
        differs = provider.contents(client, existing[0], args) if begun else ""
    except (LakekeeperError, UnresolvedCredentialError) as error:
        if adopts:
            warn(f"{title}: could not check for an existing object to adopt: {error}")
        return None
    if begun and not owned and not differs:
        note(f"{title} ({existing[0]}) exists already: an interrupted run of this stack began to create it")
        return None
    return owned or refusal(title, differs)


def find_missing_consent(provider: Adopter, client: Client, args: ResourceInputs) -> str | None:
    """Return why `adopt` is not sufficient to adopt an existing object; None if it may be adopted.

    Settings of an object have no owner. Objects in a project of this stack's state may be adopted with `adopt` alone,
    also if an earlier version made the project, without a mark.
    """
    marked = provider.find_marked(client, args) if provider.belongs_to_maker else None
    if marked is None or (is_begun(provider, args) and not marked.mark.names_owner):
        return None
    own_objects = provider.run.own_objects
    is_in_own_project = any(
        consent.kind is ConsentKind.PROJECT and own_objects.has("Project", consent.name) for consent in marked.consents
    )
    if is_in_own_project and not marked.mark.names_owner:
        return None
    return marked.find_adoption_problem(provider.claimant)


def find_other_owner(provider: Adopter, client: Client, args: ResourceInputs) -> str | None:
    """Return why an interrupted run of this stack did not make an object: its mark names another stack."""
    marked = provider.find_marked(client, args) if provider.belongs_to_maker else None
    return marked.find_interruption_problem(provider.claimant) if marked else None


@contextmanager
def confirm_absence(provider: Adopter, client: Client, args: ResourceInputs) -> Generator[None]:
    """Look for an existing object before the block creates it, unless the check of this run did so.

    A create request without a response may or may not have taken effect. Only a lookup before the request can
    distinguish its object from one of another stack.

    Raises:
        LakekeeperError: The lookup failed. Nothing was created.
    """
    key = _key(provider, args)
    is_owned = provider.belongs_to_maker and provider.natural_key and not getattr(args, "adopt", False)
    try:
        if is_owned and not provider.run.own_objects.was_absent(key):
            try:
                if provider.find_existing(client, args) is None:
                    provider.run.own_objects.note_absent(key)
            except LakekeeperError as error:
                error.add(f"Nothing was created: it is not known whether {provider.title(args)} exists already.")
                raise
        yield
    finally:
        provider.run.own_objects.forget_absence(key)


def was_absent(provider: Adopter, args: ResourceInputs) -> bool:
    """Return whether a lookup of this run, before the create request, found no such object."""
    return provider.run.own_objects.was_absent(_key(provider, args))


def format_appearance(title: str) -> str:
    """Return the error message for an object that appeared after the lookup of this run."""
    return (
        f"{title} exists now, but did not exist when this run looked for it. Another stack created it, the server"
        " applied a request of an earlier run late, or a gateway sent this run's request twice. If no other stack"
        " declares it, take it over with `adopt=True` (`adopt: true` in a tenant's spec), and configure the gateway not"
        " to repeat POST requests."
    )


def note_adopt(provider: Adopter, args: ResourceInputs, *, in_state: bool) -> None:
    """Record a declaration with `adopt` for `warn_of_spent_adopt`."""
    if getattr(args, "adopt", False):
        provider.run.own_objects.note_adopting_check(_key(provider, args), in_state=in_state)


def warn_of_spent_adopt(own_objects: OwnObjects) -> None:
    """Warn if `adopt` is declared and has nothing left to adopt. Called once, after all other checks."""
    if own_objects.has_nothing_to_adopt():
        warn(
            "`adopt` has nothing left to take over: all objects declared with it are in the state. Remove it, or a"
            " later `up` may take over an object of another stack."
        )


def note_summary(own_objects: OwnObjects) -> None:
    """Print how many objects are adopted, and whether that changes any. Called once, after all other checks."""
    counts = own_objects.compared()
    unchanged, changed, created = (counts[taking] for taking in (Taking.UNCHANGED, Taking.CHANGED, Taking.CREATED))
    if not unchanged + changed:
        return
    effect = f"{changed} of them change" if changed else "none of them changes"
    creations = f"; {created} do not exist and are created" if created else ""
    note(f"adoption: {unchanged + changed} objects exist already and are taken over, {effect}{creations}")


def _key(provider: Adopter, args: ResourceInputs) -> NaturalKey:
    natural = (str(getattr(args, name)).casefold() for name in provider.natural_key)
    return (provider.kind, "" if has_unknown(args.server) else args.server.endpoint, *natural)


def refusal(title: str, differs: str) -> str:
    """Return the error message for an existing object that is not adopted."""
    recovery = (
        ""
        if pending.is_reported()
        else " If an interrupted run of this stack created it, run `lakewright up`, which takes it over automatically."
    )
    return (
        f"{title} exists already{f', {differs}' if differs else ''}, and this stack did not make it."
        f" Choose another name, or take it over with `adopt=True` (`adopt: true` in a tenant's spec).{recovery}"
    )


def is_begun(provider: Adopter, args: ResourceInputs) -> bool:
    """Return whether an interrupted run of this stack started to create the object."""
    return pending.was_begun(provider.kind, args, provider.natural_key)


def _announce(
    provider: Adopter, client: Client, existing: tuple[str, ObservedResource[Any]], args: ResourceInputs
) -> str | None:
    """Print what will be adopted and changed. Return the reason if the object cannot be adopted."""
    title, live_args = provider.title(args), existing[1].declared
    if immutable := find_fixed_changes(provider, client, live_args, args):
        changes = "; ".join(map(str, immutable))
        return f"{title} exists already, and the server cannot change {changes}. Declare the values that it has."
    adopting = provider.plan_adoption(existing[1], args)
    if adopting.problems:
        return f"{title} exists already, and cannot be taken over as it is declared: {' '.join(adopting.problems)}"
    changes = f"this changes: {'; '.join(adopting.changes)}" if adopting.changes else "nothing of it changes"
    if adopting.sent_again:
        changes += f"; sent again, as the server does not show it: {', '.join(adopting.sent_again)}"
    taking = Taking.CHANGED if adopting.changes else Taking.UNCHANGED
    provider.run.own_objects.note_compared(_key(provider, args), taking)
    record_adopted_resource()
    note(f"{title} ({existing[0]}) exists already and is adopted; {changes}")
    return None


def _can_look(provider: Adopter, args: ResourceInputs, *, adopts: bool) -> bool:
    """Return whether an existing object matters, and enough properties are known to look for it."""
    key = [getattr(args, name) for name in provider.natural_key]
    if not (adopts or provider.belongs_to_maker) or not key or has_unknown([*key, args.server]):
        return False
    later = ", ".join(f"`{name}`" for name in provider.seen_by if is_unknown(getattr(args, name)))
    if later and adopts:
        title = provider.title(args)
        note(f"{title}: cannot compare an existing object until these properties are known: {later}")
    return not later


def find_fixed_changes(
    provider: Adopter, client: Client, live_args: ResourceInputs, new: ResourceInputs
) -> list[Change]:
    """Return the differences that need a new object."""
    changes = difference.list_changes(live_args, new)
    return [change for change in changes if change.known and provider.replaces(change, new, lambda: client)]


def plan_changes(live_args: ResourceInputs, new: ResourceInputs) -> Adopting:
    """Return the changes of an adoption, by property."""
    changes = difference.list_changes(live_args, new)
    return Adopting([str(change) for change in changes if difference.needs_calls([change])])
