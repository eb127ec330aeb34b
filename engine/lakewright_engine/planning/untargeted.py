"""Registered resources that the operation does not target: they keep their state, and new resources are not created."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from lakewright_engine.model.errors import DeploymentStoppedError, ProgramError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.model.urns import split_reference
from lakewright_engine.steps.deployment import Deployment
from lakewright_engine.steps.targets import list_required_urns


def report_unchanged(deployment: Deployment, states: Sequence[ResourceState]) -> None:
    """Report resources that are neither registered nor deleted as unchanged."""
    for state in states:
        if not state.delete:
            deployment.run(DeploymentStep("same", state, state), lambda: None)


class UntargetedResources:
    """The untargeted resources of a run. Thread-safe."""

    def __init__(self, deployment: Deployment) -> None:
        """Start without untargeted resources."""
        self._deployment = deployment
        self._lock = threading.Lock()
        self._needed: set[str] = set()
        self._kept: dict[str, ResourceState] = {}

    @property
    def needed(self) -> set[str]:
        """URNs that kept states depend on. They are kept too, even if the program dropped them."""
        with self._lock:
            return set(self._needed)

    def keep_or_skip(
        self, old: ResourceState | None, new: ResourceState, current_urn: Callable[[str], str]
    ) -> DeploymentStep:
        """Keep the state of a resource unchanged, or skip its creation. Return the step that the program receives.

        Args:
            old: The resource's state; None if it is new.
            new: The desired state of the resource.
            current_urn: Returns the URN that the program now has for a provider's old URN.

        Raises:
            ProgramError: The provider of the kept resource has changed.
        """
        deployment = self._deployment
        if old is None:
            deployment.scope.skip(new.urn)
            step = DeploymentStep("same", None, new, is_skipped=True)
            deployment.run(step, lambda: None)
            return step
        self._refuse_changed_provider(old, current_urn)
        with self._lock:
            self._kept[new.urn] = self._kept[old.urn] = old
            self._add_needs(old)
        kept_state = replace(old)
        step = DeploymentStep("same", old, kept_state)
        deployment.run(step, lambda: deployment.journal.replace(old, kept_state))
        return step

    def refuse_unmet_dependencies(self, new: ResourceState) -> None:
        """Refuse a step for a resource that depends on a resource that is not created or depends on it.

        Raises:
            ProgramError: A kept state depends on the resource that now depends on it.
            DeploymentStoppedError: It depends on a resource that is not created. A preview reports it and continues.
        """
        deployment = self._deployment
        if not deployment.scope.is_limited:
            return
        if (other := self._find_cyclic_dependency(new)) is not None:
            raise ProgramError(
                f"{new.urn} depends on {other}, which the operation does not target and which depends on {new.urn} in "
                "the state: target both"
            )
        for urn in deployment.scope.list_skipped_dependencies(new):
            message = f"Resource '{new.urn}' depends on '{urn}', which was not specified in --target list."
            if deployment.scope.excludes:
                message = f"Resource '{new.urn}' depends on '{urn}', which does not exist yet and is excluded."
            deployment.report_error(message, new.urn)
            if not deployment.dry_run:
                deployment.stopped.set()
                deployment.on_failure()
                raise DeploymentStoppedError

    def _find_cyclic_dependency(self, new: ResourceState) -> str | None:
        """Return a kept resource that a new state depends on and that depends on it."""
        names = {new.urn, *new.aliases}
        for first in sorted(list_required_urns(new)):
            frontier, visited = {first}, set[str]()
            while frontier:
                urn = frontier.pop()
                visited.add(urn)
                kept_state = self._kept.get(urn)
                if kept_state is not None:
                    if list_required_urns(kept_state) & names:
                        return first
                    frontier |= list_required_urns(kept_state) - visited
        return None

    def _add_needs(self, state: ResourceState) -> None:
        frontier = [state]
        while frontier:
            for urn in list_required_urns(frontier.pop()) - self._needed:
                self._needed.add(urn)
                if (other := self._deployment.olds.get(urn)) is not None:
                    frontier.append(other)

    def _refuse_changed_provider(self, old: ResourceState, current_urn: Callable[[str], str]) -> None:
        if not old.provider:
            return
        urn, provider_id = split_reference(old.provider)
        registered = self._deployment.news.get(current_urn(urn))
        if registered is None or registered.id != provider_id:
            raise ProgramError(
                f"provider {old.provider} for resource {old.urn} has not been registered yet, this is due to a change "
                "of providers mixed with --target. Change your program back to the original providers"
            )
