"""Deletions ahead of a replacement (delete-before-replace): each object is deleted once, whatever asks for it."""

from __future__ import annotations

import threading

from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.planning.replacement import Dependent, dependent_replacements, replaced_together
from lakewright_engine.steps.deployment import Deployment


class EarlyDeletions:
    """Thread-safe. A resource is either decided on (its own step is planned) or deleted early, never both."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._lock = threading.RLock()
        self._decided: set[str] = set()
        self._keys: dict[str, list[str]] = {}
        """URN of a resource that was deleted early -> the properties that asked for it."""
        self._ended: dict[int, threading.Event] = {}

    def includes(self, urn: str) -> bool:
        """Return whether the resource was deleted early and has not been registered since."""
        with self._lock:
            return urn in self._keys

    def decide(self, urn: str, old: ResourceState | None = None) -> list[str] | None:
        """Keep a registered resource from being deleted early.

        Returns:
            The properties that ask for its replacement if it was deleted early already; None if it was not.
        """
        with self._lock:
            self._decided |= {urn, old.urn} if old is not None else {urn}
            keys = self._keys.pop(urn, None)
            if keys is not None:
                self._deployment.unmark_deleted(urn)
            return keys

    def carry_out(self, old: ResourceState) -> None:
        """Delete an object that is to be replaced, and first what cannot live without it.

        Raises:
            ProgramError: One of its dependents is protected.
            DeploymentStoppedError: A deletion failed.
        """
        with self._lock:
            own, others = self._plan(old)
        try:
            for ended in others:
                ended.wait()
            for dependent in own:
                self._delete(dependent)
            # A pending replacement is one that was deleted by an earlier run.
            if not old.pending_replacement:
                self._delete(old)
        finally:
            for dependent in own:
                self._ended[id(dependent)].set()

    def _plan(self, old: ResourceState) -> tuple[list[ResourceState], list[threading.Event]]:
        """Return what to delete, in order, and what to wait for: dependents that another replacement deletes."""
        deployment = self._deployment
        dependents: list[Dependent] = [
            *dependent_replacements(deployment, old, self._decided),
            *replaced_together(deployment, old.urn, self._decided),
        ]
        own: list[ResourceState] = []
        others: list[threading.Event] = []
        keys: dict[str, list[str]] = {}
        for dependent, properties in reversed(dependents):
            if id(dependent) in self._ended:
                others.append(self._ended[id(dependent)])
            elif all(dependent is not other for other in own):
                _refuse_protected(dependent, old.urn)
                own.append(dependent)
                if not dependent.delete:
                    keys[dependent.urn] = properties
        self._keys |= keys
        self._ended |= {id(dependent): threading.Event() for dependent in own}
        deployment.mark_deleted({old.urn, *(dependent.urn for dependent in own)})
        return own, others

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
