"""Stacks of a random machine: folders with backends, specs, and the commands on their stacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.runtime.state import Sandbox

from tests.python_server import KILL_AFTER
from tests.tenant_project import ENCRYPTION_SALT, PASSPHRASE, REPOSITORY, create_project

Spec = dict[str, Any]
PROJECT = "lakewright"
"""Name of the Pulumi project in all folders."""
SERVER = f"{__package__}.command_server"


@dataclass
class Slot:
    """A stack that may exist: a folder with its own backend, and a name in it."""

    folder: Path
    name: str
    spec: Spec | None = None
    """The spec in the stack's file."""

    @property
    def file(self) -> Path:
        return self.folder / "tenants" / f"Pulumi.{self.name}.yaml"

    @property
    def adopter(self) -> str:
        """The stack as marks name it."""
        return f"{PROJECT}/{self.name}"

    def project(self) -> PulumiProject:
        return PulumiProject.load(self.folder)

    def write(self, spec: Spec | None) -> None:
        """Write the spec into the stack's file, which keeps its salt."""
        self.spec = spec
        document = yaml.safe_load(self.file.read_text())
        document["config"] = {"lakewright:tenant": spec} if spec else {}
        self.file.write_text(yaml.safe_dump(document, sort_keys=False))

    def export(self) -> dict[str, Any]:
        with use_backend(self):
            project = self.project()
            return project.backend().export(PROJECT, self.name)

    def has_resources(self) -> bool:
        return bool(self.export()["deployment"].get("resources"))

    def copy_state(self, other: Slot) -> None:
        """Replace the stack's state by that of another stack, with this stack's name in it."""
        text = json.dumps(other.export()).replace(f"urn:pulumi:{other.name}::", f"urn:pulumi:{self.name}::")
        with use_backend(self):
            self.project().backend().import_(PROJECT, self.name, json.loads(text), force=True)

    def empty(self) -> None:
        """Remove all resources from the state."""

        def edit(deployment: dict[str, Any]) -> None:
            deployment["resources"] = []
            deployment.pop("pending_operations", None)

        with use_backend(self):
            self.project().backend().edit(PROJECT, self.name, edit)


@dataclass
class StackCommands:
    """Runs commands on stacks, as forks of one process."""

    process: subprocess.Popen[str]
    environment: dict[str, str]
    output: Path
    arguments: list[str] = field(default_factory=list[str])
    """The last command."""

    @classmethod
    def start(cls, sandbox: Sandbox, folder: Path) -> StackCommands:
        process = subprocess.Popen(
            [sys.executable, "-m", SERVER, str(folder)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        keys = {
            "STORE_ID": sandbox.admin.access_key_id,
            "STORE_SECRET": sandbox.admin.secret_access_key.get_secret_value(),
        }
        return cls(process, {**keys, "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}, folder / "output")

    def run(self, slot: Slot, *arguments: str, kill_after: int | None = None) -> int:
        """Run a command on a stack and return its exit code."""
        self.arguments = [*arguments, "--stack", slot.name]
        request = {
            "words": self.arguments,
            "folder": str(slot.folder),
            "environment": {**os.environ, **self.environment}
            | {"PULUMI_BACKEND_URL": (slot.folder / "state").as_uri()}
            | ({KILL_AFTER: str(kill_after)} if kill_after else {}),
            "output": str(self.output),
            "kill_after": kill_after,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        assert "Traceback" not in self.text(), self.text()
        assert "lakewright:tenant: " not in self.text(), f"the machine wrote a wrong spec: {self.text()}"
        return code

    def unlock(self, slot: Slot) -> None:
        """Remove the lock of a killed run of the Pulumi CLI, as its user does."""
        code = self.run(slot, "stack", "cancel", "--yes")
        assert code == 0, self.text()

    def text(self) -> str:
        """Return the output of the last command."""
        return self.output.read_text()

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def use_backend(slot: Slot) -> Generator[None]:
    """Set the backend of a slot's folder for a block."""
    variables = {"PULUMI_BACKEND_URL": (slot.folder / "state").as_uri(), "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}
    with pytest.MonkeyPatch.context() as environment:
        for name, value in variables.items():
            environment.setenv(name, value)
        yield


def make_slots(folder: Path, sandbox: Sandbox) -> list[Slot]:
    """Create three stacks: two in one backend, and one with the first stack's name in another backend.

    Args:
        folder: Folder of the backends.
        sandbox: The sandbox of the stacks' environment.
    """
    slots: list[Slot] = []
    for folder_name, stack_names in (("here", ("one", "two")), ("there", ("one",))):
        create_project(folder / folder_name, {"sandbox": str(sandbox.dir)})
        for name in stack_names:
            slot = Slot(folder / folder_name, name)
            slot.file.write_text(f"encryptionsalt: {ENCRYPTION_SALT}\n")
            with use_backend(slot):
                project = slot.project()
                project.backend().create(PROJECT, name, project.secrets(name))
            slots.append(slot)
    return slots
