"""Conflicts with other stacks that declare or own the tenant of a stack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lakewright.cli.environments import servers_by_environment
from lakewright.cli.errors import UsageError
from lakewright.project_files.stack_files import raw_spec, read_text
from lakewright.validation.documents import items_of, mapping_of

if TYPE_CHECKING:
    from lakewright_engine import Operation, Result
    from lakewright_engine.project.project import PulumiProject
    from pulumi.automation.events import EngineEvent

    from lakewright.cli.engines.choice import Engine

NOT_OURS = ("and this stack did not make it", "so it is not certain who made it")
"""Parts of the provider's errors that refuse to adopt an object."""

_PROJECT = "lakekeeper:Project"


@dataclass(frozen=True)
class OwnerReportingEngine:
    """Runs another engine. If it refuses to adopt an object, the errors name the stack that owns the tenant."""

    engine: Engine

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report each event."""
        result = self.engine.run(operation, on_event)
        if any(part in message for message in result.messages for part in NOT_OURS):
            result.messages += [f"error: {line}" for line in _owners(operation.project, operation.stack)]
        return result


def refuse_shared_tenant(project: PulumiProject, stack: str) -> None:
    """Check that no other stack file of the project declares the same tenant or an overlapping place.

    Raises:
        SpecError: Another stack file does.
    """
    file = project.stack_file(stack)
    names = _names(raw_spec(file))
    others = [
        other
        for other in sorted(project.stack_config_dir.glob("Pulumi.*.yaml"))
        if other.resolve() != file.resolve() and any(name in read_text(other) for name in names)
    ]
    if not others:
        return
    from lakewright.spec import Problem, SpecError, TenantSpec, read_stack_file  # noqa: PLC0415 - slow to load
    from lakewright.spec.stack_conflicts import shared_with  # noqa: PLC0415

    def read(path: Path) -> TenantSpec | None:
        try:
            return read_stack_file(path)
        except SpecError:
            return None  # reported when that stack runs

    spec = read(file)
    if spec is None:
        return
    servers = servers_by_environment(project.root)
    known = {str(other): found for other in others if (found := read(other))}
    if problems := [Problem(path, expected) for path, expected in shared_with(spec, known, servers)]:
        raise SpecError(str(file), problems)


def _owners(project: PulumiProject, stack: str) -> Iterator[str]:
    """Yield a sentence for each other stack of the backend whose state has the tenant's project."""
    from lakewright_engine.state.backends import is_native  # noqa: PLC0415 - only after a refusal

    spec = raw_spec(project.stack_file(stack))
    tenant, endpoint = spec.get("name"), _endpoint(project, spec.get("environment"))
    project_id = mapping_of(spec.get("project")).get("id") or tenant
    if not is_native(project.state_url) or not tenant or endpoint is None:
        return
    from lakewright.project_files.servers import same_url  # noqa: PLC0415 - slow to load

    backend = project.backend()
    for other in backend.stacks(None):
        if (other.project, other.name) == (project.name, stack):
            continue
        for inputs in _projects(backend.export(other.project, other.name)):
            theirs = mapping_of(inputs.get("server")).get("endpoint")
            if inputs.get("project_id") == project_id and isinstance(theirs, str) and same_url(theirs, endpoint):
                yield (
                    f"tenant `{tenant}` is in the state of stack `{other.name}` of project `{other.project}`."
                    " Only one stack may declare a tenant."
                )
                break


def _projects(export: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return the inputs of the Lakekeeper projects in an exported state."""
    resources = cast(list[dict[str, Any]], mapping_of(export.get("deployment")).get("resources") or [])
    projects = (resource for resource in resources if str(resource.get("type")).endswith(_PROJECT))
    return (mapping_of(project.get("inputs")) for project in projects)


def _endpoint(project: PulumiProject, environment: object) -> str | None:
    """Return the endpoint of an environment's Lakekeeper; None if the file cannot be read."""
    from lakewright.cli.engines.environment_loading import load_environment  # noqa: PLC0415 - slow to load
    from lakewright.spec import SpecError  # noqa: PLC0415

    try:
        return load_environment(project, str(environment)).lakekeeper.endpoint
    except (SpecError, UsageError):
        return None


def _names(spec: Mapping[str, Any]) -> list[str]:
    """Return the names that a file must mention to declare the same tenant, an overlapping place or the same client."""
    storage: Any = spec.get("storage")
    parts: list[Any] = list(cast(dict[str, Any], storage).values()) if isinstance(storage, dict) else []
    buckets = [cast(dict[str, Any], part).get("bucket") for part in parts if isinstance(part, dict)]
    ids = (spec.get("name"), mapping_of(spec.get("project")).get("id"))
    return [str(name) for name in (*ids, *buckets, *_subjects(spec)) if name]


def _subjects(spec: Mapping[str, Any]) -> Iterator[object]:
    """Yield the subjects of the clients of tenant, units and jobs."""
    units = [unit for _, unit in items_of(spec, "computing_units")]
    for owner in (spec, mapping_of(spec.get("maintenance")), *units):
        yield mapping_of(owner.get("identity")).get("subject")
