"""A step of the drift check: notes about archived warehouses and enforced limits, which are no drift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakewright.fleet.states import state_reader
from lakewright.kubernetes.compute_limit import is_enforced
from lakewright.restrictions.reading import find_record, read_stack
from lakewright.validation.documents import as_list, as_mapping

if TYPE_CHECKING:
    from lakewright.drift.detection.steps import DriftRun
    from lakewright.drift.model import DriftReport
    from lakewright.drift.session import StackResource
    from lakewright.fleet.selection import SelectedStack


def note_restrictions(report: DriftReport, run: DriftRun) -> None:
    """Add a note about each archived warehouse and each enforced limit. Parts that cannot be read become notes, too.

    Only servers of stacks that can have them are asked.
    """
    resources: dict[str, list[StackResource]] = {stack.name: [] for stack in run.stacks}
    for resource in run.resources:
        resources[resource.stack].append(resource)
    session, now = run.session, run.session.clock()

    def note(stack: SelectedStack) -> list[str]:
        record = find_record(resource.state for resource in resources[stack.name])
        restrictions = read_stack(session, stack, record)
        return [f"{stack.name}: {text}" for text in [*restrictions.describe(now), *restrictions.problems]]

    candidates = [stack for stack in run.stacks if _can_be_restricted(resources[stack.name])]
    if any(not resources[stack.name] for stack in candidates):
        deployed = {*state_reader(session.project).names()}
        candidates = [stack for stack in candidates if stack.name in deployed]
    for notes in session.map(note, candidates):
        report.notes += notes


def _can_be_restricted(resources: list[StackResource]) -> bool:
    """Return whether a stack can have archives or enforced limits.

    It keeps data, limits grants or units, or has no resource in its state.
    """
    record = find_record(resource.state for resource in resources)
    if record is None:
        return not resources
    return keeps_removed_data(record) or any(map(_is_limited, resources))


def keeps_removed_data(record: Mapping[str, Any]) -> bool:
    """Return whether the outputs of a tenant's record name data of removed warehouses."""
    return any(not as_mapping(data).get("is_declared") for data in as_list(record.get("kept")))


def _is_limited(resource: StackResource) -> bool:
    inputs = resource.state.inputs
    return bool(inputs.get("limited_by")) or is_enforced(as_mapping(inputs.get("metadata")))
