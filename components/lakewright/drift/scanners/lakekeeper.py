"""Compare dynamic resources of this package with their servers, with lists that all stacks share."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, TypeVar, cast

from lakewright_engine.model.errors import EngineError
from pulumi.dynamic import ResourceProvider
from pydantic import ValidationError

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.drift.dynamic.comparison import ObservedObject, differences, read
from lakewright.drift.dynamic.provider_classes import provider_class
from lakewright.drift.model import DifferenceKind, Finding, ScanProblem
from lakewright.drift.session import ScanSession, StackResource
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.api.connection.errors import (
    LakekeeperError,
    RefusedError,
    ResponseTimeoutError,
    UnconfirmedError,
    UnreachableError,
)
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.inputs import failures
from lakewright.lakekeeper.provider.run_context import RunContext
from lakewright.validation.documents import mapping_of

T = TypeVar("T")

_WAREHOUSE = "pulumi-python:dynamic/lakekeeper:Warehouse"


class LakekeeperScanner:
    """Reads objects of Lakekeeper servers, and of the stores that dynamic resources manage."""

    def scan(self, resources: Sequence[StackResource], session: ScanSession) -> Iterable[Finding]:
        """Return differences and problems of the resources of all stacks."""
        run = _Scan(session)
        try:
            yield from run.findings(resources)
        finally:
            run.close()


class _Scan:
    """One scan: the connections, the lists of all stacks, and the servers that do not answer."""

    def __init__(self, session: ScanSession) -> None:
        self._session = session
        self._shared = session.clients
        self._own: dict[str, RunContext] = {}
        self._down: dict[str, str] = {}
        """Why a server does not answer, by endpoint."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close all connections."""
        for run in self._own.values():
            run.clients.close()

    def findings(self, resources: Sequence[StackResource]) -> Iterator[Finding]:
        """Yield the findings by stack, in the order of the states."""
        by_stack: dict[str, list[StackResource]] = defaultdict(list)
        for resource in resources:
            by_stack[resource.stack].append(resource)
        for stack, own in by_stack.items():
            self._own[stack] = _context_of(own, self._shared)
        # One resource of each stack in turn, so that threads do not all wait for the same list.
        turns = [found for found in chain.from_iterable(zip_longest(*by_stack.values())) if found is not None]
        observed = dict(zip(map(id, turns), self._session.map(self._read, turns), strict=True))
        compared = self._session.map(
            lambda own: [self._compared(resource, observed[id(resource)]) for resource in own], by_stack.values()
        )
        for found in chain.from_iterable(compared):
            yield from found

    def _read(self, resource: StackResource) -> ObservedObject | list[Finding]:
        provider_type = provider_class(resource.state.type)
        if provider_type is None:
            return [ScanProblem(resource.stack, f"this version does not know resources of type {resource.state.type}")]
        endpoint = _endpoint_of(resource)
        if (reason := self._down.get(endpoint)) is not None:
            return _unreachable(resource, reason)
        return self._guarded(resource, lambda: read(resource, self._provider(provider_type, resource)))

    def _compared(self, resource: StackResource, observed: ObservedObject | list[Finding]) -> list[Finding]:
        if isinstance(observed, list):
            return observed
        found = self._guarded(resource, lambda: differences(observed))
        return [*found]

    def _provider(self, provider_type: type[ResourceProvider], resource: StackResource) -> ResourceProvider:
        provider = provider_type()
        if isinstance(provider, LakekeeperProvider):
            known = cast("LakekeeperProvider[Any]", provider)
            known.own_run = self._own[resource.stack]
            known.config = self._config(resource.stack)
            return known
        return provider

    def _config(self, stack: str) -> Callable[[str], str | None]:
        project = self._session.project.name

        def lookup(key: str) -> str | None:
            return self._session.config(stack).get(key if ":" in key else f"{project}:{key}")

        return lookup

    def _guarded(self, resource: StackResource, call: Callable[[], T]) -> T | list[Finding]:
        """Call, and return the findings of an error."""
        try:
            return call()
        except (LakekeeperError, UnresolvedCredentialError, EngineError) as error:
            if not _is_down(error):
                return [ScanProblem(resource.stack, f"{resource.name}: {error}")]
            if isinstance(error, UnreachableError):
                with self._lock:
                    self._down.setdefault(_endpoint_of(resource), str(error))
            return _unreachable(resource, str(error))
        except ValidationError as error:
            reasons = "; ".join(f"{path}: {reason}" for path, reason in failures(error, {}))
            return [
                ScanProblem(resource.stack, f"{resource.name}: its state is not as this version writes it: {reasons}")
            ]
        except Exception as error:  # noqa: BLE001 - one resource must not hide the others
            return [ScanProblem(resource.stack, f"{resource.name}: {type(error).__name__}: {error}")]


def _context_of(own: list[StackResource], shared: ClientPool) -> RunContext:
    """Return the context of a stack, which knows the warehouses that its program activates."""
    run = RunContext(clients=ClientPool(shared=shared))
    run.to_activate.note_program()
    for resource in own:
        if resource.state.type == _WAREHOUSE:
            run.to_activate.note_compared(resource.state.id, active=resource.state.inputs.get("active") is not False)
    return run


def _endpoint_of(resource: StackResource) -> str:
    server: Mapping[str, object] = mapping_of(resource.state.outputs.get("server"))
    return str(server.get("endpoint") or "")


def _is_down(error: Exception) -> bool:
    """Return whether a server did not answer, or answered that it cannot."""
    if isinstance(error, UnreachableError | ResponseTimeoutError | UnconfirmedError):
        return True
    return isinstance(error, RefusedError) and error.status >= 500


def _unreachable(resource: StackResource, reason: str) -> list[Finding]:
    return [
        resource.difference("", DifferenceKind.UNREACHABLE, declared=resource.state.id, found=None),
        ScanProblem(resource.stack, reason),
    ]
