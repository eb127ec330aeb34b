"""Platform stacks for tests: each has its own project folder and state."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.command_server import run_command

REPOSITORY = Path(__file__).parents[1]
PASSPHRASE = "correct horse battery staple"


@dataclass
class PlatformStack:
    """One platform stack: its spec, and the commands on it."""

    folder: Path
    spec: dict[str, Any]
    state: Path
    name: str = "test"
    render: bool = True
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def rendered(self) -> Path:
        return self.folder / "rendered"

    def write(self) -> None:
        """Write the spec as the stack's file; keep its encryption salt."""
        file = self.folder / "stacks" / f"Pulumi.{self.name}.yaml"
        document = yaml.safe_load(file.read_text()) if file.exists() else {}
        config = document.setdefault("config", {})
        cluster = {"kubernetes": {"render_to": "rendered"}} if self.render else {}
        config["lakewright-platform:spec"] = {**self.spec, **cluster}
        file.write_text(yaml.safe_dump(document, sort_keys=False))

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PULUMI_BACKEND_URL": self.state.as_uri(), "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}
        return run_command([*arguments, "--stack", self.name], self.folder, {**env, **self.environ, **environ})

    def output(self, *arguments: str, **environ: str) -> str:
        """Return the output of a command that must succeed."""
        done = self.run(*arguments, **environ)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def error(self, *arguments: str) -> str:
        """Return the output of a command that must fail without a traceback."""
        done = self.run(*arguments)
        assert done.returncode != 0, done.stdout
        assert "Traceback" not in done.stdout + done.stderr
        return done.stdout + done.stderr

    def up(self, *arguments: str, **environ: str) -> dict[str, Any]:
        return json.loads(self.output("up", "--yes", "--engine", "embedded", "--json", *arguments, **environ))

    def manifests(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the rendered manifests by kind and name."""
        documents = [yaml.safe_load(file.read_text()) for file in self.rendered.rglob("*.yaml")]
        return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def create_platform(tmp_path: Path, spec: dict[str, Any], *, render: bool = True, **environ: str) -> PlatformStack:
    """Make the project folder and the state of a stack that is not deployed yet."""
    folder = tmp_path / "platform"
    state = tmp_path / "state"
    state.mkdir()
    (folder / "stacks").mkdir(parents=True)
    source = REPOSITORY / "infra" / "platform"
    shutil.copy(source / "__main__.py", folder)
    project = yaml.safe_load((source / "Pulumi.yaml").read_text())
    project["runtime"]["options"]["virtualenv"] = sys.prefix
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    stack = PlatformStack(folder, spec, state, render=render, environ=environ)
    stack.write()
    stack.output("stack", "init")
    return stack
