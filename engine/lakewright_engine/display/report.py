"""A report of an operation from its engine events: steps, counts and messages, the same for every engine."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from lakewright_engine.display.hidden_properties import HIDDEN_DIFF, HiddenValue, find_hidden_paths, hide_values
from lakewright_engine.display.property_diff import (
    PropertyChange,
    ValueForm,
    changes,
    diff_at_path,
    find_changed_keys,
    redact_json,
    server_managed_paths,
)
from lakewright_engine.display.secret_mask import mask_properties
from lakewright_engine.model.urns import ROOT_STACK_TYPE, is_default_provider, urn_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulumi.automation.events import (
        DiagnosticEvent,
        EngineEvent,
        PolicyEvent,
        StepEventMetadata,
        StepEventStateMetadata,
    )

MESSAGE_PREFIXES = ("note: ", "warning: ")
"""Prefixes of stderr lines that are messages."""

_COLOR = re.compile(r"<\{%.*?%\}>")
"""A mark for colors in the texts of the Pulumi CLI."""

_WITHOUT_KEYS = (
    *("same", "create", "adopt", "delete", "delete-replaced", "retain", "retain-replaced"),
    *("discard", "import", "read"),
)
"""Operations that change no single properties. A caller reports `delete` as `retain` if the object remains."""

READ_FROM_OUTPUTS = ("refresh", "read", "read-replacement")
"""Operations that compare old and new outputs. Others compare inputs."""


@dataclass
class StepReport:
    """One step. `result` is that of a refresh: `same`, `update` or `delete`."""

    op: str
    urn: str
    type: str
    keys: list[str]
    """The names of the top-level properties that change."""
    old: dict[str, Any]
    """The properties before, without secrets and without values whose differences the program hides."""
    new: dict[str, Any]
    """The properties after, likewise."""
    result: str = ""
    failed: bool = False
    done: bool = False
    metadata: StepEventMetadata | None = None
    """The metadata of the event, with both states and the provider's detailed diff."""

    @property
    def name(self) -> str:
        """The name of the resource."""
        return urn_name(self.urn)

    @property
    def effect(self) -> str:
        """The operation, or the result of a refresh."""
        return self.result or self.op

    def changes(self, form: ValueForm = ValueForm.SHORT) -> list[PropertyChange]:
        """Return the differences by property, from the provider's detailed diff if there is one."""
        opaque = server_managed_paths(self.type) if self.op == "refresh" else ()
        if self.metadata is None:
            return changes(self.old, self.new, opaque, form)
        details, hidden_paths = self.metadata.detailed_diff, find_hidden_paths(self.metadata)
        if not details:
            old, new = _properties(self.metadata, self.op)
            old, new = (hide_values(side, hidden_paths, HiddenValue) for side in (old, new))
            return changes(old, new, opaque, form)
        sides, states = (
            [
                hide_values(_part(state, part), hidden_paths, HiddenValue)
                for state in (self.metadata.old, self.metadata.new)
            ]
            for part in ("inputs", "outputs")
        )
        against_state = (states[0], states[1] if self.op == "refresh" else sides[1])
        changes_by_path: dict[str, PropertyChange] = {}
        for path, detail in sorted(details.items()):
            old, new = sides if detail.input_diff else against_state
            changes_by_path |= {
                change.path: change for change in diff_at_path(path, to_text(detail.diff_kind), old, new, form)
            }
        return list(changes_by_path.values())


@dataclass
class OperationReport:
    """The report of an operation. `add` extends it by an event."""

    steps: list[StepReport] = field(default_factory=list[StepReport])
    """Steps in the order of their start, without default providers."""
    changes: dict[str, int] = field(default_factory=dict[str, int])
    messages: list[str] = field(default_factory=list[str])
    """Errors, warnings and notes."""
    seconds: int = 0
    stack_outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    """The stack's outputs for a display: without secrets, values of secret configuration and texts of assets."""
    _open: dict[tuple[str, str], StepReport] = field(default_factory=dict[tuple[str, str], StepReport])

    def take(self, event: EngineEvent) -> None:
        """Add an event."""
        self.add(event)

    def add(self, event: EngineEvent) -> StepReport | None:
        """Add an event. Return the step that the event starts or ends, if any."""
        if event.resource_pre_event is not None:
            metadata = event.resource_pre_event.metadata
            self._read_stack_outputs(metadata.type, metadata.old)
            return self._open_step(metadata)
        if event.res_outputs_event is not None:
            metadata = event.res_outputs_event.metadata
            self._read_stack_outputs(metadata.type, metadata.new)
            return self._close_step(metadata)
        if event.res_op_failed_event is not None:
            return self._close_step(event.res_op_failed_event.metadata, failed=True)
        if event.diagnostic_event is not None:
            message = format_diagnostic(event.diagnostic_event)
            if message and message not in self.messages:
                self.messages.append(message)
        if event.policy_event is not None:
            violation = format_violation(event.policy_event)
            if violation not in self.messages:
                self.messages.append(violation)
        if event.summary_event is not None:
            self.changes = {to_text(op): count for op, count in event.summary_event.resource_changes.items()}
            self.seconds = event.summary_event.duration_seconds
        return None

    def observe(self, on_event: Callable[[EngineEvent], None]) -> Callable[[EngineEvent], None]:
        """Return a function that adds an event to this report, and then forwards it."""

        def add_and_forward(event: EngineEvent) -> None:
            self.add(event)
            on_event(event)

        return add_and_forward

    @property
    def in_progress(self) -> list[StepReport]:
        """The steps that have started and not ended."""
        return [step for step in self.steps if not step.done]

    def to_json(self, outputs: dict[str, Any], exit_code: int) -> dict[str, Any]:
        """Return the object that `--json` prints. Steps that change properties have them with their values."""
        steps: list[dict[str, Any]] = []
        for step in self.steps:
            fields: dict[str, Any] = {
                "op": step.op,
                "urn": step.urn,
                "type": step.type,
                "name": step.name,
                "keys": step.keys,
            }
            if step.op == "refresh" and not step.failed:
                fields["result"] = step.result or "same"
            if step.keys:
                fields["properties"] = [asdict(change) for change in step.changes()]
            steps.append(fields)
        return {
            "version": 1,
            "steps": steps,
            "changes": self.changes,
            "outputs": redact_json(outputs),
            "exit": exit_code,
            "messages": self.messages,
        }

    def _read_stack_outputs(self, type_: str, state: StepEventStateMetadata | None) -> None:
        if type_ == ROOT_STACK_TYPE and state is not None:
            self.stack_outputs = _part(state, "outputs")

    def _open_step(self, metadata: StepEventMetadata) -> StepReport | None:
        if is_default_provider(metadata.urn):
            return None
        op = to_text(metadata.op)
        old, new = _properties(metadata, op)
        keys = _keys(metadata, op, old, new)
        old, new = _hide_properties(metadata, old, new)
        step = StepReport(op, metadata.urn, metadata.type, keys, old, new, metadata=metadata)
        self.steps.append(step)
        self._open[metadata.urn, op] = step
        return step

    def _close_step(self, metadata: StepEventMetadata, *, failed: bool = False) -> StepReport | None:
        op = to_text(metadata.op)
        step = self._open.pop((metadata.urn, op), None)
        if step is None and (refreshed := self._open.pop((metadata.urn, "refresh"), None)) is not None:
            step = refreshed
            step.result = op
        if step is None:
            return None
        if step.op == "refresh":
            step.metadata = metadata
            old, new = _properties(metadata, "refresh")
            step.keys = _keys(metadata, "refresh", old, new)
            step.old, step.new = _hide_properties(metadata, old, new)
            if not failed and step.result in ("", "refresh"):
                step.result = "delete" if metadata.new is None else "update" if step.keys else "same"
        step.failed = failed
        step.done = True
        return step


def format_diagnostic(diagnostic: DiagnosticEvent) -> str:
    """Return an error, warning or note as `SEVERITY: MESSAGE`; empty for other diagnostics.

    Providers and programs print warnings and notes to stderr, whose lines have no severity.
    """
    if diagnostic.ephemeral:
        return ""
    if diagnostic.severity == "info#err" and diagnostic.message.startswith(MESSAGE_PREFIXES):
        return diagnostic.message.strip()
    if diagnostic.severity not in ("error", "warning"):
        return ""
    body = diagnostic.message.strip().removeprefix(f"{diagnostic.severity}:").strip()
    return f"{diagnostic.severity}: {body}" if body else ""


def format_violation(violation: PolicyEvent) -> str:
    """Return a policy violation as `error: NAME: policy RULE: MESSAGE`, or as a warning if it is only advisory."""
    severity = "error" if violation.enforcement_level == "mandatory" else "warning"
    resource = f"{urn_name(violation.resource_urn)}: " if violation.resource_urn else ""
    # The policy's description precedes the message of the violation, on a line of its own.
    message = _COLOR.sub("", violation.message).strip().rpartition("\n")[2].strip()
    return f"{severity}: {resource}policy {violation.policy_name}: {message}"


def to_text(op: object) -> str:
    """Return the name of an operation or kind of change."""
    return str(op.value) if isinstance(op, Enum) else str(op)


def _properties(metadata: StepEventMetadata, op: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the old and new properties that the step compares, without secrets."""
    part = "outputs" if op in READ_FROM_OUTPUTS else "inputs"
    return _part(metadata.old, part), _part(metadata.new, part)


def _hide_properties(
    metadata: StepEventMetadata, old: dict[str, Any], new: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the old and new properties with a placeholder for values whose differences the program hides."""
    paths = find_hidden_paths(metadata)
    hidden_old, hidden_new = (hide_values(side, paths, lambda _: HIDDEN_DIFF) for side in (old, new))
    return hidden_old, hidden_new


def _part(state: StepEventStateMetadata | None, part: str) -> dict[str, Any]:
    return mask_properties(state, cast("dict[str, Any]", redact_json(getattr(state, part, None) or {})))


def _keys(metadata: StepEventMetadata, op: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    if op in _WITHOUT_KEYS:
        return []
    diff_paths = {*(metadata.keys or ()), *(metadata.diffs or ()), *(metadata.detailed_diff or ())}
    if diff_paths:
        return sorted({_top_level_key(path) for path in diff_paths})
    return [key for key in find_changed_keys(old, new) if not key.startswith("__")]


def _top_level_key(path: str) -> str:
    """Return the first key of a path: `spec.containers[0].image` -> spec; `["a.b"].c` -> a.b."""
    if path.startswith('["'):
        return path[2:].partition('"]')[0]
    return path.partition(".")[0].partition("[")[0]
