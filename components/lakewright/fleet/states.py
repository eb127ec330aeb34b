"""Read the states of many stacks. A state that cannot be read is an error of that stack only.

States in folders and S3 buckets are read directly, states of other backends with the Pulumi CLI. Secrets remain
encrypted until their first use, because deriving a stack's key takes 0.4 s.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

from lakewright_engine.model.errors import SecretsError, StateError, UnsupportedFeatureError
from lakewright_engine.model.signatures import SECRET, SIGNATURE
from lakewright_engine.state.checkpoint import find_secrets_manager
from lakewright_engine.state.checkpoint_reader import decode_sealed

from lakewright.validation.documents import as_list, as_mapping

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState
    from lakewright_engine.project.project import PulumiProject
    from lakewright_engine.state.backend import StateBackend


@dataclass(frozen=True)
class StackState:
    """The state of a stack."""

    stack: str
    resources: list[ResourceState] = field(default_factory=list["ResourceState"])
    """Resources in dependency order. Secrets are decrypted at their first use, which may raise SecretsError."""
    locked: tuple[str, ...] = ()
    """Holders of the stack's lock, without dead processes."""
    updated: str = ""
    """Time of the last update, RFC 3339, UTC; empty if the stack was never updated."""
    pending: tuple[str, ...] = ()
    """URNs of resources that an interrupted run was changing."""
    reports_locks: bool = True
    """Whether the backend says who holds the stack's lock. Without it, `locked` is always empty."""


class StateReader(Protocol):
    """Reads the states of a project's stacks. Thread-safe."""

    def names(self) -> list[str]:
        """Return the names of all stacks, sorted. No state is read."""
        ...

    def read(self, stack: str) -> StackState:
        """Return the state of a stack.

        Raises:
            EngineError: The state cannot be read. Usually a StateError.
        """
        ...


def state_reader(project: PulumiProject) -> StateReader:
    """Return the reader of a project's states.

    Raises:
        UnsupportedFeatureError: The backend can be read only by the Pulumi CLI, which is not installed.
    """
    try:
        return BackendReader(project, project.backend())
    except UnsupportedFeatureError:
        if shutil.which("pulumi") is None:
            raise
        return PulumiCliReader(project)


class BackendReader:
    """Reads states from a folder or bucket."""

    def __init__(self, project: PulumiProject, backend: StateBackend) -> None:
        """Read the stacks of a project."""
        self._project = project
        self._backend = backend

    def names(self) -> list[str]:
        """Return the names of all stacks, sorted. No state is read."""
        return self._backend.names(self._project.name)

    def read(self, stack: str) -> StackState:
        """Return the state of a stack. Raise EngineError if it cannot be read."""
        try:
            # An update that ends between the two calls has written the state that is read after it.
            locks = self._backend.locks(self._project.name, stack)
            exported = self._backend.export(self._project.name, stack)
        except (OSError, AttributeError, TypeError) as error:
            raise StateError(f"the state of stack '{stack}' cannot be read: {error}") from error
        return _decode_state(
            self._project, stack, exported, tuple(lock.holder for lock in locks if not lock.is_abandoned)
        )


class PulumiCliReader:
    """Reads states with `pulumi stack ls` and `pulumi stack export`."""

    def __init__(self, project: PulumiProject) -> None:
        """Read the stacks of a project."""
        self._project = project
        self._stacks_read = set[str]()

    def names(self) -> list[str]:
        """Return the names of all stacks, sorted. No state is read."""
        return sorted(self._entries_by_name)

    def read(self, stack: str) -> StackState:
        """Return the state of a stack. Raise EngineError if it cannot be read.

        The CLI prints `updateInProgress` only for backends that report it: Pulumi Cloud, and no store of objects. A
        stack that is read again, as just before a purge, is listed again: an update may have begun.
        """
        if stack in self._stacks_read:
            self.__dict__.pop("_entries_by_name", None)
        self._stacks_read.add(stack)
        entry = self._entries_by_name.get(stack, {})
        exported = _run_pulumi(self._project, "stack", "export", "--stack", stack)
        locked = ("an update in progress",) if entry.get("updateInProgress") else ()
        state = _decode_state(self._project, stack, as_mapping(exported), locked)
        return replace(state, reports_locks="updateInProgress" in entry)

    @cached_property
    def _entries_by_name(self) -> dict[str, Mapping[str, Any]]:
        """The entries of `pulumi stack ls` by the stack's name."""
        entries = as_list(_run_pulumi(self._project, "stack", "ls", "--json"))
        return {str(as_mapping(entry).get("name")): as_mapping(entry) for entry in entries}


def export_state_by_cli(project: PulumiProject, stack: str) -> Mapping[str, Any] | None:
    """Return the exported state of a stack in a backend that only the Pulumi CLI reads; None if there is no stack.

    Raises:
        StateError: The CLI is not installed, or it failed.
    """
    try:
        return as_mapping(_run_pulumi(project, "stack", "export", "--stack", stack))
    except StateError as error:
        if "no stack named" in str(error):
            return None
        raise


class _Decryption:
    """Decrypts the secrets of a stack: with its passphrase, else with the Pulumi CLI."""

    def __init__(self, project: PulumiProject, stack: str, exported: Mapping[str, Any]) -> None:
        self._project, self._stack, self._exported = project, stack, exported

    def decrypt(self, ciphertext: str) -> str:
        deployment = self._exported.get("deployment")
        try:
            manager = find_secrets_manager(deployment, self._stack)
        except UnsupportedFeatureError:
            if shutil.which("pulumi") is None:
                raise
            return self._decrypted_by_cli[ciphertext]
        if manager is None:
            raise SecretsError(f"the state of stack '{self._stack}' holds secrets, but names no secrets provider")
        return manager.decrypt(ciphertext)

    @cached_property
    def _decrypted_by_cli(self) -> dict[str, str]:
        decrypted = _run_pulumi(self._project, "stack", "export", "--stack", self._stack, "--show-secrets")
        plaintexts = dict(_list_secrets(as_mapping(decrypted).get("deployment"), "plaintext"))
        return {
            ciphertext: plaintexts[path]
            for path, ciphertext in _list_secrets(self._exported.get("deployment"), "ciphertext")
            if path in plaintexts
        }


def _decode_state(
    project: PulumiProject, stack: str, exported: Mapping[str, Any], locked: tuple[str, ...]
) -> StackState:
    """Return a state. A stack that was never updated has no resources."""
    if not exported.get("deployment"):
        exported = {**exported, "deployment": {}}
    snapshot = decode_sealed(stack, exported, _Decryption(project, stack, exported).decrypt)
    manifest = as_mapping(as_mapping(exported["deployment"]).get("manifest"))
    pending = tuple(operation.resource.urn for operation in snapshot.pending_operations)
    return StackState(stack, snapshot.resources, locked, str(manifest.get("time") or ""), pending)


def _list_secrets(
    value: object, part: str, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield path and ciphertext or plaintext of each secret in a deployment."""
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        if members.get(SIGNATURE) == SECRET and part in members:
            yield path, members[part]
            return
        for key, item in members.items():
            yield from _list_secrets(item, part, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast(list[Any], value)):
            yield from _list_secrets(item, part, (*path, index))


def _run_pulumi(project: PulumiProject, *arguments: str) -> Any:
    """Return the JSON that a command of the Pulumi CLI prints. Raise StateError if it fails."""
    command = ["pulumi", "--non-interactive", *arguments]
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=project.root,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            start_new_session=True,
        )
        return json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        raise StateError(f"`{' '.join(command)}` failed: {error.stderr.strip()}") from error
    except (OSError, ValueError) as error:
        raise StateError(f"`{' '.join(command)}` failed: {error}") from error
