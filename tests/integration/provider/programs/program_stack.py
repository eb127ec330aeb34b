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

    def __init__(self, directory: Path, engine: str, program: str, declaration: Props) -> None:
        self.directory, self.engine, self.declaration = directory, engine, declaration
        (directory / "__main__.py").write_text(program)
        runtime = {"name": "python", "options": {"virtualenv": sys.prefix}}
        (directory / "Pulumi.yaml").write_text(json.dumps({"name": "provider", "runtime": runtime}))
        (directory / "state").mkdir()
        self._lakewright("stack", "init", "--stack", "test", "-C", str(directory)).check_returncode()

    def run(self, verb: str, *options: str, exits: Collection[int] = (0,), **changes: Any) -> Props:
        """Return the JSON result of one verb."""
        if verb in {"up", "destroy"}:
            options = (*options, "--yes")
        common = ("--stack", "test", "--engine", self.engine, "-C", str(self.directory), "--json")
        completed = self._lakewright(verb, *common, *options, **changes)
        assert completed.returncode in exits, completed.stdout + completed.stderr
        return json.loads(completed.stdout)

    def output(self, verb: str, **changes: Any) -> str:
        """Return the text output of one verb."""
        common = ("--stack", "test", "--engine", self.engine, "-C", str(self.directory))
        completed = self._lakewright(verb, *common, **changes)
        assert completed.returncode == 0, completed.stdout + completed.stderr
        return completed.stdout + completed.stderr

    def state(self) -> str:
        return (self.directory / "state/.pulumi/stacks/provider/test.json").read_text()

    def _lakewright(self, *arguments: str, **changes: Any) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PULUMI_BACKEND_URL": f"file://{self.directory}/state",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_HOME": str(self.directory / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "DECLARED": json.dumps(self.declaration | changes),
        }
        return run_command(arguments, self.directory, environment)


def format_messages(result: Props) -> str:
    """Return the messages in the JSON result of a verb."""
    return "\n".join(str(message) for message in result["messages"])
