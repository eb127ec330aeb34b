"""Find objects in the scope of tenants that are in no stack: a step of drift after the scanners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lakewright_engine.model.errors import EngineError
from pydantic import ValidationError

from lakewright.credentials import references
from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.discovery.listing.managed_objects import ManagedObjects, managed_objects
from lakewright.discovery.unmanaged.cluster_objects import unmanaged_objects
from lakewright.discovery.unmanaged.finding import UnmanagedObject
from lakewright.discovery.unmanaged.project_scan import ProjectScan
from lakewright.discovery.unmanaged.role_policies import unmanaged_policies
from lakewright.discovery.unmanaged.tenant_scope import TenantScope, tenant_scopes
from lakewright.drift.detection.steps import DriftRun
from lakewright.drift.model import Difference, DriftReport, Finding, ScanProblem, UnmanagedSearch
from lakewright.drift.session import ScanSession, StackResource
from lakewright.fleet.states import state_reader
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.api.connection.errors import LakekeeperError, UnreachableError
from lakewright.lakekeeper.api.connection.server import ServerRef

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState


def add_unmanaged(report: DriftReport, run: DriftRun) -> None:
    """Add the unmanaged objects to a report: a step after the scanners."""
    search = run.options.search
    if search is UnmanagedSearch.NONE:
        return
    stacks = {drift.stack: drift for drift in report.stacks}
    for finding in find_unmanaged(run.resources, run.session, tables=search is UnmanagedSearch.TABLES):
        if isinstance(finding, Difference):
            stacks[finding.stack].differences.append(finding)
        elif finding.message not in stacks[finding.stack].problems:
            stacks[finding.stack].problems.append(finding.message)


def find_unmanaged(
    resources: Sequence[StackResource], session: ScanSession, *, tables: bool = False
) -> Iterable[Finding]:
    """Return the unmanaged objects in the scope of each stack, and what could not be searched.

    Args:
        resources: Resources of all stacks of the run.
        session: The run.
        tables: Whether namespaces and tables count, which jobs make in warehouses all day.
    """
    scopes = tenant_scopes(resources)
    found = session.map(partial(_search, session, tables=tables), scopes)
    results = list(zip(scopes, found, strict=True))
    others = _OtherStacks(session, {resource.stack for resource in resources})
    known = managed_objects(resource.state for resource in resources)
    return [
        *_findings(results, known, others),
        *unmanaged_policies(resources, session),
        *unmanaged_objects(resources, session),
    ]


def _search(session: ScanSession, scope: TenantScope, *, tables: bool) -> list[UnmanagedObject] | str:
    """Return the unmanaged objects of a scope, or why it could not be searched."""
    clients = ClientPool(shared=session.clients)
    try:
        client = clients.get(ServerRef.model_validate(dict(scope.server)), _resolver(session, scope.stack))
        return list(ProjectScan(client, scope, tables).unmanaged())
    except UnreachableError as error:
        return str(error)  # as the scanner reports it
    except (LakekeeperError, UnresolvedCredentialError, EngineError, ValidationError) as error:
        return f"unmanaged objects of project {scope.project_id} could not be searched: {' '.join(str(error).split())}"
    finally:
        clients.close()


def _resolver(session: ScanSession, stack: str) -> Callable[[str], str]:
    project = session.project.name

    def lookup(key: str) -> str | None:
        return session.config(stack).get(key if ":" in key else f"{project}:{key}")

    return lambda reference: references.resolve(reference, lookup)


class _OtherStacks:
    """Objects of the project's stacks outside the run. They are read only if something looks unmanaged."""

    def __init__(self, session: ScanSession, known: set[str]) -> None:
        self._session, self._known = session, known
        self._managed: ManagedObjects | None = None

    def has(self, entry: UnmanagedObject) -> bool:
        if self._managed is None:
            self._managed = managed_objects(self._resources())
        return self._managed.has(entry.kind, entry.key)

    def _resources(self) -> Iterator[ResourceState]:
        reader = state_reader(self._session.project)
        for stack in reader.names():
            if stack in self._known:
                continue
            try:
                yield from reader.read(stack).resources
            except EngineError:
                continue  # reported where that stack is checked


def _findings(
    results: Sequence[tuple[TenantScope, list[UnmanagedObject] | str]], known: ManagedObjects, others: _OtherStacks
) -> Iterator[Finding]:
    for scope, found in results:
        if isinstance(found, str):
            yield ScanProblem(scope.stack, found)
            continue
        for entry in found:
            if not known.has(entry.kind, entry.key) and not others.has(entry):
                yield entry.to_difference(scope.stack, scope.tenant)
