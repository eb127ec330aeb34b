"""The files of stacks in a storage, in the layout of the Pulumi CLI: checkpoints with backups, and history."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast

import yaml

from lakewright_engine.model.errors import (
    DamagedStateError,
    StateAccessError,
    StateConflictError,
    UnsupportedStateError,
)
from lakewright_engine.state.checkpoint_document import decompress
from lakewright_engine.state.names import check_stack_name, is_valid_name
from lakewright_engine.state.settings import BackendSettings
from lakewright_engine.storage.interface import ABSENT, ObjectEntry, Storage

ENDINGS = (".json", ".json.gz", ".json.zst")
"""Endings of checkpoints. If there are several, the newest is the state, as for the CLI."""
_META = "meta.yaml"

ORGANIZATION = "organization"
"""The organization name that the CLI uses for backends without organizations."""

LOCKS = f"locks/{ORGANIZATION}"
"""Folder of the locks of all projects."""


class StackFiles:
    """Checkpoints and history of the stacks in a storage."""

    def __init__(self, storage: Storage) -> None:
        """Use a storage."""
        self.storage = storage
        self._versions: dict[str, dict[str, str | None]] = {}
        """Base key of a stack -> version by key of the checkpoints that this process read or wrote."""
        self._is_checked = False
        self._has_meta = False

    def exists(self, project: str, stack: str) -> bool:
        """Return whether the stack has a checkpoint."""
        return bool(self._entries(_base(project, stack)))

    def location(self, project: str, stack: str) -> str:
        """Return the path or URL of the stack's checkpoint."""
        base = _base(project, stack)
        return self.storage.describe(_newest(self._entries(base)) or f"{base}.json")

    def read(self, project: str, stack: str) -> tuple[bytes, str] | None:
        """Return content and place of the stack's checkpoint; None if there is none."""
        self.check_layout()
        base = _base(project, stack)
        entries = self._entries(base)
        key = _newest(entries)
        stored = self.storage.read(key) if key is not None else None
        if key is None or stored is None:
            self._versions.pop(base, None)
            return None
        self._versions[base] = {name: entry.version for name, entry in entries.items()} | {key: stored.version}
        return stored.content, self.storage.describe(key)

    def read_text(self, project: str, stack: str) -> bytes | None:
        """Return the text of the stack's checkpoint; None if its compression cannot be read."""
        content_and_location = self.read(project, stack)
        return b"" if content_and_location is None else decompress(content_and_location[0])

    def read_backup(self, project: str, stack: str) -> tuple[bytes, str] | None:
        """Return content and place of the stack's previous checkpoint; None if there is none."""
        keys = [f"{_base(project, stack)}{ending}.bak" for ending in ENDINGS]
        key = _newest(self.storage.entries(keys))
        stored = self.storage.read(key) if key is not None else None
        return (stored.content, self.storage.describe(key)) if key is not None and stored is not None else None

    def forget_version(self, project: str, stack: str) -> None:
        """Let the next write replace the checkpoint that it finds, whichever this process read."""
        self._versions.pop(_base(project, stack), None)

    def write(self, project: str, stack: str, content: bytes, *, keeps_previous: bool = True) -> None:
        """Write the stack's checkpoint.

        The previous checkpoint is kept as `.bak`. A checkpoint that another process wrote since this process read or
        wrote it is never replaced, if the storage has versions.

        Raises:
            StateConflictError: Another process wrote the checkpoint.
            StateAccessError: The checkpoint could not be saved.
        """
        self.check_layout()
        settings = BackendSettings.read_for_write()
        base = _base(project, stack)
        target = f"{base}.json.gz" if settings.compresses else f"{base}.json"
        packed = gzip.compress(content) if settings.compresses else content
        with _explain_write_error(f"the state of stack '{stack}'"):
            self._write_meta()
            known_versions = self._list_known_versions(base)
            if keeps_previous:
                for key in known_versions:
                    self.storage.keep_copy(key, f"{key}.bak")
            try:
                version = self.storage.write(target, packed, known_versions.get(target, ABSENT))
            except StateConflictError as error:
                raise StateConflictError(
                    f"another process wrote the state of stack '{stack}' ({self.storage.describe(target)}) since this "
                    "run read it. The newer state is unchanged"
                ) from error
            self._versions[base] = {target: version} if version is not None else {}
            # The CLI changes the compression in the same way.
            self.storage.delete([key for key in known_versions if key != target])
            if settings.retains_checkpoints:
                self.storage.write(f"{target}.{time.time_ns()}", packed)

    def remove(self, project: str, stack: str) -> None:
        """Remove the checkpoint, its backups, tags and history."""
        base = _base(project, stack)
        names = [f"{base}{ending}" for ending in ENDINGS]
        self.storage.delete([*names, *(f"{name}.bak" for name in names), f"{base}.pulumi-tags"])
        for kind in ("backups", "history"):
            self.storage.delete_folder(_folder(kind, project, stack))
        self._versions.pop(base, None)

    def names(self, project: str | None = None) -> list[tuple[str, str]]:
        """Return project and name of all stacks, or of the stacks of one project, sorted by name."""
        self.check_layout()
        folder = f"stacks/{project}" if project is not None else "stacks"
        stack_names: set[tuple[str, str]] = set()
        for entry in self.storage.list_folder(folder):
            parts = entry.key.split("/")
            name, dot, ending = parts[-1].rpartition(".json")
            if len(parts) == 3 and dot and f"{dot}{ending}" in ENDINGS and is_valid_name(name):
                stack_names.add((parts[1], name))
        return sorted(stack_names)

    def list_locked(self, project: str | None = None) -> set[tuple[str, str]]:
        """Return project and name of the stacks that have locks."""
        folder = f"{LOCKS}/{project}" if project is not None else LOCKS
        parts = [entry.key.split("/") for entry in self.storage.list_folder(folder)]
        return {(key_parts[2], key_parts[3]) for key_parts in parts if len(key_parts) == 5}

    def record(self, project: str, stack: str, update: bytes) -> None:
        """Add an entry to the history, with the copies of the checkpoint that the CLI keeps."""
        settings = BackendSettings.read_for_write()
        key = _newest(self._entries(_base(project, stack)))
        checkpoint = self.storage.read(key) if key is not None else None
        if key is None or checkpoint is None:
            return
        now = time.time_ns()
        ending = key.removeprefix(_base(project, stack))
        history = f"{_folder('history', project, stack)}/{stack}-{now}"
        with _explain_write_error(f"the history of stack '{stack}'"):
            packed = (".gz", gzip.compress(update)) if settings.compresses else ("", update)
            self.storage.write(f"{history}.history.json{packed[0]}", packed[1])
            self.storage.write(f"{history}.checkpoint{ending}", checkpoint.content)
            if settings.keeps_backups:
                copy = f"{_folder('backups', project, stack)}/{stack}.{now}{ending}"
                self.storage.write(copy, checkpoint.content)

    def history(self, project: str, stack: str) -> Generator[tuple[bytes, str]]:
        """Yield content and place of the entries of the history, newest first."""
        names = re.compile(rf"{re.escape(stack)}-\d+\.history\.json(\.gz|\.zst)?")
        for entry in reversed(self.storage.list_folder(_folder("history", project, stack))):
            if names.fullmatch(entry.key.rpartition("/")[2]) and (stored := self.storage.read(entry.key)):
                yield stored.content, self.storage.describe(entry.key)

    def remove_leftovers(self, project: str, stack: str) -> None:
        """Remove incomplete writes of killed processes."""
        self.storage.remove_leftovers(f"stacks/{project}", rf"{re.escape(stack)}\.json(\.gz)?(\.bak)?")
        for kind in ("backups", "history"):
            self.storage.remove_leftovers(_folder(kind, project, stack), ".*")

    def check_layout(self) -> None:
        """Check, once, that the layout has projects.

        Raises:
            UnsupportedStateError: It is older or newer.
            DamagedStateError: Its description cannot be read.
        """
        if not self._is_checked:
            self._check_meta()
            self._is_checked = True

    def _check_meta(self) -> None:
        location = self.storage.describe(_META)
        stored = self.storage.read(_META)
        if stored is None:
            old = [entry.key for entry in self.storage.list_folder("stacks") if entry.key.count("/") == 1]
            if any(f".json{key.rpartition('.json')[2]}" in ENDINGS for key in old if ".json" in key):
                raise UnsupportedStateError(
                    f"{self.storage.describe()} has an old layout, without projects; run `pulumi state upgrade` first"
                )
            return
        try:
            content: Any = yaml.safe_load(stored.content.decode())
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise DamagedStateError(f"{location} cannot be read: {error}; expected the text `version: 1`") from error
        layout_version = cast("dict[str, Any]", content).get("version") if isinstance(content, dict) else None
        if layout_version == 0:
            raise UnsupportedStateError(f"{location} has version 0, the old layout; run `pulumi state upgrade` first")
        if layout_version != 1:
            raise UnsupportedStateError(
                f"{location} has version {layout_version!r}; this engine supports version 1. Update lakewright, or use "
                "--engine pulumi"
            )

    def _write_meta(self) -> None:
        if self._has_meta:
            return
        self._has_meta = True
        if self.storage.entries([_META]):
            return
        if BackendSettings.from_environment().uses_old_layout:
            raise UnsupportedStateError(
                "PULUMI_DIY_BACKEND_LEGACY_LAYOUT requests the old layout, without projects: unset it, or use "
                "--engine pulumi"
            )
        with suppress(StateConflictError):
            self.storage.write(_META, b"version: 1\n", ABSENT)

    def _list_known_versions(self, base: str) -> Mapping[str, str | None]:
        """Return versions of the checkpoints that this process may replace, by key."""
        known_versions = self._versions.get(base)
        if known_versions and all(version is not None for version in known_versions.values()):
            return known_versions
        return {key: entry.version for key, entry in self._entries(base).items()}

    def _entries(self, base: str) -> Mapping[str, ObjectEntry]:
        return self.storage.entries([f"{base}{ending}" for ending in ENDINGS])


def _base(project: str, stack: str) -> str:
    """Return the key of the stack's checkpoint without ending. Raise StateError if a name is invalid."""
    return _folder("stacks", project, stack)


def _folder(kind: str, project: str, stack: str) -> str:
    check_stack_name(stack)
    return f"{kind}/{project}/{stack}"


def _newest(entries: Mapping[str, ObjectEntry]) -> str | None:
    return max(entries.values(), key=lambda entry: (entry.modified, entry.key)).key if entries else None


@contextmanager
def _explain_write_error(subject: str) -> Generator[None]:
    """Name in errors what could not be saved."""
    try:
        yield
    except StateAccessError as error:
        raise StateAccessError(
            f"{subject} could not be saved: {str(error).removesuffix('.')}. The previous version is unchanged."
        ) from error
