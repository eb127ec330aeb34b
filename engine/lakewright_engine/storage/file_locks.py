"""Locks of a stack as files in a folder."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakewright_engine.model.stack_lock import StackLock
from lakewright_engine.storage import files, lock_holder
from lakewright_engine.storage.holding import NAME_PREFIX, lock_content
from lakewright_engine.storage.lock_content import read_lock

_LEFTOVER = ".partial"


class OwnLockFile:
    """The lock file of this process, and its descriptor."""

    def __init__(self, file: Path, descriptor: int) -> None:
        """Describe the lock by its open file."""
        self._file = file
        self._descriptor = descriptor

    @property
    def heartbeat_seconds(self) -> float:
        """The time between two heartbeats."""
        return lock_holder.HEARTBEAT_SECONDS

    def touch(self) -> None:
        """Write a heartbeat."""
        with suppress(OSError):  # the file server may be unavailable for a moment
            os.utime(self._descriptor)

    def is_held(self) -> bool:
        """Return whether the file is still the file that this process created."""
        self.touch()
        try:
            return os.path.samestat(self._file.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False


class FileLocks:
    """The lock files of one stack."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, which need not exist."""
        self._folder = folder

    def list_all(self) -> list[StackLock]:
        """Return all locks, including unreadable locks."""
        return [_read(file) for file in sorted(self._folder.glob("*.json"))] if self._folder.is_dir() else []

    @contextmanager
    def create(self, name: str) -> Generator[OwnLockFile]:
        """Create a lock file of this process. It is removed at the end of the context."""
        folder = self._folder
        files.make_folder(folder)
        own_file = folder / name
        # Not in the folder of the locks: the CLI counts every file there as a lock.
        partial = folder.parent / f".{folder.name}.{own_file.stem}{_LEFTOVER}"
        with os.fdopen(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            os.fchmod(stream.fileno(), files.mode_of_files(folder))
            content = lock_content() | {"lakewright": lock_holder.claim_lock(stream.fileno())}
            stream.write(json.dumps(content, separators=(",", ":")))
            stream.flush()
            os.fsync(stream.fileno())
            partial.replace(own_file)
            files.sync_folder(folder)
            try:
                yield OwnLockFile(own_file, stream.fileno())
            finally:
                own_file.unlink(missing_ok=True)

    def remove(self, lock: StackLock) -> None:
        """Remove a lock file, if it exists."""
        (self._folder / lock.name).unlink(missing_ok=True)

    def remove_leftovers(self, seconds: float) -> None:
        """Remove temporary files of killed runs: incomplete locks, and probes of the file server's time."""
        folder = self._folder
        if not folder.is_dir():
            return
        leftovers = [
            *folder.parent.glob(f".{glob.escape(folder.name)}.{NAME_PREFIX}*{_LEFTOVER}"),
            *folder.parent.glob(f"{lock_holder.PROBE_PREFIX}*"),
            *folder.glob(f"*{_LEFTOVER}"),
            *folder.glob(f"{lock_holder.PROBE_PREFIX}*"),
        ]
        now = lock_holder.file_server_time(folder.parent) if leftovers else 0
        for leftover in leftovers:
            with suppress(FileNotFoundError):
                if now - leftover.stat().st_mtime >= seconds:
                    leftover.unlink()


def _read(file: Path) -> StackLock:
    lock = StackLock(str(file), file.name)
    try:
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            raise
        except OSError:
            content = b""
        return read_lock(
            lock,
            content,
            check_heartbeat=lambda: lock_holder.check_heartbeat(file),
            dead_by_place=lambda claim: lock_holder.dead_by_file(file, claim),
        )
    except FileNotFoundError:
        return StackLock(str(file), file.name, remark="just released")
