"""Record the steps of a preview."""

from __future__ import annotations

import hmac
import os
import threading
from dataclasses import replace

from typing_extensions import override

from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.plans.model import PlannedStep
from lakewright_engine.steps.observer import StepObserver

NOT_PLANNED = ("refresh",)
"""Operations that only read. They run before the steps of a plan."""


SEED_BYTES = 32


class PlanRecorder(StepObserver):
    """Records steps in the order in which they were finished."""

    def __init__(self) -> None:
        """Start without steps."""
        self._lock = threading.Lock()
        self._steps: list[DeploymentStep] = []
        self.seed = os.urandom(SEED_BYTES)
        """Random seed of the whole preview."""

    @override
    def random_seed(self, urn: str) -> bytes:
        return seed_of_resource(self.seed, urn)

    @override
    def note_end(self, step: DeploymentStep) -> None:
        if step.op not in NOT_PLANNED:
            with self._lock:
                self._steps.append(step)

    def list_steps(self) -> list[PlannedStep]:
        """Return the recorded steps. Call it after the run: components register their outputs late."""
        return [_to_planned_step(step) for step in self._steps]

    def list_touched_objects(self) -> list[ResourceState]:
        """Return the objects that the steps change or delete."""
        states_by_id = {id(step.old): step.old for step in self._steps if step.old is not None and step.op != "same"}
        return [state for state in states_by_id.values() if state.custom]


def seed_of_resource(seed: bytes, urn: str) -> bytes:
    """Return the random seed of a resource from that of the plan."""
    return hmac.digest(seed, urn.encode(), "sha256")


def _to_planned_step(step: DeploymentStep) -> PlannedStep:
    old = step.old if step.op != "same" else None
    return PlannedStep(
        op=step.op,
        urn=step.urn,
        type=step.state.type,
        diff=step.diff,
        old=_drop_outputs(old) if old is not None else None,
        new=_drop_times(step.new) if step.new is not None else None,
    )


def _drop_outputs(old: ResourceState) -> ResourceState:
    """Return the values that a plan shows and compares of an object: its inputs, and whether a deletion keeps it."""
    return ResourceState(
        old.urn,
        old.type,
        old.custom,
        id=old.id,
        inputs=old.inputs,
        parent=old.parent,
        retain_on_delete=old.retain_on_delete,
    )


def _drop_times(new: ResourceState) -> ResourceState:
    """Return the values that a step declares. The outputs of an object are not known before the step is carried out."""
    return replace(
        new,
        outputs={} if new.custom else new.outputs,
        created="",
        modified="",
        source_position="",
        stack_trace=[],
        delete=False,
        pending_replacement=False,
        extra={},
    )
