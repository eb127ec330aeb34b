"""A backend: stacks with their checkpoints, backups, history and locks, in the layout of the Pulumi CLI."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from lakewright_engine.model.errors import (
    DamagedStateError,
    StackNotFoundError,
    StateError,
    UnsupportedStateError,
)
from lakewright_engine.model.resources import StackSnapshot
from lakewright_engine.model.stack_lock import StackLock
from lakewright_engine.model.urns import is_default_provider
from lakewright_engine.state.checkpoint import Codec, find_secrets_manager
from lakewright_engine.state.checkpoint_document import decompress_zstd, get_latest, parse_checkpoint, parse_object
from lakewright_engine.state.integrity import check_integrity, check_magic
from lakewright_engine.state.names import check_stack_name, suggest_name
from lakewright_engine.state.secrets import PassphraseManager
from lakewright_engine.state.settings import BackendSettings
from lakewright_engine.state.stack_files import LOCKS, ORGANIZATION, StackFiles
from lakewright_engine.storage import holding
from lakewright_engine.storage.interface import Storage


@dataclass(frozen=True)
class StackSummary:
    """A line of `stack ls`."""

    project: str
    name: str
    updated: str
    """RFC 3339, UTC; empty if the stack was never written or cannot be read."""
    resources: int
    """All entries of the state, as the Pulumi CLI counts them."""
    without_default_providers: int = 0
    """The resources that operations count."""
    problem: str = ""
    """Reason why the state cannot be read; empty if it can."""
    locks: tuple[StackLock, ...] = ()
    """Locks of processes that are not dead."""


class StateBackend:
    """The stacks in a storage. `lakewright_engine.state.backends.open_backend` makes one from a URL."""

    def __init__(self, url: str, storage: Storage, locks: Callable[[str], holding.StackLocks]) -> None:
        """Use a storage.

        Args:
            url: The URL, as the user gave it.
            storage: Keeps states and history.
            locks: Returns the locks in a folder of the storage.
        """
        self.url = url
        self.storage = storage
        self._files = StackFiles(storage)
        self._locks_in = locks
        self._codecs: dict[tuple[str, str], Codec] = {}

    @property
    def cli_url(self) -> str:
        """The URL for a Pulumi CLI that runs in another folder."""
        return self.storage.url

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever written to the backend."""
        return not self.storage.entries(["meta.yaml"]) and not self._files.names()

    def exists(self, project: str, stack: str) -> bool:
        """Return whether the stack exists."""
        return self._files.exists(project, stack)

    def load(self, project: str, stack: str) -> StackSnapshot | None:
        """Return the stack's last snapshot.

        None if the stack does not exist. The passphrase is needed only for secrets.
        """
        checkpoint = self.checkpoint(project, stack)
        if checkpoint is None:
            return None
        latest = get_latest(checkpoint)
        if latest is None:
            return StackSnapshot()
        try:
            return self._codec(project, stack).decode(
                latest, checkpoint.get("version", 0), checkpoint.get("features") or []
            )
        except DamagedStateError as error:
            raise DamagedStateError(f"{error} ({self._files.location(project, stack)})") from error

    def save(self, project: str, stack: str, snapshot: StackSnapshot, secrets: PassphraseManager) -> None:
        """Write the checkpoint. The previous checkpoint is kept as `.bak`."""
        deployment, version, features = self._codec(project, stack).encode(snapshot, secrets)
        text = _checkpoint_text(project, stack, deployment, version, features)
        self._files.write(project, stack, text.encode())

    def checkpoint(self, project: str, stack: str) -> dict[str, Any] | None:
        """Return the checkpoint of the stack, with encrypted secrets; None if there is none.

        Raises:
            DamagedStateError: The checkpoint is truncated, is not JSON, or has values of wrong types.
            UnsupportedStateError: The checkpoint or the layout has a version or feature that this engine does not know.
        """
        file_content = self._files.read(project, stack)
        return parse_checkpoint(file_content[0], stack, file_content[1]) if file_content is not None else None

    def manager(self, project: str, stack: str) -> PassphraseManager | None:
        """Return the secrets manager that the stack's checkpoint names; None if it names none."""
        checkpoint = self.checkpoint(project, stack) or {}
        return find_secrets_manager(get_latest(checkpoint) or {}, stack)

    @contextmanager
    def lock(self, project: str, stack: str) -> Generator[holding.HeldLock]:
        """Lock the stack while it is changed. Raise StackLockedError if another process holds the lock."""
        self.storage.prepare()
        with holding.hold(self._locks(project, stack), stack) as held_lock:
            self._files.remove_leftovers(project, stack)
            yield held_lock

    def locks(self, project: str, stack: str) -> list[StackLock]:
        """Return the locks of the stack. Locks of dead processes are `is_abandoned`."""
        return self._locks(project, stack).list_all()

    def refuse_locked(self, project: str, stack: str) -> None:
        """Remove locks of dead processes. Raise StackLockedError if another process holds a lock."""
        holding.refuse_other_holders(self._locks(project, stack), stack)

    def cancel(self, project: str, stack: str) -> list[StackLock]:
        """Remove all locks of the stack. Return them."""
        return holding.cancel(self._locks(project, stack))

    def names(self, project: str) -> list[str]:
        """Return the names of a project's stacks, sorted. No state is read."""
        return [name for _, name in self._files.names(project)]

    def find_mentions(self, texts: Sequence[str]) -> list[tuple[str, str]]:
        """Return project and name of the stacks whose state has one of the texts, of all projects.

        States are not parsed, which is fast with thousands of stacks. A state that cannot be searched is included.
        """
        encoded_texts = [text.encode() for text in texts]

        def has_mention(stack: tuple[str, str]) -> bool:
            try:
                content = self._files.read_text(*stack)
            except StateError:
                return True
            return content is None or any(text in content for text in encoded_texts)

        stack_names = self._files.names()
        with ThreadPoolExecutor(BackendSettings.from_environment().parallel) as pool:
            return [
                stack
                for stack, is_wanted in zip(stack_names, pool.map(has_mention, stack_names), strict=True)
                if is_wanted
            ]

    def stacks(self, project: str | None = None) -> list[StackSummary]:
        """Return all stacks, or the stacks of one project, sorted by name.

        A state that cannot be read is a summary with a problem; all other stacks are still listed.
        """
        stack_names = self._files.names(project)
        locked = self._files.list_locked(project)

        def summary(stack: tuple[str, str]) -> StackSummary:
            stack_summary = self._summary(*stack)
            locks = self.locks(*stack) if stack in locked else []
            return replace(stack_summary, locks=tuple(lock for lock in locks if not lock.is_abandoned))

        with ThreadPoolExecutor(BackendSettings.from_environment().parallel) as pool:
            return list(pool.map(summary, stack_names))

    def check_new(self, project: str, stack: str) -> None:
        """Raise StateError if the stack exists or its name is invalid."""
        if self.exists(project, stack):
            raise StateError(f"stack '{stack}' already exists")

    def create(self, project: str, stack: str, secrets: PassphraseManager) -> None:
        """Create a stack without resources. Raise StateError as `check_new` does."""
        self.check_new(project, stack)
        self.save(project, stack, StackSnapshot(), secrets)

    def remove(self, project: str, stack: str, *, force: bool = False) -> None:
        """Remove the stack. Raise StateError if it has resources, unless `force` is set."""
        if not self.exists(project, stack):
            raise stack_not_found(stack, self.names(project))
        with self.lock(project, stack):
            # A damaged state has no count; `force` removes it, too.
            count = 0 if force else _resource_count(self.checkpoint(project, stack) or {})
            if count:
                message = (
                    f"stack '{stack}' still has {count} resource(s): destroy them first, or use --force to remove the "
                    "stack and keep their objects"
                )
                raise StateError(message)
            self._files.remove(project, stack)
        self._codecs.pop((project, stack), None)

    def export(self, project: str, stack: str) -> dict[str, Any]:
        """Return the deployment as `pulumi stack export` writes it, with encrypted secrets.

        Raises:
            StackNotFoundError: The stack does not exist.
        """
        checkpoint = self.checkpoint(project, stack)
        if checkpoint is None:
            raise stack_not_found(stack, self.names(project))
        return _to_export(checkpoint)

    def export_backup(self, project: str, stack: str) -> dict[str, Any]:
        """Return the deployment of the previous checkpoint, which `import_` can restore.

        Raises:
            StateError: There is no previous checkpoint.
        """
        file_content = self._files.read_backup(project, stack)
        if file_content is None:
            raise StateError(f"stack '{stack}' has no previous state in {self.storage.describe()}")
        return _to_export(parse_checkpoint(file_content[0], stack, file_content[1]))

    def import_(self, project: str, stack: str, exported: dict[str, Any], *, force: bool = False) -> None:
        """Replace the stack's state by an exported deployment.

        Raises:
            StateError: The deployment is damaged or inconsistent, or belongs to another stack and `force` is not set.
            StackNotFoundError: The stack does not exist.
        """
        if not self.exists(project, stack):
            raise stack_not_found(stack, self.names(project))
        self._check_exported(project, stack, exported, force=force)
        with self.lock(project, stack):
            try:
                self.checkpoint(project, stack)
                is_readable = True
            except StateError:
                is_readable = False  # keep the backup of the state that it replaces
            self._files.forget_version(project, stack)
            self._replace(project, stack, exported, keeps_previous=is_readable)

    def edit(self, project: str, stack: str, edit: Callable[[dict[str, Any]], None]) -> None:
        """Change the stack's state under its lock.

        Args:
            project: The project's name.
            stack: The stack's name.
            edit: Changes the exported deployment in place.

        Raises:
            StateError: The edited state is inconsistent. The state is unchanged.
            StackNotFoundError: The stack does not exist.
            StackLockedError: Another process holds the lock.
        """
        if not self.exists(project, stack):
            raise stack_not_found(stack, self.names(project))
        with self.lock(project, stack):
            exported = self.export(project, stack)
            edit(exported["deployment"])
            self._check_exported(project, stack, exported, force=True)
            self._replace(project, stack, exported)

    def _check_exported(self, project: str, stack: str, exported: dict[str, Any], *, force: bool) -> None:
        snapshot = Codec(stack).decode(
            exported.get("deployment"), exported.get("version", 0), exported.get("features") or []
        )
        check_magic(stack, exported.get("deployment") or {})
        check_integrity(stack, snapshot)
        urn_prefix = f"urn:pulumi:{stack}::{project}::"
        for resource in snapshot.resources:
            if not resource.urn.startswith(urn_prefix) and not force:
                message = (
                    f"'{resource.urn}' does not belong to stack '{stack}' of project '{project}'; use --force to "
                    "import it"
                )
                raise StateError(message)

    def _replace(self, project: str, stack: str, exported: dict[str, Any], *, keeps_previous: bool = True) -> None:
        content = checkpoint_text(project, stack, exported)
        self._files.write(project, stack, content.encode(), keeps_previous=keeps_previous)
        self._codecs.pop((project, stack), None)

    def history(self, project: str, stack: str, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the entries of the stack's history as the CLI writes them, newest first.

        Args:
            project: The project's name.
            stack: The stack's name.
            limit: Number of the newest entries to read; None reads all.

        Raises:
            StateError: An entry cannot be read.
            StackNotFoundError: The stack does not exist.
        """
        if not self.exists(project, stack):
            raise stack_not_found(stack, self.names(project))
        return [_history_entry(*entry_file) for entry_file in islice(self._files.history(project, stack), limit)]

    def record(self, project: str, stack: str, update: dict[str, Any]) -> None:
        """Add an entry to the stack's history, with the copies of the checkpoint that the CLI keeps."""
        self._files.record(project, stack, _compact(update).encode())

    def _summary(self, project: str, stack: str) -> StackSummary:
        try:
            checkpoint = self.checkpoint(project, stack) or {}
        except StateError as error:
            return StackSummary(project, stack, "", 0, problem=str(error))
        manifest: dict[str, Any] = (get_latest(checkpoint) or {}).get("manifest") or {}
        urns = [str(resource.get("urn")) for resource in (get_latest(checkpoint) or {}).get("resources") or ()]
        counted = sum(not is_default_provider(urn) for urn in urns)
        return StackSummary(project, stack, str(manifest.get("time") or ""), len(urns), counted)

    def _codec(self, project: str, stack: str) -> Codec:
        return self._codecs.setdefault((project, stack), Codec(stack))

    def _locks(self, project: str, stack: str) -> holding.StackLocks:
        check_stack_name(stack)
        return self._locks_in(f"{LOCKS}/{project}/{stack}")


def checkpoint_text(project: str, stack: str, exported: dict[str, Any]) -> str:
    """Return the text of a checkpoint with an exported deployment."""
    version: int = exported.get("version", 0)
    return _checkpoint_text(
        project, stack, _compact(exported.get("deployment")), version, exported.get("features") or []
    )


def _checkpoint_text(project: str, stack: str, deployment: str, version: int, features: list[str]) -> str:
    head = f'"version":{version},' + (f'"features":{_compact(features)},' if features else "")
    name = json.dumps(f"{ORGANIZATION}/{project}/{stack}")
    return f'{{{head}"checkpoint":{{"stack":{name},"latest":{deployment}}}}}'


def _to_export(checkpoint: dict[str, Any]) -> dict[str, Any]:
    exported: dict[str, Any] = {"version": checkpoint.get("version", 3)}
    if checkpoint.get("features"):
        exported["features"] = checkpoint["features"]
    return exported | {"deployment": get_latest(checkpoint) or {}}


def _history_entry(content: bytes, location: str) -> dict[str, Any]:
    """Return an entry. Earlier entries keep their compression when the CLI changes that of the state."""
    try:
        content = decompress_zstd(content)
    except ImportError as error:
        raise UnsupportedStateError(
            f"the history entry {location} is compressed with zstd: install the Python package `zstandard`"
        ) from error
    except ValueError as error:
        raise DamagedStateError(f"the history entry {location} is damaged: {error}; remove it") from error
    try:
        return parse_object(content)
    except ValueError as error:
        raise DamagedStateError(f"the history entry {location} is damaged: {error}; remove it") from error


def stack_not_found(stack: str, names: Iterable[str] = ()) -> StackNotFoundError:
    """Return the error for a stack that does not exist.

    Args:
        stack: Its name.
        names: The stacks that exist, for a suggestion.
    """
    message = (
        f"no stack named '{stack}' found{suggest_name(stack, names)}`lakewright stack ls` lists the stacks, "
        f"`lakewright stack init {stack}` creates one"
    )
    return StackNotFoundError(message)


def _resource_count(checkpoint: dict[str, Any]) -> int:
    return len((get_latest(checkpoint) or {}).get("resources") or ())


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
