"""The file backend: stacks with their checkpoints, backups and history in a folder, in the layout of the Pulumi CLI."""

from __future__ import annotations

import gzip
import json
import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import yaml

from lakewright_engine.model.errors import StackNotFoundError, StateError, UnsupportedFeatureError
from lakewright_engine.model.resources import StackSnapshot
from lakewright_engine.state import files
from lakewright_engine.state.checkpoint import Codec, secrets_manager_of
from lakewright_engine.state.integrity import check_integrity, check_magic
from lakewright_engine.state.locks import HeldLock, StackLock, hold, list_locks
from lakewright_engine.state.locks import cancel as cancel_locks
from lakewright_engine.state.names import check_stack_name, is_valid_name
from lakewright_engine.state.secrets import PassphraseManager

ORGANIZATION = "organization"
"""The organization name that the CLI uses for file backends, which have no organizations."""


@dataclass(frozen=True)
class StackSummary:
    """A line of `stack ls`."""

    project: str
    name: str
    updated: str
    """RFC 3339, UTC; empty if the stack was never written."""
    resources: int


class FileBackend:
    """A folder of stacks.

    Every write is atomic and durable: a temporary file is synced and renamed, the folder is synced.
    """

    def __init__(self, url: str) -> None:
        """Open the backend of a URL; relative paths start at the working directory.

        Raises:
            UnsupportedFeatureError: The URL does not name a folder.
        """
        self.url = url
        self.root = _folder(url) / ".pulumi"
        self._codecs: dict[tuple[str, str], Codec] = {}

    def exists(self, project: str, stack: str) -> bool:
        """Return whether the stack exists."""
        return self._file(project, stack).is_file()

    def load(self, project: str, stack: str) -> StackSnapshot | None:
        """Return the stack's last snapshot.

        None if the stack does not exist. The passphrase is needed only for secrets.
        """
        checkpoint = self.checkpoint(project, stack)
        if checkpoint is None:
            return None
        latest = _latest(checkpoint)
        if latest is None:
            return StackSnapshot()
        return self._codec(project, stack).decode(
            latest, checkpoint.get("version", 0), checkpoint.get("features") or []
        )

    def save(self, project: str, stack: str, snapshot: StackSnapshot, secrets: PassphraseManager) -> None:
        """Write the checkpoint. The previous one is kept as `.bak`."""
        deployment, version, features = self._codec(project, stack).encode(snapshot, secrets)
        self._write_checkpoint(project, stack, deployment, version, features)

    def checkpoint(self, project: str, stack: str) -> dict[str, Any] | None:
        """Return the checkpoint on disk, with encrypted secrets; None if there is none."""
        self._check_layout()
        file = self._file(project, stack)
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return None
        if file.suffix == ".gz":
            content = gzip.decompress(content)
        return _json_object(content, f"the state of stack '{stack}' ({file})", f"the previous one is {file}.bak")

    def manager(self, project: str, stack: str) -> PassphraseManager | None:
        """Return the secrets manager that the stack's checkpoint names; None if it names none."""
        checkpoint = self.checkpoint(project, stack) or {}
        return secrets_manager_of(_latest(checkpoint) or {}, stack)

    @contextmanager
    def lock(self, project: str, stack: str) -> Generator[HeldLock]:
        """Lock the stack while it is changed. Raise StackLockedError if another process holds the lock."""
        files.close_to_others(self.root)
        with hold(self._locks(project, stack), stack) as held:
            self._remove_leftovers(project, stack)
            yield held

    def cancel(self, project: str, stack: str) -> list[StackLock]:
        """Remove all locks of the stack. Return them."""
        return cancel_locks(self._locks(project, stack))

    def locks(self, project: str, stack: str) -> list[StackLock]:
        """Return the locks of the stack, including those of dead processes."""
        return list_locks(self._locks(project, stack))

    def names(self, project: str) -> list[str]:
        """Return the names of a project's stacks, sorted. No state is read, so a damaged one does no harm."""
        self._check_layout()
        files_of_states = (self.root / "stacks" / project).glob("*.json*")
        named = (re.fullmatch(r"(.+)\.json(\.gz|\.zst)?", file.name) for file in files_of_states)
        return sorted({found[1] for found in named if found is not None and is_valid_name(found[1])})

    def stacks(self, project: str | None = None) -> list[StackSummary]:
        """Return all stacks, or those of one project, sorted by name."""
        self._check_layout()
        pattern = f"stacks/{project or '*'}/*.json"
        found = sorted([*self.root.glob(pattern), *self.root.glob(f"{pattern}.gz")])
        named = [(file.parent.name, file.name.split(".json")[0]) for file in found]
        return [self._summary(of, name) for of, name in named if is_valid_name(name)]

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
        checkpoint = self.checkpoint(project, stack)
        if checkpoint is None:
            raise stack_not_found(stack)
        with self.lock(project, stack):
            count = _resource_count(checkpoint)
            if count and not force:
                message = (
                    f"stack '{stack}' still has {count} resource(s): destroy them first, or use --force to remove the "
                    "stack and keep their objects"
                )
                raise StateError(message)
            file = self._file(project, stack)
            for path in (file, file.with_name(f"{file.name}.bak")):
                _unlink(path)
            for kind in ("backups", "history"):
                files.remove_tree(self._folder(kind, project, stack))
        self._codecs.pop((project, stack), None)

    def export(self, project: str, stack: str) -> dict[str, Any]:
        """Return the deployment as `pulumi stack export` writes it, with encrypted secrets.

        Raises:
            StackNotFoundError: The stack does not exist.
        """
        checkpoint = self.checkpoint(project, stack)
        if checkpoint is None:
            raise stack_not_found(stack)
        exported: dict[str, Any] = {"version": checkpoint.get("version", 3)}
        if checkpoint.get("features"):
            exported["features"] = checkpoint["features"]
        return exported | {"deployment": _latest(checkpoint) or {}}

    def import_(self, project: str, stack: str, exported: dict[str, Any], *, force: bool = False) -> None:
        """Replace the stack's state by an exported deployment.

        Raises:
            StateError: The deployment is damaged or inconsistent, or belongs to another stack and `force` is not set.
            StackNotFoundError: The stack does not exist.
        """
        if not self.exists(project, stack):
            raise stack_not_found(stack)
        self._check_exported(project, stack, exported, force=force)
        with self.lock(project, stack):
            self._replace(project, stack, exported)

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
            raise stack_not_found(stack)
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
        wanted = f"urn:pulumi:{stack}::{project}::"
        for resource in snapshot.resources:
            if not resource.urn.startswith(wanted) and not force:
                message = (
                    f"'{resource.urn}' does not belong to stack '{stack}' of project '{project}'; use --force to "
                    "import it"
                )
                raise StateError(message)

    def _replace(self, project: str, stack: str, exported: dict[str, Any]) -> None:
        version: int = exported.get("version", 0)
        features: list[str] = exported.get("features") or []
        self._write_checkpoint(project, stack, _compact(exported.get("deployment")), version, features)
        self._codecs.pop((project, stack), None)

    def history(self, project: str, stack: str) -> list[dict[str, Any]]:
        """Return the entries of the stack's history as the CLI writes them, newest first.

        Raises:
            StateError: An entry cannot be read.
            StackNotFoundError: The stack does not exist.
        """
        if not self.exists(project, stack):
            raise stack_not_found(stack)
        found = self._folder("history", project, stack).glob(f"{stack}-*.history.json*")
        ours = (".json", ".json.gz")
        return [_history_entry(file) for file in sorted(found, reverse=True) if file.name.endswith(ours)]

    def record(self, project: str, stack: str, update: dict[str, Any]) -> None:
        """Add an entry to the stack's history, with the copies of the checkpoint that the CLI keeps."""
        checkpoint = self._file(project, stack)
        if not checkpoint.is_file():
            return
        now = time.time_ns()
        history = self._folder("history", project, stack)
        endings = checkpoint.name.removeprefix(stack)
        with _explain_write_error(f"the history of stack '{stack}'"):
            files.write(history / f"{stack}-{now}.history.json", _compact(update).encode())
            files.write(history / f"{stack}-{now}.checkpoint{endings}", checkpoint.read_bytes())
            copy = self._folder("backups", project, stack) / f"{stack}.{now}{endings}"
            files.write(copy, checkpoint.read_bytes())

    def _summary(self, project: str, stack: str) -> StackSummary:
        checkpoint = self.checkpoint(project, stack) or {}
        latest = _latest(checkpoint) or {}
        manifest: dict[str, Any] = latest.get("manifest") or {}
        return StackSummary(project, stack, manifest.get("time") or "", _resource_count(checkpoint))

    def _codec(self, project: str, stack: str) -> Codec:
        return self._codecs.setdefault((project, stack), Codec(stack))

    def _folder(self, kind: str, project: str, stack: str) -> Path:
        """Return a folder of the stack. Raise StateError if its name is invalid."""
        check_stack_name(stack)
        return self.root / kind / project / stack

    def _file(self, project: str, stack: str) -> Path:
        check_stack_name(stack)
        plain = self.root / "stacks" / project / f"{stack}.json"
        packed = plain.with_name(f"{stack}.json.gz")
        if plain.with_name(f"{stack}.json.zst").is_file() and not plain.is_file():
            message = (
                f"the state of stack '{stack}' is compressed with zstd: run `pulumi stack export`, switch compression "
                "off, and run `pulumi stack import`"
            )
            raise UnsupportedFeatureError(message)
        return packed if packed.is_file() and not plain.is_file() else plain

    def _locks(self, project: str, stack: str) -> Path:
        return self._folder(f"locks/{ORGANIZATION}", project, stack)

    def _remove_leftovers(self, project: str, stack: str) -> None:
        files.remove_leftovers(self.root / "stacks" / project, rf"{re.escape(stack)}\.json(\.gz)?(\.bak)?")
        for kind in ("backups", "history"):
            files.remove_leftovers(self._folder(kind, project, stack), ".*")

    def _write_checkpoint(self, project: str, stack: str, deployment: str, version: int, features: list[str]) -> None:
        self._check_layout()
        head = f'"version":{version},' + (f'"features":{_compact(features)},' if features else "")
        name = json.dumps(f"{ORGANIZATION}/{project}/{stack}")
        content = f'{{{head}"checkpoint":{{"stack":{name},"latest":{deployment}}}}}'.encode()
        file = self._file(project, stack)
        meta = self.root / "meta.yaml"
        with _explain_write_error(f"the state of stack '{stack}'"):
            if not meta.is_file():
                files.write(meta, b"version: 1\n")
            if file.is_file():
                files.keep_copy(file, file.with_name(f"{file.name}.bak"))
            files.write(file, gzip.compress(content) if file.suffix == ".gz" else content)
            # The CLI stores an MD5 in a side file. A wrong one is worse than none.
            file.with_name(f"{file.name}.attrs").unlink(missing_ok=True)

    def _check_layout(self) -> None:
        meta = self.root / "meta.yaml"
        try:
            content: Any = yaml.safe_load(meta.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if any((self.root / "stacks").glob("*.json*")):
                message = f"{self.root} has an old layout, without projects; run `pulumi state upgrade` first"
                raise UnsupportedFeatureError(message) from None
            return
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise StateError(f"{meta} cannot be read: {error}") from error
        found = cast("dict[str, Any]", content).get("version") if isinstance(content, dict) else None
        if found != 1:
            raise UnsupportedFeatureError(f"{meta} has version {found!r}; this engine supports version 1")


def _history_entry(file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    if file.suffix == ".gz":
        content = gzip.decompress(content)
    return _json_object(content, f"the history entry {file}", "remove it")


def stack_not_found(stack: str) -> StackNotFoundError:
    """Return the error for a stack that does not exist."""
    message = (
        f"no stack named '{stack}' found; `lakewright stack ls` lists the stacks, "
        f"`lakewright stack init --stack {stack}` creates one"
    )
    return StackNotFoundError(message)


def _folder(url: str) -> Path:
    if not url.startswith("file://"):
        scheme = urlsplit(url).scheme or url
        message = f"the embedded engine reads file:// backends only, not '{scheme}'; use --engine pulumi for that one"
        raise UnsupportedFeatureError(message)
    path = url.removeprefix("file://").split("?")[0]
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100 - Path.resolve follows links


def _json_object(content: bytes, what: str, remedy: str) -> dict[str, Any]:
    try:
        value: Any = json.loads(content)
    except ValueError as error:
        raise StateError(f"{what} is damaged: {error}; {remedy}") from error
    if not isinstance(value, dict):
        raise StateError(f"{what} is damaged: expected a JSON object; {remedy}")
    return cast("dict[str, Any]", value)


def _latest(checkpoint: dict[str, Any]) -> dict[str, Any] | None:
    """Return the deployment in a checkpoint; None for a stack that was created and never written."""
    body: dict[str, Any] = checkpoint.get("checkpoint") or {}
    return body.get("latest")


def _resource_count(checkpoint: dict[str, Any]) -> int:
    return len((_latest(checkpoint) or {}).get("resources") or ())


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@contextmanager
def _explain_write_error(what: str) -> Generator[None]:
    """Turn a failed write into a StateError that names what could not be saved."""
    try:
        yield
    except OSError as error:
        message = f"{what} could not be saved: {error.strerror or error}. The previous version is unchanged."
        raise StateError(message) from error


def _unlink(file: Path) -> None:
    for path in (file, file.with_name(f"{file.name}.attrs")):
        with suppress(FileNotFoundError):
            path.unlink()
