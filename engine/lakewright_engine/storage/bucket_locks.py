"""Locks of a stack as objects in a bucket."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

from lakewright_engine.model.errors import StateAccessError, StateConflictError
from lakewright_engine.model.stack_lock import StackLock
from lakewright_engine.processes.process_identity import identity
from lakewright_engine.storage import lock_holder
from lakewright_engine.storage.bucket import BucketStorage
from lakewright_engine.storage.holding import lock_content
from lakewright_engine.storage.interface import ABSENT
from lakewright_engine.storage.lock_content import read_lock

HEARTBEAT_SECONDS = 30
"""Longer than for files: each heartbeat is a request, and a new version in a versioned bucket."""


class OwnLockObject:
    """The lock object of this process. A heartbeat writes it again, which changes its time."""

    def __init__(self, storage: BucketStorage, key: str, content: bytes, version: str | None) -> None:
        """Describe the lock by its key and content."""
        self._storage = storage
        self._key = key
        self._content = content
        self._version = version
        self._writing = threading.Lock()

    @property
    def heartbeat_seconds(self) -> float:
        """The time between two heartbeats."""
        return HEARTBEAT_SECONDS

    def touch(self) -> None:
        """Write a heartbeat. A lock that was removed is not created again, also on stores without conditions."""
        with self._writing, suppress(StateAccessError, StateConflictError):
            if self._exists():
                self._version = self._storage.write(self._key, self._content, self._version)

    def is_held(self) -> bool:
        """Return whether the lock still exists."""
        with self._writing:
            return self._exists()

    def _exists(self) -> bool:
        return self._key in self._storage.entries([self._key])


class BucketLocks:
    """The lock objects of one stack."""

    def __init__(self, storage: BucketStorage, folder: str) -> None:
        """Use a folder of the storage."""
        self._storage = storage
        self._folder = folder

    def list_all(self) -> list[StackLock]:
        """Return all locks, including unreadable locks."""
        return [self._read(key, age) for key, age in self._storage.list_with_ages(self._folder)]

    @contextmanager
    def create(self, name: str) -> Generator[OwnLockObject]:
        """Create a lock object of this process. It is removed at the end of the context."""
        key = f"{self._folder}/{name}"
        claim = {**identity(os.getpid()), "heartbeat_seconds": HEARTBEAT_SECONDS}
        content = json.dumps(lock_content() | {"lakewright": claim}, separators=(",", ":")).encode()
        try:
            version = self._storage.write(key, content, ABSENT)
            yield OwnLockObject(self._storage, key, content, version)
        finally:
            # A lock that cannot be removed no longer has a heartbeat, by which the next run finds that it is dead.
            with suppress(StateAccessError):
                self._storage.delete([key])

    def remove(self, lock: StackLock) -> None:
        """Remove a lock object, if it exists."""
        self._storage.delete([f"{self._folder}/{lock.name}"])

    def remove_leftovers(self, seconds: float) -> None:
        """Do nothing: S3 has no incomplete writes."""

    def _read(self, key: str, age: float) -> StackLock:
        lock = StackLock(self._storage.describe(key), key.removeprefix(f"{self._folder}/"))
        stored = self._storage.read(key)
        if stored is None:
            return StackLock(lock.location, lock.name, remark="just released")
        return read_lock(lock, stored.content, check_heartbeat=lambda: lock_holder.status_of_silence(age))
