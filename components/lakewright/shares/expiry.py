"""Remove ended grants and memberships from the servers, and purge archives. States are read and never written.

AWS ends the roles of consumers itself, by a condition of their policies. The next `up` removes all of them from the
state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright_engine.model.errors import EngineError
from pydantic import ValidationError

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.deletions.archive_purging import ArchiveStatus
from lakewright.deletions.archive_run import keeps_removed_warehouses, process_archives
from lakewright.drift.objects.sealed_values import seal_secrets
from lakewright.drift.provider_classes import provider_class
from lakewright.drift.session import ScanSession
from lakewright.drift.stack_providers import create_provider
from lakewright.errors import LakewrightError
from lakewright.fleet.states import StackState, StateReader, state_reader
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.run_context import RunContext
from lakewright.terminal.json_document import make_head
from lakewright.validation.moment import Clock, read_clock

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack

_TYPES = frozenset(f"pulumi-python:dynamic/lakekeeper:{kind}" for kind in ("Grant", "RoleMembers"))


@dataclass
class StackExpiry:
    """The access that a run removed from one stack."""

    stack: str
    removed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Name of the resource, and the principal that lost its access."""
    archives: list[ArchiveStatus] = field(default_factory=list[ArchiveStatus])
    """Archived warehouses of the stack, also warehouses that this run purged."""
    problems: list[str] = field(default_factory=list[str])

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        removed = [{"resource": resource, "principal": principal} for resource, principal in self.removed]
        archives = [archive.to_json() for archive in self.archives]
        return {"stack": self.stack, "removed": removed, "archives": archives, "problems": self.problems}


def expire_shares(
    project: PulumiProject,
    selected: Sequence[SelectedStack],
    *,
    reader: StateReader | None = None,
    clock: Clock = read_clock,
    permitted: Collection[str] = (),
) -> list[StackExpiry]:
    """Remove the ended grants and memberships of stacks, and announce and purge their archived warehouses.

    A stack that is being updated is left to the next run: its update may renew a share.

    Args:
        project: The project of the stacks.
        selected: The stacks.
        reader: Reads the states; the reader of the project's backend if omitted.
        clock: Time with which ends are compared.
        permitted: Names of warehouses whose archives may be purged without a proof of their backend.
    """
    states, session = reader or state_reader(project), ScanSession(project, clock=clock)
    try:
        return [*session.map(lambda stack: _expire_stack(session, states, stack, permitted), selected)]
    finally:
        session.close()


def _expire_stack(
    session: ScanSession, states: StateReader, stack: SelectedStack, permitted: Collection[str]
) -> StackExpiry:
    expiry = StackExpiry(stack.name)
    try:
        state = states.read(stack.name)
    except EngineError as error:
        expiry.problems.append(str(error))
        return expiry
    ending = list(_select_ending(state))
    if state.locked:
        if ending or permitted or keeps_removed_warehouses(state):
            locks = ", ".join(state.locked)
            expiry.problems.append(f"an update is running ({locks}); the next run removes what has ended")
        return expiry
    context = RunContext(clients=ClientPool(shared=session.clients), clock=session.clock)
    try:
        for resource in ending:
            _expire_resource(session, context, resource, expiry)
        expiry.archives, problems = process_archives(session, context.clients, stack, states, permitted)
        expiry.problems += problems
    finally:
        context.clients.close()
    return expiry


def _select_ending(state: StackState) -> Iterable[ResourceState]:
    return (
        resource
        for resource in state.resources
        if resource.type in _TYPES and resource.inputs.get("until") and not resource.delete
    )


def _expire_resource(session: ScanSession, context: RunContext, resource: ResourceState, expiry: StackExpiry) -> None:
    name = resource.urn.rpartition("::")[2]
    provider_type = provider_class(resource.type)
    provider = provider_type and create_provider(provider_type, session, expiry.stack, context)
    if not isinstance(provider, LakekeeperProvider):
        return
    outputs, _ = seal_secrets(resource.outputs)
    try:
        expiry.removed += [(name, principal) for principal in provider.remove_ended(str(resource.id), outputs)]
    except (LakewrightError, UnresolvedCredentialError, EngineError) as error:
        expiry.problems.append(f"{name}: {error}")
    except ValidationError:
        expiry.problems.append(f"{name}: its state is not as this version writes it; run `lakewright up`")


def compute_exit_code(expiries: Iterable[StackExpiry]) -> int:
    """Return 1 if anything could not be removed, else 0."""
    return 1 if any(expiry.problems for expiry in expiries) else 0


def to_json(expiries: Sequence[StackExpiry]) -> dict[str, Any]:
    """Return a run as JSON."""
    stacks = [expiry.to_json() for expiry in expiries]
    return {**make_head("expire"), "exit": compute_exit_code(expiries), "stacks": stacks}
