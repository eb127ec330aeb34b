"""Other stacks that declare, or already have, the tenant of a stack: refused or named before one harms the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

if TYPE_CHECKING:
    from lakewright_engine import Operation, Result
    from lakewright_engine.project import Project
    from pulumi.automation.events import EngineEvent

    from lakewright.cli.engines import Engine

NOT_OURS = "and this stack did not make it"
"""Part of the provider's refusal to take over an object."""

_SPEC_KEY = "lakewright:tenant"
_PROJECT = "lakekeeper:Project"


@dataclass(frozen=True)
class NamingOwners:
    """Runs another engine. Where it refuses to take an object over, the stack that has the tenant is named."""

    engine: Engine

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        result = self.engine.run(operation, on_event)
        if any(NOT_OURS in message for message in result.messages):
            result.messages += [f"error: {line}" for line in _owners(operation.project, operation.stack)]
        return result


def refuse_shared_tenant(project: Project, stack: str) -> None:
    """Refuse a tenant or place that another stack file of the project declares. Raises SpecError."""
    file = project.stack_file(stack)
    names = _names(_raw_spec(file))
    others = [
        other
        for other in sorted(project.stack_config_dir.glob("Pulumi.*.yaml"))
        if other.resolve() != file.resolve() and any(name in _text(other) for name in names)
    ]
    if not others:
        return
    from lakewright.spec import Problem, SpecError, TenantSpec, read_stack_file  # noqa: PLC0415 - slow to load
    from lakewright.spec.neighbours import shared_with  # noqa: PLC0415

    def read(path: Path) -> TenantSpec | None:
        try:
            return read_stack_file(path)
        except SpecError:
            return None  # reported when that stack runs

    spec = read(file)
    if spec is None:
        return
    known = {str(other): found for other in others if (found := read(other))}
    if problems := [Problem(path, expected) for path, expected in shared_with(spec, known)]:
        raise SpecError(str(file), problems)


def _owners(project: Project, stack: str) -> Iterator[str]:
    """Name the other stacks of a file backend whose state has the tenant's project."""
    tenant = _raw_spec(project.stack_file(stack)).get("name")
    if not project.state_url.startswith("file://") or not tenant:
        return
    backend = project.backend()
    for other in backend.stacks(None):
        if (other.project, other.name) == (project.name, stack):
            continue
        deployment = cast(dict[str, Any], backend.export(other.project, other.name).get("deployment") or {})
        resources = cast(list[dict[str, Any]], deployment.get("resources") or [])
        projects = [one for one in resources if str(one.get("type")).endswith(_PROJECT)]
        inputs = [cast(dict[str, Any], one.get("inputs") or {}) for one in projects]
        if any(one.get("project_id") == tenant for one in inputs):
            yield (
                f"tenant `{tenant}` is in the state of stack `{other.name}` of project `{other.project}`."
                " Only one stack may declare a tenant."
            )


def _raw_spec(file: Path) -> dict[str, Any]:
    """The spec in a stack file, unchecked; empty if there is none."""
    try:
        document: Any = yaml.safe_load(_text(file))
        spec: Any = document["config"][_SPEC_KEY]
    except (yaml.YAMLError, KeyError, TypeError):
        return {}
    return cast(dict[str, Any], spec) if isinstance(spec, dict) else {}


def _names(spec: dict[str, Any]) -> list[str]:
    """Return the names that a file must mention to declare the same tenant or an overlapping place."""
    storage: Any = spec.get("storage")
    parts: list[Any] = list(cast(dict[str, Any], storage).values()) if isinstance(storage, dict) else []
    buckets = [cast(dict[str, Any], part).get("bucket") for part in parts if isinstance(part, dict)]
    return [str(name) for name in (spec.get("name"), *buckets) if name]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
