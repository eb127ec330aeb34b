"""Let providers read objects and compare them: the exact differences of the objects that may differ."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from lakewright_engine.model.errors import EngineError
from lakewright_engine.model.properties import plaintext_properties
from lakewright_engine.model.resources import Properties

from lakewright.drift.model import Finding, ScanProblem
from lakewright.drift.objects.object_differences import FindActor, create_unreachable_difference, find_differences

if TYPE_CHECKING:
    from lakewright_engine.object_reader import ObjectReader

    from lakewright.drift.session import ScanSession, StackResource


def is_compared(resource: StackResource) -> bool:
    """Return whether a refresh compares the object of a resource."""
    state = resource.state
    return state.custom and not (state.external or state.delete or state.pending_replacement)


def provider_settings(resource: StackResource) -> Properties | None:
    """Return the configuration of a resource's provider without secret marks; None if it cannot be read."""
    if resource.provider is None:
        return None
    try:
        return plaintext_properties(resource.provider.inputs)
    except EngineError:
        return None


def compare_by_providers(
    resources: Sequence[StackResource], session: ScanSession, find_actor: FindActor | None = None
) -> Iterator[Finding]:
    """Read objects by their providers, concurrently. Yield their differences, and problems of their stacks."""
    if not resources:
        return
    with _Readers(session) as readers:

        def compare(resource: StackResource) -> list[Finding]:
            if resource.provider is None:
                return [*report_unchecked([resource], f"the state lacks the provider of {resource.name}")]
            try:
                read = readers.get_reader(resource).read(resource.state, resource.provider)
            except (EngineError, OSError) as error:
                return [*report_unchecked([resource], f"{resource.name}: {' '.join(str(error).split())}")]
            return [*find_differences(resource, read, find_actor)]

        for findings in session.map(compare, resources):
            yield from findings


def report_unchecked(resources: Sequence[StackResource], reason: str) -> Iterator[Finding]:
    """Yield a difference of each resource that could not be checked, and a problem of each of their stacks."""
    for resource in resources:
        yield create_unreachable_difference(resource, reason)
    for stack in sorted({resource.stack for resource in resources}):
        yield ScanProblem(stack, reason)


class _Readers:
    """A reader for stacks in sandboxes and a reader for other stacks, opened at the first use."""

    def __init__(self, session: ScanSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._opened: dict[bool, ObjectReader] = {}
        self._resources = ExitStack()

    def __enter__(self) -> _Readers:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def get_reader(self, resource: StackResource) -> ObjectReader:
        from lakewright_engine.object_reader import ObjectReader  # noqa: PLC0415 - slow to load

        in_sandbox = self._session.is_sandbox(resource.environment)
        with self._lock:
            if in_sandbox not in self._opened:
                reader = ObjectReader(self._session.project, in_sandbox=in_sandbox, log=_ignore)
                self._opened[in_sandbox] = self._resources.enter_context(reader)
            return self._opened[in_sandbox]


def _ignore(_line: str) -> None:
    """Discard a message of a plugin: its errors are in the result of the read."""
