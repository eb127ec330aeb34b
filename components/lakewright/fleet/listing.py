"""List stacks without calls to their servers: tenant, environment, labels, and the state."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakewright_spark.times import format_json_time_as_text

from lakewright.fleet.declared_parts import describe_parts
from lakewright.fleet.selection import SelectedStack, Selection, select, stack_files
from lakewright.terminal.json_document import make_head
from lakewright.terminal.text_lines import format_table, plural

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.states import StateReader

_READERS = 8


@dataclass(frozen=True)
class ListedStack:
    """A stack, and the facts of its state."""

    stack: SelectedStack
    has_file: bool
    """Whether the project has a file Pulumi.STACK.yaml."""
    has_state: bool
    """Whether the backend has the stack."""
    resources: int = 0
    updated: str = ""
    """Time of the last update, RFC 3339, UTC; empty if there was none."""
    last: dict[str, str] = field(default_factory=dict[str, str])
    """Kind and result of the last update in the stack's history; empty without an update."""
    locked: tuple[str, ...] = ()
    """Holders of locks."""
    pending: tuple[str, ...] = ()
    """Objects that an interrupted run was changing."""
    problem: str = ""
    """Why the state cannot be read; empty if it can."""

    def to_json(self) -> dict[str, Any]:
        """Return the stack's entry in the JSON document."""
        return {
            "stack": self.stack.name,
            "tenant": self.stack.tenant,
            "owner": self.stack.owner,
            "environment": self.stack.environment,
            "labels": self.stack.labels,
            "has_file": self.has_file,
            "has_state": self.has_state,
            "resources": self.resources,
            "last_update": self.updated,
            "last_kind": self.last.get("kind", ""),
            "last_result": self.last.get("result", ""),
            "locked_by": list(self.locked),
            "pending": list(self.pending),
            "condition": self.condition,
            "problem": self.problem,
            "declared": describe_parts(self.stack.spec),
        }

    @property
    def condition(self) -> str:
        """The state in a few words, the worst first."""
        if self.problem:
            return "unreadable: " + " ".join(self.problem.split())
        if not self.has_state:
            return "not deployed"
        if self.locked:
            return f"locked: {'; '.join(self.locked)}"
        if self.pending:
            return f"interrupted: {plural(len(self.pending), 'pending operation')}"
        if not self.has_file:
            return "no stack file"
        return f"{self.last['kind']} {self.last['result']}" if self.last else "never updated"


def list_stacks(project: PulumiProject, selection: Selection) -> list[ListedStack]:
    """Return the stacks that match, sorted by name. A state that cannot be read is a problem of that stack only."""
    from lakewright.fleet.states import state_reader  # noqa: PLC0415 - `--help` needs no engine

    reader = state_reader(project)
    deployed, files = {*reader.names()}, stack_files(project)
    stacks = select(project, selection, deployed)

    def describe(stack: SelectedStack) -> ListedStack:
        has_file = stack.name in files
        if stack.name not in deployed:
            return ListedStack(stack, has_file, has_state=False)
        return _read_details(project, reader, ListedStack(stack, has_file, has_state=True))

    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(describe, stacks))


def _read_details(project: PulumiProject, reader: StateReader, listed_stack: ListedStack) -> ListedStack:
    """Return the stack with the facts of its state, or with why the state cannot be read."""
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415
    from lakewright_engine.model.urns import is_default_provider  # noqa: PLC0415

    name = listed_stack.stack.name
    try:
        state = reader.read(name)
        last = _read_last_update(project, name)
    except EngineError as error:
        return replace(listed_stack, problem=str(error))
    return replace(
        listed_stack,
        resources=sum(not is_default_provider(resource.urn) for resource in state.resources),
        updated=state.updated,
        last=last,
        locked=state.locked,
        pending=state.pending,
    )


def _read_last_update(project: PulumiProject, stack: str) -> dict[str, str]:
    """Return kind and result of the last update; empty if the backend is read by the Pulumi CLI."""
    from lakewright_engine.model.errors import UnsupportedFeatureError  # noqa: PLC0415

    try:
        history = project.backend().history(project.name, stack, limit=1)
    except UnsupportedFeatureError:
        return {}
    return {key: str(history[0].get(key, "")) for key in ("kind", "result")} if history else {}


def to_listing_json(stacks: Sequence[ListedStack]) -> dict[str, Any]:
    """Return the document that `lakewright fleet list --json` prints."""
    return {**make_head("list"), "stacks": [entry.to_json() for entry in stacks]}


def format_listing(stacks: Sequence[ListedStack]) -> list[str]:
    """Return a table of the stacks as lines of plain text."""
    head = ("STACK", "TENANT", "ENVIRONMENT", "LABELS", "RESOURCES", "LAST UPDATE", "STATE")
    rows = [
        (
            entry.stack.name,
            entry.stack.tenant or "-",
            entry.stack.environment or "-",
            ",".join(f"{name}={value}" for name, value in entry.stack.labels.items()) or "-",
            str(entry.resources) if entry.has_state and not entry.problem else "-",
            format_json_time_as_text(entry.updated) or "-",
            entry.condition,
        )
        for entry in stacks
    ]
    return format_table(head, rows)
