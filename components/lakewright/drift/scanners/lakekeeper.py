"""Compare dynamic resources of this package with their servers, with lists that all stacks share."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

from lakewright_engine.model.errors import EngineError
from pulumi.dynamic import ResourceProvider
from pydantic import ValidationError

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.drift.model import DifferenceKind, Finding, ScanProblem
from lakewright.drift.objects.dynamic_comparison import ObservedObject, find_differences, read
from lakewright.drift.provider_classes import provider_class
from lakewright.drift.session import ScanSession, StackResource
from lakewright.drift.stack_providers import create_provider
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.api.connection.errors import (
    LakekeeperError,
    RefusedError,
    ResponseTimeoutError,
    UnconfirmedError,
    UnreachableError,
)
from lakewright.lakekeeper.provider.inputs import failures
from lakewright.lakekeeper.provider.run_context import RunContext
from lakewright.validation.documents import as_mapping
from lakewright.validation.moment import Clock

T = TypeVar("T")

_WAREHOUSE = "pulumi-python:dynamic/lakekeeper:Warehouse"


class LakekeeperScanner:
    """Reads objects of Lakekeeper servers, and of the stores that dynamic resources manage."""

    def scan(self, resources: Sequence[StackResource], session: ScanSession) -> Iterable[Finding]:
        """Return differences and problems of the resources of all stacks."""
        run = _Scan(session)
        try:
            yield from run.find_all(resources)
        finally:
            run.close()


class _Scan:
    """One scan: the connections, the lists of all stacks, and the servers that do not respond."""

    def __init__(self, session: ScanSession) -> None:
        self._session = session
        self._shared = session.clients
        self._contexts: dict[str, RunContext] = {}
        self._down: dict[str, str] = {}
        """Why a server does not respond, by endpoint."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close all connections."""
        for run in self._contexts.values():
            run.clients.close()

    def find_all(self, resources: Sequence[StackResource]) -> Iterator[Finding]:
        """Yield the findings by stack, in the order of the states."""
        by_stack: dict[str, list[StackResource]] = defaultdict(list)
        for resource in resources:
            by_stack[resource.stack].append(resource)
        for stack, stack_resources in by_stack.items():
            self._contexts[stack] = _create_context(stack_resources, self._shared, self._session.clock)
        # Read a resource of each stack in turn, so that threads do not all wait for the same list.
        turns = [
            candidate for candidate in chain.from_iterable(zip_longest(*by_stack.values())) if candidate is not None
        ]
        observed = dict(zip(map(id, turns), self._session.map(self._read, turns), strict=True))
        compared = self._session.map(
            lambda stack_resources: [self._compare(resource, observed[id(resource)]) for resource in stack_resources],
            by_stack.values(),
        )
        for findings in chain.from_iterable(compared):
            yield from findings

    def _read(self, resource: StackResource) -> ObservedObject | list[Finding]:
        provider_type = provider_class(resource.state.type)
        if provider_type is None:
            return [ScanProblem(resource.stack, f"this version does not know resources of type {resource.state.type}")]
        endpoint = _get_endpoint(resource)
        if (reason := self._down.get(endpoint)) is not None:
            return _report_unreachable(resource, reason)
        return self._catch_errors(resource, lambda: read(resource, self._create_provider(provider_type, resource)))

    def _compare(self, resource: StackResource, observed: ObservedObject | list[Finding]) -> list[Finding]:
        if isinstance(observed, list):
            return observed
        findings = self._catch_errors(resource, lambda: find_differences(observed))
        return [*findings]

    def _create_provider(self, provider_type: type[ResourceProvider], resource: StackResource) -> ResourceProvider:
        return create_provider(provider_type, self._session, resource.stack, self._contexts[resource.stack])

    def _catch_errors(self, resource: StackResource, call: Callable[[], T]) -> T | list[Finding]:
        """Call, and return the findings of an error."""
        try:
            return call()
        except (LakekeeperError, UnresolvedCredentialError, EngineError) as error:
            if not _is_down(error):
                return [ScanProblem(resource.stack, f"{resource.name}: {error}")]
            if isinstance(error, UnreachableError):
                with self._lock:
                    self._down.setdefault(_get_endpoint(resource), str(error))
            return _report_unreachable(resource, str(error))
        except ValidationError as error:
            reasons = "; ".join(f"{path}: {reason}" for path, reason in failures(error, {}))
            return [
                ScanProblem(resource.stack, f"{resource.name}: its state is not as this version writes it: {reasons}")
            ]
        except Exception as error:  # noqa: BLE001 - one resource must not hide other resources
            return [ScanProblem(resource.stack, f"{resource.name}: {type(error).__name__}: {error}")]


def _create_context(resources: list[StackResource], shared: ClientPool, clock: Clock) -> RunContext:
    """Return the context of a stack, which knows the warehouses that its program activates."""
    run = RunContext(clients=ClientPool(shared=shared), clock=clock)
    run.to_activate.note_program()
    for resource in resources:
        if resource.state.type == _WAREHOUSE:
            run.to_activate.note_compared(resource.state.id, active=resource.state.inputs.get("active") is not False)
    return run


def _get_endpoint(resource: StackResource) -> str:
    server: Mapping[str, object] = as_mapping(resource.state.outputs.get("server"))
    return str(server.get("endpoint") or "")


def _is_down(error: Exception) -> bool:
    """Return whether a server did not respond, or responded that it cannot."""
    if isinstance(error, UnreachableError | ResponseTimeoutError | UnconfirmedError):
        return True
    return isinstance(error, RefusedError) and error.status >= 500


def _report_unreachable(resource: StackResource, reason: str) -> list[Finding]:
    return [
        resource.difference("", DifferenceKind.UNREACHABLE, declared_value=resource.state.id, found_value=None),
        ScanProblem(resource.stack, reason),
    ]
