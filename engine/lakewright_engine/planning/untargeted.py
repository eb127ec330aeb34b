"""Registered resources that the operation does not work on: they keep their state, and new ones are not created."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from lakewright_engine.model.errors import DeploymentStoppedError, ProgramError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.model.urns import split_reference
from lakewright_engine.steps.deployment import Deployment
from lakewright_engine.steps.targets import required_urns


def report_unchanged(deployment: Deployment, states: Sequence[ResourceState]) -> None:
    """Report resources that are neither registered nor deleted as unchanged."""
    for state in states:
        if not state.delete:
            deployment.run(DeploymentStep("same", state, state), lambda: None)


class UntargetedResources:
    """Thread-safe."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._lock = threading.Lock()
        self._needed: set[str] = set()
        self._kept: dict[str, ResourceState] = {}

    @property
    def needed(self) -> set[str]:
        """URNs of what the kept states depend on: it stays, too, even if the program no longer has it."""
        with self._lock:
            return set(self._needed)

    def leave(self, old: ResourceState | None, new: ResourceState, current_urn: Callable[[str], str]) -> DeploymentStep:
        """Keep the state of a resource as it is, or skip its creation; return the step that the program hears of.

        Args:
            old: The resource's state; None if it is new.
            new: The resource as the program wants it.
            current_urn: The URN that this program has given to the provider of an old URN.

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
        kept = replace(old)
        step = DeploymentStep("same", old, kept)
        deployment.run(step, lambda: deployment.journal.keep(old, kept))
        return step

    def refuse_unmet_dependencies(self, new: ResourceState) -> None:
        """Refuse a step for a resource that needs what is not created or needs it in turn; a preview goes on.

        Raises:
            ProgramError: A kept state needs the resource that now needs it.
            DeploymentStoppedError: The resource needs one that is not created.
        """
        deployment = self._deployment
        if not deployment.scope.is_limited:
            return
        if (other := self._find_cyclic_dependency(new)) is not None:
            raise ProgramError(
                f"{new.urn} depends on {other}, which the operation leaves as it is in the state, and there it depends "
                f"on {new.urn}: target both"
            )
        for urn in deployment.scope.skipped_dependencies(new):
            message = f"Resource '{new.urn}' depends on '{urn}', which was not specified in --target list."
            if deployment.scope.excludes:
                message = f"Resource '{new.urn}' depends on '{urn}', which does not exist yet and is excluded."
            deployment.report_error(message, new.urn)
            if not deployment.dry_run:
                deployment.stopped.set()
                deployment.on_failure()
                raise DeploymentStoppedError

    def _find_cyclic_dependency(self, new: ResourceState) -> str | None:
        """Return a kept resource that a new state needs and that needs it in turn."""
        names = {new.urn, *new.aliases}
        for first in sorted(required_urns(new)):
            frontier, seen = {first}, set[str]()
            while frontier:
                urn = frontier.pop()
                seen.add(urn)
                kept = self._kept.get(urn)
                if kept is not None:
                    if required_urns(kept) & names:
                        return first
                    frontier |= required_urns(kept) - seen
        return None

    def _add_needs(self, state: ResourceState) -> None:
        frontier = [state]
        while frontier:
            for urn in required_urns(frontier.pop()) - self._needed:
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
