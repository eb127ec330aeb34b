"""Report the retained objects of a run as `retain`, which engines report as `delete`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from lakewright_engine.display.report import to_text

from lakewright.deletions.retention import (
    BUCKET_REMOVAL,
    KEY_REMOVAL,
    RETAINED_OPS,
    StateEntry,
    find_key_id,
    is_retained,
    read_entry,
)
from lakewright.validation.documents import as_list, as_mapping

if TYPE_CHECKING:
    from lakewright_engine import Operation, Result
    from lakewright_engine.plans.plan_file import PlanDocument
    from pulumi.automation.events import EngineEvent, StepEventMetadata, StepEventStateMetadata

    from lakewright.deletions.destroy_preview import OperationEngine

_COUNTED = {"resource_pre_event": 1, "res_outputs_event": 0, "res_op_failed_event": -1}
"""Number that an event of a step adds to the steps that succeeded."""


@dataclass(frozen=True)
class RetentionReportingEngine:
    """Runs another engine. In its events and in its result, an object that remains is retained, not deleted."""

    engine: OperationEngine
    is_key_kept: Callable[[str, Mapping[str, Any]], bool] = field(default_factory=lambda: is_key_kept)
    """Returns whether a key is kept, by the verb of the run and the properties of its `KeyRemoval`."""

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report each event."""
        naming = _StepNaming(lambda: _read_entries(operation), partial(self.is_key_kept, operation.verb))
        result = self.engine.run(operation, lambda event: on_event(naming.rename(event)))
        result.changes = naming.rename_counts(result.changes)
        return result


@dataclass
class _StepNaming:
    """Renames the steps of one run."""

    read_entries: Callable[[], dict[str, StateEntry]]
    """Returns the resources in the state by URN. Called when the first resource is deleted."""
    is_key_kept: Callable[[Mapping[str, Any]], bool] = lambda _: False
    """Returns whether a key is kept because its bucket is kept and objects in it need the key."""
    _entries: dict[str, StateEntry] | None = None
    _names: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """New operations by URN and operation."""
    _leaving_buckets: set[str] = field(default_factory=set[str])
    """Buckets whose removal is a step of the run."""
    _kept_keys: set[str] = field(default_factory=set[str])
    """Ids of keys that are kept although no retained data keeps their bucket."""
    _counts: Counter[str] = field(default_factory=Counter[str])
    """Number of renamed steps that did not fail, by operation."""

    def rename(self, event: EngineEvent) -> EngineEvent:
        """Return an event with the operation to report. The event itself is not changed."""
        if event.summary_event is not None:
            renamed = copy(event)
            renamed.summary_event = copy(event.summary_event)
            counts = cast("Mapping[Any, int]", event.summary_event.resource_changes)
            renamed.summary_event.resource_changes = cast("Any", self.rename_counts(counts))
            return renamed
        for name, counted in _COUNTED.items():
            if (step := getattr(event, name)) is not None:
                op = self._find_name(step.metadata, is_start=name == "resource_pre_event")
                if op is None:
                    return event
                # Components end without an event of their own, so starts are counted.
                self._counts[to_text(step.metadata.op)] += counted
                renamed, renamed_step = copy(event), copy(step)
                renamed_step.metadata = copy(step.metadata)
                renamed_step.metadata.op = op
                setattr(renamed, name, renamed_step)
                return renamed
        return event

    def rename_counts(self, counts: Mapping[Any, int]) -> dict[str, int]:
        """Return the counts of a run, in which retained objects do not count as deletions."""
        renamed = {to_text(op): count for op, count in counts.items()}
        for op, retained in self._counts.items():
            if retained and op in renamed:
                moved = min(retained, renamed[op])
                renamed[RETAINED_OPS[op]] = renamed.get(RETAINED_OPS[op], 0) + moved
                renamed[op] -= moved
                if not renamed[op]:
                    del renamed[op]
        return renamed

    def _find_name(self, metadata: StepEventMetadata, *, is_start: bool) -> str | None:
        """Return the operation to report; None if it is that of the engine.

        The end of a step has the name of its start: a refresh also ends as `delete` if the object was deleted.
        """
        op = to_text(metadata.op)
        if op not in RETAINED_OPS or metadata.old is None:
            return None
        if is_start:
            entry = _to_entry(metadata.old)
            if self._entries is None:
                self._entries = self.read_entries()
            self._entries[entry.urn] = entry
            if is_retained(entry, self._entries.values()) or self._has_kept_key(entry):
                self._names[metadata.urn, op] = RETAINED_OPS[op]
        return self._names.get((metadata.urn, op))

    def _has_kept_key(self, entry: StateEntry) -> bool:
        """Return whether a resource of a key leaves the stack, and the key is kept for the objects of its bucket.

        The steps come in this order: `BucketRemoval`, `KeyRemoval`, then key and alias.
        """
        properties = entry.properties
        if entry.type == BUCKET_REMOVAL:
            self._leaving_buckets.add(str(properties.get("bucket")))
        has_bucket = properties.get("bucket") not in self._leaving_buckets
        if entry.type == KEY_REMOVAL and has_bucket and self.is_key_kept(properties):
            self._kept_keys.add(str(properties.get("key_id")))
        return entry.type.startswith(("aws:kms/", KEY_REMOVAL)) and find_key_id(properties) in self._kept_keys


def rename_retained(summary: Mapping[str, Any], document: PlanDocument) -> dict[str, Any]:
    """Return the summary of a plan, as `plan show --json` prints it, in which objects that remain are retained.

    Args:
        summary: The result of `plan_to_json`.
        document: The plan.
    """
    planned = [as_mapping(step) for step in as_list(document.body.get("steps"))]
    states = [(step, as_mapping(step.get("old") or step.get("new"))) for step in planned]
    entries = {
        str(step["urn"]): read_entry({**state, "urn": step["urn"], "type": step["type"]}) for step, state in states
    }
    counts = Counter[str]()
    steps: list[dict[str, Any]] = []
    for step in cast("Iterable[dict[str, Any]]", summary["steps"]):
        op = str(step["op"])
        remains = op in RETAINED_OPS and is_retained(entries[step["urn"]], entries.values())
        counts[op] += remains
        steps.append({**step, "op": RETAINED_OPS[op]} if remains else step)
    naming = _StepNaming(dict[str, StateEntry], _counts=counts)
    return {**summary, "changes": naming.rename_counts(summary["changes"]), "steps": steps}


def is_key_kept(verb: str, properties: Mapping[str, Any]) -> bool:
    """Return whether `KeyRemoval` keeps a key whose bucket is kept: objects are encrypted with it, or may be.

    Args:
        verb: The verb of the run. `destroy` does not change how the bucket encrypts new objects.
        properties: The properties of the `KeyRemoval`.
    """
    from lakewright.lakekeeper.buckets import bucket_key  # noqa: PLC0415 - slow to load
    from lakewright.lakekeeper.buckets.bucket_removal import KeyRemovalArgs  # noqa: PLC0415
    from lakewright.lakekeeper.provider.errors import CannotCountError  # noqa: PLC0415

    removal_args = KeyRemovalArgs.from_state(dict(properties))
    try:
        is_default = verb == "destroy" and bucket_key.is_default(removal_args, removal_args.key_id)
        return is_default or bucket_key.find_encrypted_object(removal_args) is not None
    except CannotCountError:
        return True


def _read_entries(operation: Operation) -> dict[str, StateEntry]:
    """Return the resources in a stack's state by URN; none if the state is in a backend that only the CLI reads.

    The rule then knows the resources that the run deletes.
    """
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415 - `--help` needs no engine
    from lakewright_engine.state.backends import is_native  # noqa: PLC0415

    project = operation.project
    if not is_native(project.state_url):
        return {}
    try:
        exported = project.backend().export(project.name, operation.stack)
    except EngineError:  # the run reports it
        return {}
    resources = as_list(as_mapping(exported.get("deployment")).get("resources"))
    return {entry.urn: entry for entry in map(read_entry, map(as_mapping, resources))}


def _to_entry(state: StepEventStateMetadata) -> StateEntry:
    return StateEntry(
        state.urn,
        state.type,
        state.parent or "",
        bool(state.custom),
        bool(state.retain_on_delete),
        {**(state.outputs or {}), **(state.inputs or {})},
    )
