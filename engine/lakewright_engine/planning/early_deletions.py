"""Deletions before a replacement (delete-before-replace). Each object is deleted once."""

from __future__ import annotations

import threading

from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.planning.replacement import Dependent, dependent_replacements, list_joint_replacements
from lakewright_engine.steps.deployment import Deployment


class EarlyDeletions:
    """The early deletions of a run.

    A resource either has a planned step or is deleted early, never both. Thread-safe.
    """

    def __init__(self, deployment: Deployment) -> None:
        """Start without early deletions."""
        self._deployment = deployment
        self._lock = threading.RLock()
        self._decided: set[str] = set()
        self._keys: dict[str, list[str]] = {}
        """URN of a resource that was deleted early -> the properties that required it."""
        self._ended: dict[int, threading.Event] = {}

    def includes(self, urn: str) -> bool:
        """Return whether the resource was deleted early and has not been registered since."""
        with self._lock:
            return urn in self._keys

    def decide(self, urn: str, old: ResourceState | None = None) -> list[str] | None:
        """Exclude a registered resource from early deletion.

        Returns:
            The properties that require its replacement if it was deleted early; None if it was not.
        """
        with self._lock:
            self._decided |= {urn, old.urn} if old is not None else {urn}
            keys = self._keys.pop(urn, None)
            if keys is not None:
                self._deployment.unmark_deleted(urn)
            return keys

    def execute(self, old: ResourceState) -> None:
        """Delete an object that is being replaced, after the dependents that cannot exist without it.

        Raises:
            ProgramError: One of its dependents is protected.
            DeploymentStoppedError: A deletion failed.
        """
        with self._lock:
            own_dependents, other_events = self._plan(old)
        try:
            for ended in other_events:
                ended.wait()
            for dependent in own_dependents:
                self._delete(dependent)
            # The object of a pending replacement was deleted by an earlier run.
            if not old.pending_replacement:
                self._delete(old)
        finally:
            for dependent in own_dependents:
                self._ended[id(dependent)].set()

    def _plan(self, old: ResourceState) -> tuple[list[ResourceState], list[threading.Event]]:
        """Return the dependents to delete, in order, and events of dependents that another replacement deletes."""
        deployment = self._deployment
        dependents: list[Dependent] = [
            *dependent_replacements(deployment, old, self._decided),
            *list_joint_replacements(deployment, old.urn, self._decided),
        ]
        own_dependents: list[ResourceState] = []
        other_events: list[threading.Event] = []
        keys: dict[str, list[str]] = {}
        for dependent, properties in reversed(dependents):
            if id(dependent) in self._ended:
                other_events.append(self._ended[id(dependent)])
            elif all(dependent is not other for other in own_dependents):
                _refuse_protected(dependent, old.urn)
                own_dependents.append(dependent)
                if not dependent.delete:
                    keys[dependent.urn] = properties
        self._keys |= keys
        self._ended |= {id(dependent): threading.Event() for dependent in own_dependents}
        deployment.mark_deleted({old.urn, *(dependent.urn for dependent in own_dependents)})
        return own_dependents, other_events

    def _delete(self, state: ResourceState) -> None:
        deployment = self._deployment
        if state.delete:
            deployment.delete(DeploymentStep("discard" if state.external else "delete", state, None))
            deployment.deleted_early.add(id(state))
            return
        op = "discard-replaced" if state.external else "delete-replaced"
        deployment.delete(DeploymentStep(op, state, None, logical=False), before_replacement=True)


def _refuse_protected(dependent: ResourceState, urn: str) -> None:
    if dependent.protect and not dependent.delete:
        raise ProgramError(
            f'unable to replace resource "{dependent.urn}" as part of replacing "{urn}" as it is currently marked for '
            "protection. To unprotect the resource, remove the `protect` flag from the resource in your Pulumi program "
            f"and run `pulumi up`, or use the command:\n`lakewright state unprotect '{dependent.urn}'`"
        )
