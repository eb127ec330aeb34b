"""The part of a plan in a run of the embedded engine: none, recording a plan, or following one."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from lakewright_engine.model.resources import ResourceState
from lakewright_engine.plans.follower import PlanFollower
from lakewright_engine.plans.model import KnownObject, PlanSteps
from lakewright_engine.plans.recorder import PlanRecorder
from lakewright_engine.plans.server_objects import list_refreshed_objects, read_objects, refuse_moved
from lakewright_engine.steps.deployment import Deployment
from lakewright_engine.steps.observer import StepObserver

SEED_VARIABLE = "LAKEWRIGHT_PLAN_SEED"
"""The random seed of the plan, from which dynamic providers make random inputs: Python's get no seed with a check."""


class PlanSession:
    """A run without a plan."""

    def __init__(self, observer: StepObserver | None = None) -> None:
        """Observe the run's steps."""
        self.observer = observer or StepObserver()

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for the processes of providers."""
        return {}

    def check_before_program(self, deployment: Deployment) -> None:
        """Check the objects before the program runs. Raise PlanError to stop the run."""

    def check_refresh(self, before: Sequence[ResourceState], after: Sequence[ResourceState]) -> None:
        """Check the objects that a refresh has read. Raise PlanError to stop the run."""

    def check_after_program(self, deployment: Deployment) -> None:
        """Read objects after the last step. Raise PlanError if one cannot be read."""


class RecordingSession(PlanSession):
    """A preview whose plan is kept."""

    def __init__(self) -> None:
        """Start without steps."""
        self._recorder = PlanRecorder()
        super().__init__(self._recorder)
        self._objects: list[KnownObject] | None = None

    @property
    def plan(self) -> PlanSteps:
        """The plan, after the run."""
        return PlanSteps(self._recorder.list_steps(), self._objects or [], self._recorder.seed)

    @property
    @override
    def environment(self) -> dict[str, str]:
        return {SEED_VARIABLE: self._recorder.seed.hex()}

    @override
    def check_refresh(self, before: Sequence[ResourceState], after: Sequence[ResourceState]) -> None:
        self._objects = list_refreshed_objects(before, after)

    @override
    def check_after_program(self, deployment: Deployment) -> None:
        if self._objects is None:
            self._objects = read_objects(deployment, self._recorder.list_touched_objects())


class FollowingSession(PlanSession):
    """An update that does the steps of a plan."""

    def __init__(self, plan: PlanSteps) -> None:
        """Follow a plan."""
        super().__init__(PlanFollower(plan))
        self._plan = plan
        self.is_used = False
        """Whether the objects are as planned, so that the steps may begin."""

    @property
    @override
    def environment(self) -> dict[str, str]:
        return {SEED_VARIABLE: self._plan.seed.hex()}

    @override
    def check_before_program(self, deployment: Deployment) -> None:
        # Also before a refresh, which saves what it finds: a refused plan changes nothing.
        planned = {planned_object.key for planned_object in self._plan.objects}
        states = [state for state in deployment.resources if (state.urn, state.id) in planned]
        refuse_moved(self._plan.objects, read_objects(deployment, states))
        self.is_used = True

    @override
    def check_refresh(self, before: Sequence[ResourceState], after: Sequence[ResourceState]) -> None:
        refuse_moved(self._plan.objects, list_refreshed_objects(before, after))
