"""An observer of a run's steps, which may stop the run before a step is carried out."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lakewright_engine.model.resources import Properties, ResourceState
from lakewright_engine.model.step import DeploymentStep


class StepObserver:
    """Observes nothing. Subclasses record a plan or hold a run to one. They are thread-safe."""

    def random_seed(self, urn: str) -> bytes:  # noqa: ARG002 - for subclasses
        """Return the seed from which a provider makes random values of a resource, such as a name."""
        return os.urandom(32)

    def check_replacement(self, new: ResourceState) -> None:
        """Check the new inputs of a resource before its old object is deleted. Raise PlanError to stop the run."""

    def check_deletions(self, steps: Sequence[DeploymentStep]) -> None:
        """Check the deletions after the program's end, before the first. Raise PlanError to stop the run."""

    def check_start(self, step: DeploymentStep) -> None:
        """Check a step before it is carried out. Raise PlanError to stop the run."""

    def note_end(self, step: DeploymentStep) -> None:
        """Note a step that was carried out. Raise PlanError to stop the run."""

    def outputs(self, urn: str, outputs: Properties) -> None:
        """Check the outputs that a component or the stack registers. Raise PlanError to stop the run."""
