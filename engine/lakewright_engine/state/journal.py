"""Record the changes of a stack's state during a run, and save them."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable

from lakewright_engine.model.resources import PendingOperation, ResourceState, StackSnapshot
from lakewright_engine.state.interrupted_creations import list_unfinished, settles_creation

Save = Callable[[StackSnapshot], None]


class Journal:
    """The current state: new states in the order in which they were finished, and old states that are not done.

    A separate thread saves it. A save contains all changes since the previous save, in order. `begin` returns only when
    the pending operation is saved: no provider is called for an operation that a killed run would lose.
    """

    def __init__(self, base: StackSnapshot, save: Save | None) -> None:
        """Start from a snapshot; `save` writes a snapshot, or is None in a preview."""
        self._olds = list(base.resources)
        self._kept_operations = list_unfinished(base)
        self._metadata = base.metadata
        self._done: dict[int, ResourceState] = {}
        self._news: dict[int, ResourceState] = {}
        """By identity, in the order in which they were finished.

        A dict is faster than a list, which every step would search.
        """
        self._operations: list[PendingOperation] = []
        self._save = save
        self._changed = threading.Condition()
        self._version = 0
        self._saved = 0
        self._closing = False
        self._failure: Exception | None = None
        self._writer: threading.Thread | None = None
        if save is not None:
            self._writer = threading.Thread(target=self._write, name="state-writer", daemon=True)
            self._writer.start()

    @property
    def pending_creations(self) -> list[PendingOperation]:
        """The creations, of earlier runs or with unknown results, whose objects the state may not have."""
        with self._changed:
            return [*self._kept_operations]

    def begin(self, resource: ResourceState, operation: str) -> PendingOperation:
        """Record an operation as pending. Return when that is saved."""
        pending = PendingOperation(resource, operation)
        with self._changed:
            self._operations.append(pending)
            version = self._touch()
        self._flush(version)
        return pending

    def finish(
        self,
        pending: PendingOperation | None = None,
        done: ResourceState | None = None,
        new: ResourceState | None = None,
    ) -> None:
        """End an operation: remove `done` from the state and add `new` to it."""
        with self._changed:
            if pending is not None:
                self._operations = [op for op in self._operations if op is not pending]
            if done is not None:
                self._drop(done)
            if new is not None:
                self._news[id(new)] = new
                self._remove_accounted(new)
            self._touch()

    def keep_pending(self, pending: PendingOperation) -> None:
        """Keep a creation pending whose result is not known. The next run looks up its object."""
        with self._changed:
            self._operations = [op for op in self._operations if op is not pending]
            self._remove_accounted(pending.resource)
            self._kept_operations.append(pending)
            self._touch()

    def replace(self, old: ResourceState, new: ResourceState) -> None:
        """Replace `old` by `new`. Equal states need no save, unless the step ends a pending creation."""
        with self._changed:
            self._drop(old)
            self._news[id(new)] = new
            if self._remove_accounted(new) or old != new:
                self._touch()

    def change(self, edit: Callable[[], None]) -> None:
        """Change a state that is in the snapshot."""
        with self._changed:
            edit()
            self._touch()

    def rebase(self, resources: Iterable[ResourceState]) -> None:
        """Replace the old states after a refresh."""
        with self._changed:
            self._olds = list(resources)
            self._touch()

    def remove_pending(self, pending: PendingOperation) -> None:
        """Remove a pending creation of an earlier run."""
        with self._changed:
            self._kept_operations = [op for op in self._kept_operations if op is not pending]
            self._touch()

    def _drop(self, state: ResourceState) -> None:
        self._done[id(state)] = state
        self._news.pop(id(state), None)

    def _remove_accounted(self, state: ResourceState) -> bool:
        """Remove the pending creations whose objects a resource has. Return whether there were any."""
        count = len(self._kept_operations)
        self._kept_operations = [op for op in self._kept_operations if not settles_creation(state, op.resource)]
        return len(self._kept_operations) < count

    def snapshot(self) -> StackSnapshot:
        """Return the current state."""
        with self._changed:
            resources = [*self._news.values()] + [old for old in self._olds if id(old) not in self._done]
            operations = [PendingOperation(op.resource, op.type) for op in self._operations]
            return StackSnapshot(_rename_references(resources), operations + self._kept_operations, self._metadata)

    def close(self) -> None:
        """Save the remaining changes. Raise the error of a failed save.

        After a failed save, the state is saved once more: steps in progress have ended since, and the cause, such as a
        full disk, may be fixed.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._writer is not None:
            self._writer.join()
        if self._failure is not None and self._save is not None:
            self._save(self.snapshot())
            self._failure = None
        self._raise_failure()

    def _touch(self) -> int:
        self._version += 1
        self._changed.notify_all()
        return self._version

    def _flush(self, version: int) -> None:
        with self._changed:
            if self._save is not None:
                self._changed.wait_for(lambda: self._saved >= version or self._failure is not None)
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _write(self) -> None:
        assert self._save is not None
        used = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._version > self._saved)
                # Collect further changes for twice the processor time of a save: saving then takes at most a third of
                # a processor. Waiting for the disk takes none, and steps wait for the save.
                self._changed.wait_for(lambda: self._closing, timeout=2 * used)
                version = self._version
                if version == self._saved:
                    return
            began = time.thread_time()
            try:
                self._save(self.snapshot())
            except Exception as error:  # noqa: BLE001 - raised again by the callers that wait for the save
                with self._changed:
                    self._failure = error
                    self._changed.notify_all()
                return
            used = time.thread_time() - began
            with self._changed:
                self._saved = version
                self._changed.notify_all()


def _rename_references(resources: list[ResourceState]) -> list[ResourceState]:
    """Update references to renamed resources, so that a snapshot refers only to resources in it."""
    renamed = {alias: state.urn for state in resources for alias in state.aliases}
    if not renamed:
        return resources

    def current(urn: str) -> str:
        return renamed.get(urn, urn)

    def renew(state: ResourceState) -> ResourceState:
        provider, _, provider_id = state.provider.rpartition("::")
        return dataclasses.replace(
            state,
            aliases=[],
            parent=current(state.parent),
            dependencies=[current(urn) for urn in state.dependencies],
            property_dependencies={
                key: [current(urn) for urn in urns] for key, urns in state.property_dependencies.items()
            },
            deleted_with=current(state.deleted_with),
            replace_with=[current(urn) for urn in state.replace_with],
            provider=f"{current(provider)}::{provider_id}" if state.provider else "",
        )

    return [renew(state) for state in resources]
