"""The state of a stack while it is being changed, and its way to the disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from lakewright_engine.model.resources import PendingOperation, ResourceState, StackSnapshot

Save = Callable[[StackSnapshot], None]


class Journal:
    """Starts from the last snapshot: new states come in the order they are finished, old ones stay until done with.

    Saving happens on a thread of its own: one save takes in whatever changed since the one before, and they are
    never reordered. `begin` returns only when the pending operation is on the disk, so that no provider is called for
    something that a killed run would not remember.
    """

    def __init__(self, base: StackSnapshot, save: Save | None) -> None:
        self._olds = list(base.resources)
        self._kept_operations = [op for op in base.pending_operations if op.type == "creating"]
        self._metadata = base.metadata
        self._done: dict[int, ResourceState] = {}
        self._news: dict[int, ResourceState] = {}
        """By identity, in the order in which they were finished: a list would be searched at every step."""
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

    def begin(self, resource: ResourceState, operation: str) -> PendingOperation:
        """Notes an operation as under way; returns when that is on the disk."""
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
        """Ends an operation: `done` leaves the state, `new` enters it."""
        with self._changed:
            if pending is not None:
                self._operations = [op for op in self._operations if op is not pending]
            if done is not None:
                self._drop(done)
            if new is not None:
                self._news[id(new)] = new
                self._settle(new.urn)
            self._touch()

    def leave(self, pending: PendingOperation) -> None:
        """Keeps a creation pending that ended without telling how it went: the next run looks for its object."""
        with self._changed:
            self._operations = [op for op in self._operations if op is not pending]
            self._settle(pending.resource.urn)
            self._kept_operations.append(pending)
            self._touch()

    def keep(self, old: ResourceState, new: ResourceState) -> None:
        """Puts `new` in the place of `old`; nothing to save while both say the same."""
        with self._changed:
            self._drop(old)
            self._news[id(new)] = new
            self._settle(new.urn)
            if old != new:
                self._touch()

    def change(self, edit: Callable[[], None]) -> None:
        """Changes a state that is in the snapshot already."""
        with self._changed:
            edit()
            self._touch()

    def rebase(self, resources: Iterable[ResourceState]) -> None:
        """Replaces what is known of the past: after a refresh."""
        with self._changed:
            self._olds = list(resources)
            self._touch()

    def settle(self, urn: str) -> None:
        """Forgets a creation that an earlier run left pending."""
        with self._changed:
            self._settle(urn)
            self._touch()

    def _drop(self, state: ResourceState) -> None:
        self._done[id(state)] = state
        self._news.pop(id(state), None)

    def _settle(self, urn: str) -> None:
        self._kept_operations = [op for op in self._kept_operations if op.resource.urn != urn]

    def snapshot(self) -> StackSnapshot:
        with self._changed:
            resources = [*self._news.values()] + [old for old in self._olds if id(old) not in self._done]
            operations = [PendingOperation(op.resource, op.type) for op in self._operations]
            return StackSnapshot(_rename_references(resources), operations + self._kept_operations, self._metadata)

    def close(self) -> None:
        """Save what is not saved yet; raise what saving raised.

        After a failed save, the steps that were under way have ended meanwhile: they are saved where that works now, as
        on a disk that was full for a moment.
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
        took = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._version > self._saved)
                # What other steps say within two saves' time goes with it: one save serves them all, and saving takes
                # a third of the time at most.
                self._changed.wait_for(lambda: self._closing, timeout=2 * took)
                version = self._version
                if version == self._saved:
                    return
            began = time.monotonic()
            try:
                self._save(self.snapshot())
            except Exception as error:  # noqa: BLE001 - carried to whoever waits for the save
                with self._changed:
                    self._failure = error
                    self._changed.notify_all()
                return
            took = time.monotonic() - began
            with self._changed:
                self._saved = version
                self._changed.notify_all()


def _rename_references(resources: list[ResourceState]) -> list[ResourceState]:
    """Lets states refer to renamed resources by their new URNs: no snapshot names a resource that is not in it."""
    renamed = {alias: state.urn for state in resources for alias in state.aliases}
    if not renamed:
        return resources

    def current(urn: str) -> str:
        return renamed.get(urn, urn)

    def renew(state: ResourceState) -> ResourceState:
        provider, _, provider_id = state.provider.rpartition("::")
        return replace(
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
