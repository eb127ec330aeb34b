"""Hold a run to the steps of a plan."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from typing_extensions import override

from lakewright_engine.model.errors import PlanError
from lakewright_engine.model.properties import has_unknown
from lakewright_engine.model.resources import Properties, ResourceState
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.model.urns import split_reference, urn_name
from lakewright_engine.plans.comparison import Mismatch, first_mismatch, is_unknown
from lakewright_engine.plans.model import PlannedStep, PlanSteps
from lakewright_engine.plans.recorder import NOT_PLANNED, seed_of_resource
from lakewright_engine.steps.observer import StepObserver
from lakewright_engine.steps.targets import list_required_urns

_REPLACEMENT = ("create-replacement", "replace", "delete-replaced")
_WEAKER = {
    **dict.fromkeys(_REPLACEMENT, ("update", "same")),
    "update": ("same",),
    "read-replacement": ("read",),
}
"""Planned operation -> operations that it may turn out to be once unknown values are known."""

_DELETIONS = ("delete", "delete-replaced", "discard", "discard-replaced", "remove-pending-replace")
_IMPORTS = ("import", "import-replacement")
_OPTIONS = (
    "parent",
    "protect",
    "retain_on_delete",
    "ignore_changes",
    "replace_on_changes",
    "additional_secret_outputs",
    "custom_timeouts",
    "import_id",
    "deleted_with",
    "hooks",
)
_UNORDERED_OPTIONS = ("dependencies", "aliases", "replace_with")
_STOPPED_PLAN_HINT = (
    "Steps before this step are done. Make a new plan with `lakewright preview --save-plan FILE`, and apply that"
)


class PlanFollower(StepObserver):
    """Compares each step with the plan before it is carried out."""

    def __init__(self, plan: PlanSteps) -> None:
        """Follow the steps of a plan."""
        self._lock = threading.RLock()
        self._seed = plan.seed
        self._planned: defaultdict[str, list[PlannedStep]] = defaultdict(list)
        for step in plan.steps:
            self._planned[step.urn].append(step)
        self._remaining = {urn: deque(steps) for urn, steps in self._planned.items()}
        self._weakened: set[str] = set()

    @override
    def random_seed(self, urn: str) -> bytes:
        return seed_of_resource(self._seed, urn)

    @override
    def check_replacement(self, new: ResourceState) -> None:
        planned = self._find_planned_state(new.urn)
        if planned is None:
            raise PlanError(_describe_unplanned(new.urn, "a replacement"))
        self._compare(planned, new)

    @override
    def check_start(self, step: DeploymentStep) -> None:
        if step.op in NOT_PLANNED:
            return
        with self._lock:
            planned = self._take(step)
        if step.new is not None and planned.new is not None and step.op not in _IMPORTS:
            self._compare(planned.new, step.new)

    @override
    def note_end(self, step: DeploymentStep) -> None:
        if step.op in _IMPORTS and step.new is not None:
            planned = next((item for item in self._planned[step.urn] if item.op == step.op), None)
            if planned is not None and planned.new is not None:
                self._compare(planned.new, step.new)

    @override
    def outputs(self, urn: str, outputs: Properties) -> None:
        planned = self._find_planned_state(urn)
        if planned is not None and (mismatch := first_mismatch(planned.outputs, outputs)) is not None:
            raise PlanError(_differs(urn, f"output {mismatch}"))

    @override
    def check_deletions(self, steps: Sequence[DeploymentStep]) -> None:
        with self._lock:
            # A resource that the program dropped and that remains unchanged is reported later.
            missing = [step for step in self._list_remaining() if step.op not in (*_DELETIONS, "same")]
            planned_keys = {(step.urn, step.op) for step in self._list_remaining()}
            unplanned = [step for step in steps if (step.urn, step.op) not in planned_keys]
            step_keys = {(step.urn, step.op) for step in steps}
            kept_steps = [
                step
                for step in self._list_remaining()
                if step.op in _DELETIONS and (step.urn, step.op) not in step_keys
            ]
        if missing:
            step = missing[0]
            raise PlanError(
                f"{_name(step.urn)}: the plan has the step `{step.op}`, but the program no longer declares the "
                f"resource. {_STOPPED_PLAN_HINT}"
            )
        if unplanned:
            raise PlanError(_describe_unplanned(unplanned[0].urn, f"`{unplanned[0].op}`"))
        if kept_steps:
            raise PlanError(
                f"{_name(kept_steps[0].urn)}: the plan has the step `{kept_steps[0].op}`, which is no longer needed. "
                f"{_STOPPED_PLAN_HINT}"
            )

    def _list_remaining(self) -> Iterator[PlannedStep]:
        for steps in self._remaining.values():
            yield from steps

    def _find_planned_state(self, urn: str) -> ResourceState | None:
        """Return the planned state of a resource; None if the plan has none."""
        return next((step.new for step in reversed(self._planned.get(urn, ())) if step.new is not None), None)

    def _take(self, step: DeploymentStep) -> PlannedStep:
        """Remove a step from the remaining steps, and return it."""
        remaining = self._remaining.get(step.urn)
        if not remaining:
            raise PlanError(_describe_unplanned(step.urn, f"`{step.op}`"))
        planned = remaining[0]
        if planned.op == step.op:
            return remaining.popleft()
        if step.op in _WEAKER.get(planned.op, ()) and self._may_be_weaker(step.urn):
            self._weakened.add(step.urn)
            self._remaining[step.urn] = deque(item for item in remaining if not _is_part(item, planned))
            return next(item for item in self._planned[step.urn] if item.new is not None)
        raise PlanError(
            f"{_name(step.urn)}: the plan has the step `{planned.op}`, but the program now causes `{step.op}`. "
            f"{_STOPPED_PLAN_HINT}"
        )

    def _may_be_weaker(self, urn: str) -> bool:
        """Return whether the plan could not know if the resource changes: it, or what it depends on, was unknown."""
        planned_state = self._find_planned_state(urn)
        if planned_state is None:
            return False
        uncertain = has_unknown(dict(planned_state.inputs)) or has_unknown(planned_state.replacement_trigger)
        return uncertain or is_unknown(planned_state.id) or bool(list_required_urns(planned_state) & self._weakened)

    def _compare(self, planned: ResourceState, actual: ResourceState) -> None:
        mismatch = first_mismatch(planned.inputs, actual.inputs) or _option_mismatch(planned, actual)
        if mismatch is not None:
            raise PlanError(_differs(actual.urn, f"property {mismatch}"))


def _is_part(step: PlannedStep, first: PlannedStep) -> bool:
    """Return whether a step belongs to the same change of an object as the first step of that change."""
    if step.op == "delete-replaced" and first.old is not None:
        return step.old is not None and step.old.id == first.old.id
    return step is first or (first.op in _REPLACEMENT and step.op in _REPLACEMENT)


def _option_mismatch(planned: ResourceState, actual: ResourceState) -> Mismatch | None:
    for name in _OPTIONS:
        if getattr(planned, name) != getattr(actual, name):
            return Mismatch(f"(option {name})", str(getattr(planned, name)), str(getattr(actual, name)))
    for name in _UNORDERED_OPTIONS:
        before, after = sorted(getattr(planned, name)), sorted(getattr(actual, name))
        if before != after:
            return Mismatch(f"(option {name})", ", ".join(before) or "none", ", ".join(after) or "none")
    (planned_urn, planned_id), (urn, object_id) = split_reference(planned.provider), split_reference(actual.provider)
    if planned_urn != urn or not (planned_id == object_id or is_unknown(planned_id)):
        return Mismatch("(option provider)", planned.provider, actual.provider)
    return None


def _name(urn: str) -> str:
    return f"{urn.rpartition('::')[0].rpartition('::')[2].rpartition('$')[2]} {urn_name(urn)!r}"


def _describe_unplanned(urn: str, step_text: str) -> str:
    return (
        f"{_name(urn)}: the plan does not have the step {step_text}, which the program now causes. {_STOPPED_PLAN_HINT}"
    )


def _differs(urn: str, difference: str) -> str:
    return f"{_name(urn)}: {difference}. {_STOPPED_PLAN_HINT}"
