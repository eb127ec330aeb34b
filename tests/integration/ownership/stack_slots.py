"""Stacks of a random machine: folders with backends, specs, and the commands on their stacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.runtime.state import Sandbox

from ...tenant_project import PASSPHRASE, create_project

Spec = dict[str, Any]
PROJECT = "lakewright"
"""Name of the Pulumi project in all folders."""
SERVER = Path(__file__).with_name("command_server.py")


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
        with _backend_of(self):
            project = self.project()
            return project.backend().export(PROJECT, self.name)

    def has_resources(self) -> bool:
        return bool(self.export()["deployment"].get("resources"))

    def import_from(self, other: Slot) -> None:
        """Replace the stack's state by that of another stack, with this stack's name in it."""
        text = json.dumps(other.export()).replace(f"urn:pulumi:{other.name}::", f"urn:pulumi:{self.name}::")
        with _backend_of(self):
            self.project().backend().import_(PROJECT, self.name, json.loads(text), force=True)

    def empty(self) -> None:
        """Remove all resources from the state."""

        def edit(deployment: dict[str, Any]) -> None:
            deployment["resources"] = []
            deployment.pop("pending_operations", None)

        with _backend_of(self):
            self.project().backend().edit(PROJECT, self.name, edit)


@dataclass
class CommandServer:
    """Runs commands on stacks, as forks of one process."""

    process: subprocess.Popen[str]
    environment: dict[str, str]
    output: Path
    words: list[str] = field(default_factory=list[str])
    """The last command."""

    @classmethod
    def start(cls, sandbox: Sandbox, folder: Path) -> CommandServer:
        process = subprocess.Popen([sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        keys = {
            "STORE_ID": sandbox.admin.access_key_id,
            "STORE_SECRET": sandbox.admin.secret_access_key.get_secret_value(),
        }
        environment = {**os.environ, **keys, "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}
        return cls(process, environment, folder / "output")

    def run(self, slot: Slot, *words: str, kill_after: int | None = None) -> int:
        """Run a command on a stack and return its exit code."""
        self.words = [*words, "--stack", slot.name]
        request = {
            "words": self.words,
            "folder": str(slot.folder),
            "environment": self.environment | {"PULUMI_BACKEND_URL": (slot.folder / "state").as_uri()},
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

    def text(self) -> str:
        """Return the output of the last command."""
        return self.output.read_text()

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class _backend_of:  # noqa: N801 - a context manager
    """Set the backend of a slot's folder for a block."""

    def __init__(self, slot: Slot) -> None:
        self._url = (slot.folder / "state").as_uri()
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> None:
        for name, value in (("PULUMI_BACKEND_URL", self._url), ("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)):
            self._before[name] = os.environ.get(name)
            os.environ[name] = value

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def make_slots(folder: Path, sandbox: Sandbox) -> list[Slot]:
    """Make three stacks: two in one backend, and one of the first one's name in another backend."""
    slots: list[Slot] = []
    for place, names in (("here", ("one", "two")), ("there", ("one",))):
        create_project(folder / place, {"sandbox": str(sandbox.dir)})
        (folder / place / "state").mkdir(exist_ok=True)
        for name in names:
            slot = Slot(folder / place, name)
            with _backend_of(slot):
                project = slot.project()
                secrets = project.secrets(name) if not slots else slots[0].project().secrets("one")
                project.backend().create(PROJECT, name, secrets)
            if slots:
                slot.file.write_text(slots[0].file.read_text())
            slots.append(slot)
    return slots
