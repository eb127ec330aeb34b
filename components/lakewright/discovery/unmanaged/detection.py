"""Find objects in the scope of tenants that are in no stack: a search of drift, at the same time as the scanners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING

from lakewright_engine.model.errors import EngineError

from lakewright.discovery.listing.managed_objects import ManagedObjects, collect_managed_objects
from lakewright.discovery.unmanaged.concurrent_search import FailedSearch, ProjectSearch
from lakewright.discovery.unmanaged.finding import UnmanagedObject
from lakewright.discovery.unmanaged.project_scan import PartialSearch, ProjectScan
from lakewright.discovery.unmanaged.tenant_scope import TenantScope, find_tenant_scopes
from lakewright.drift.detection.steps import DriftRun
from lakewright.drift.model import Finding, ScanProblem, UnmanagedSearch
from lakewright.drift.session import ScanSession
from lakewright.drift.stack_providers import create_resolver
from lakewright.fleet.states import state_reader
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.api.connection.errors import RefusedError, UnreachableError
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.terminal.text_lines import plural

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState

_MOST_PROBLEMS = 3
"""Failed calls for a project that are reported with their reason."""


def find_unmanaged(run: DriftRun) -> Iterator[Finding]:
    """Yield the unmanaged objects in the projects of stacks, and what could not be searched."""
    other_stacks = _OtherStacks(run.session, {resource.stack for resource in run.resources})
    managed_in_run = collect_managed_objects(resource.state for resource in run.resources)
    with ExitStack() as opened:
        pool = opened.enter_context(ThreadPoolExecutor(run.session.parallel, thread_name_prefix="unmanaged"))
        searches: list[tuple[TenantScope, ClientPool, ProjectSearch]] = []
        for scope in find_tenant_scopes(run.resources):
            clients = opened.enter_context(closing(ClientPool(shared=run.session.clients)))
            searches.append((scope, clients, ProjectSearch(pool, partial(_search, run, scope, clients))))
        for scope, clients, search in searches:
            is_deleted = partial(_is_deleted, run, scope, clients)
            yield from _report_findings(scope, search, managed_in_run, other_stacks, is_deleted)


def _search(run: DriftRun, scope: TenantScope, clients: ClientPool) -> Iterator[UnmanagedObject | PartialSearch]:
    yield from _open_scan(run, scope, clients).search()


def _is_deleted(run: DriftRun, scope: TenantScope, clients: ClientPool) -> bool:
    """Return whether a project no longer exists, which the scanner reports. OpenFGA refuses all calls for it."""
    return _open_scan(run, scope, clients).is_deleted()


def _open_scan(run: DriftRun, scope: TenantScope, clients: ClientPool) -> ProjectScan:
    server = ServerRef.model_validate(dict(scope.server))
    client = clients.get(server, create_resolver(run.session, scope.stack))
    return ProjectScan(client, scope, run.options.search is UnmanagedSearch.TABLES)


def _explain(scope: TenantScope, error: Exception) -> str:
    if isinstance(error, UnreachableError):
        return str(error)  # as the scanner reports it
    return f"unmanaged objects of project {scope.project_id} could not be searched: {' '.join(str(error).split())}"


class _OtherStacks:
    """Objects of the project's stacks outside the run. They are read only if something looks unmanaged."""

    def __init__(self, session: ScanSession, stacks_in_run: set[str]) -> None:
        self._session, self._stacks_in_run = session, stacks_in_run
        self._managed: ManagedObjects | None = None

    def has(self, entry: UnmanagedObject) -> bool:
        if self._managed is None:
            self._managed = collect_managed_objects(self._read_resources())
        return self._managed.has(entry.kind, entry.key)

    def _read_resources(self) -> Iterator[ResourceState]:
        reader = state_reader(self._session.project)
        for stack in reader.names():
            if stack in self._stacks_in_run:
                continue
            try:
                yield from reader.read(stack).resources
            except EngineError:
                continue  # reported where that stack is checked


def _report_findings(
    scope: TenantScope,
    search: ProjectSearch,
    managed_in_run: ManagedObjects,
    other_stacks: _OtherStacks,
    is_deleted: Callable[[], bool],
) -> Iterator[Finding]:
    failures: list[FailedSearch] = []
    for result in search.results():
        if isinstance(result, FailedSearch):
            failures.append(result)
        elif not managed_in_run.has(result.kind, result.key) and not other_stacks.has(result):
            yield result.to_difference(scope.stack, scope.tenant)
    if any(isinstance(failure.error, RefusedError) for failure in failures) and is_deleted():
        return
    messages = list(dict.fromkeys(_explain(scope, failure.error) for failure in failures))
    for message in messages[:_MOST_PROBLEMS]:
        yield ScanProblem(scope.stack, message)
    if len(messages) > _MOST_PROBLEMS:
        count = len(messages) - _MOST_PROBLEMS
        yield ScanProblem(scope.stack, f"{plural(count, 'more call')} for project {scope.project_id} failed")
