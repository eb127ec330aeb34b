"""A program and its stack, driven by command lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tests.command_server import run_command
from tests.integration.provider.resource import Props

FAILED = range(1, 256)


class ProgramStack:
    """A program and its stack, driven by command lines."""

    def __init__(self, directory: Path, engine: str, program: str, declared: Props) -> None:
        self.directory, self.engine, self.declared = directory, engine, declared
        (directory / "__main__.py").write_text(program)
        runtime = {"name": "python", "options": {"virtualenv": sys.prefix}}
        (directory / "Pulumi.yaml").write_text(json.dumps({"name": "provider", "runtime": runtime}))
        (directory / "state").mkdir()
        self._lakewright("stack", "init", "--stack", "test", "-C", str(directory)).check_returncode()

    def run(self, verb: str, *options: str, exits: Collection[int] = (0,), **changes: Any) -> Props:
        """Return what one verb prints with `--json`."""
        if verb in {"up", "destroy"}:
            options = (*options, "--yes")
        common = ("--stack", "test", "--engine", self.engine, "-C", str(self.directory), "--json")
        done = self._lakewright(verb, *common, *options, **changes)
        assert done.returncode in exits, done.stdout + done.stderr
        return json.loads(done.stdout)

    def output(self, verb: str, **changes: Any) -> str:
        """Return what one verb prints for a person."""
        common = ("--stack", "test", "--engine", self.engine, "-C", str(self.directory))
        done = self._lakewright(verb, *common, **changes)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def state(self) -> str:
        return (self.directory / "state/.pulumi/stacks/provider/test.json").read_text()

    def _lakewright(self, *arguments: str, **changes: Any) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PULUMI_BACKEND_URL": f"file://{self.directory}/state",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_HOME": str(self.directory / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "DECLARED": json.dumps(self.declared | changes),
        }
        return run_command(arguments, self.directory, environment)


def messages_of(result: Props) -> str:
    """Return the messages in the JSON result of a verb."""
    return "\n".join(str(message) for message in result["messages"])
