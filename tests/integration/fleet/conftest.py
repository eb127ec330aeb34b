"""A project with a tiny program and some stacks, on which the fleet's commands run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.state.secrets import PassphraseManager

from tests.command_server import LAKEWRIGHT
from tests.tenant_project import PASSPHRASE

PROGRAM = """\
import pathlib
import time

import pulumi
from pulumi.dynamic import CreateResult, Resource, ResourceProvider


class Nothing(ResourceProvider):
    def create(self, props):
        return CreateResult("it", props)


class Thing(Resource):
    def __init__(self, name, props):
        super().__init__(Nothing(), name, props)


config = pulumi.Config()
if config.get_bool("fails"):
    raise ValueError("the program fails")
Thing("thing", {"value": config.get("value")})
waits = pathlib.Path(f"{pulumi.get_stack()}.waits")
while waits.exists():
    pathlib.Path(f"{pulumi.get_stack()}.is-waiting").touch()
    time.sleep(0.02)
"""
"""Declares one object. It fails by its configuration, and continues only after the file STACK.waits is deleted."""


@dataclass
class FleetProject:
    """A project with stacks `a` to `d`."""

    folder: Path
    environ: dict[str, str]

    def write(self, stack: str, *, fails: bool = False, value: str = "1", labels: dict[str, str] | None = None) -> None:
        """Write a stack's file; keep its salt."""
        file = self.folder / f"Pulumi.{stack}.yaml"
        document = yaml.safe_load(file.read_text()) if file.exists() else {}
        spec = {"name": f"tenant-{stack}", "environment": "sandbox", "labels": labels or {}}
        document["config"] = {"lakewright:tenant": spec, "fleet:fails": str(fails).lower(), "fleet:value": value}
        file.write_text(yaml.safe_dump(document))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command of the fleet."""
        return subprocess.Popen(
            [LAKEWRIGHT, "fleet", *arguments],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the fleet."""
        process = self.start(*arguments)
        stdout, stderr = process.communicate()
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def report(self, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
        """Return the JSON of an operation on the embedded engine."""
        completed = self.run(*arguments, "--engine", "embedded", "--json")
        assert completed.returncode == exit_code, completed.stdout + completed.stderr
        return json.loads(completed.stdout)

    def state_file(self, stack: str) -> Path:
        return self.folder / "state" / ".pulumi" / "stacks" / "fleet" / f"{stack}.json"

    @property
    def project(self) -> PulumiProject:
        return PulumiProject.load(self.folder)


def statuses(report: dict[str, Any]) -> dict[str, str]:
    """Return the status of each stack in a report."""
    return {entry["stack"]: entry["status"] for entry in report["stacks"]}


@pytest.fixture(scope="module")
def fleet_project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetProject]:
    """A project with a warm process that all commands of the module share."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "Pulumi.yaml").write_text(
        yaml.safe_dump({"name": "fleet", "runtime": {"name": "python", "options": {"virtualenv": ".venv"}}})
    )
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / "state").mkdir()
    with tempfile.TemporaryDirectory() as sockets:
        environ = {
            **os.environ,
            "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "LAKEWRIGHT_WARM": "1",
            "LAKEWRIGHT_WARM_FOLDER": sockets,
        }
        yield FleetProject(folder, environ)


@pytest.fixture
def fleet(fleet_project: FleetProject, monkeypatch: pytest.MonkeyPatch) -> FleetProject:
    """The project with the new stacks `a` to `d`."""
    shutil.rmtree(fleet_project.folder / "state")
    shutil.rmtree(fleet_project.folder / ".lakewright", ignore_errors=True)
    for file in (*fleet_project.folder.glob("*.waits"), *fleet_project.folder.glob("*.is-waiting")):
        file.unlink()
    for name in ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE"):
        monkeypatch.setenv(name, fleet_project.environ[name])
    (fleet_project.folder / "state").mkdir()
    backend = fleet_project.project.backend()
    manager = PassphraseManager.create("a")
    for stack in "abcd":
        (fleet_project.folder / f"Pulumi.{stack}.yaml").write_text(f"encryptionsalt: {manager.salt}\n")
        fleet_project.write(stack, labels={"tier": "gold" if stack in "ab" else "silver"})
        backend.create("fleet", stack, manager)
    return fleet_project
