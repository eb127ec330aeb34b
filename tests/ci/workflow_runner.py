"""A runner of workflows for tests: it runs the scripts of a job's steps as GitHub's runner does, with bash.

Actions (`uses`) and the set-up of the checkout are left out. An expression without a value here fails the test.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")
_LEFT_OUT = ("Set up Lakewright",)


@dataclass
class JobRun:
    """Results of the steps of a job."""

    failed: str = ""
    """Name of the first step that failed; empty if none did."""
    log: str = ""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Outputs by the step's id."""


@dataclass
class WorkflowRunner:
    """Runs jobs in a folder."""

    folder: Path
    environ: Mapping[str, str]
    expressions: Mapping[str, str]
    """Values of expressions, such as `github.event_name`."""

    def run(self, workflow: Path, job: str, **expressions: str) -> JobRun:
        """Run the scripts of a job. After a failure, those steps run whose `if` says so."""
        settings = yaml.safe_load(workflow.read_text())["jobs"][job]
        done = JobRun()
        for step in settings["steps"]:
            if "run" in step and step["name"] not in _LEFT_OUT and self._is_due(step, done):
                expression_values = {**self.expressions, **expressions}
                expression_values |= {
                    f"steps.{id_}.outputs.{name}": value
                    for id_, outputs in done.outputs.items()
                    for name, value in outputs.items()
                }
                self._run_step({**settings.get("env", {}), **step.get("env", {})}, step, expression_values, done)
        return done

    def _is_due(self, step: dict[str, Any], done: JobRun) -> bool:
        condition = str(step.get("if", "success()"))
        if condition == "failure()":
            return bool(done.failed)
        return not done.failed or "!cancelled()" in condition

    def _run_step(
        self, variables: dict[str, Any], step: dict[str, Any], expression_values: dict[str, str], done: JobRun
    ) -> None:
        values = {
            name: _EXPRESSION.sub(lambda match: expression_values[match[1]], str(text))
            for name, text in variables.items()
        }
        output = self.folder / ".output"
        output.write_text("")
        script = self.folder / ".script.sh"
        script.write_text(step["run"])
        ended = subprocess.run(
            # As the runner without `shell:`.
            ["bash", "-e", str(script)],
            cwd=self.folder,
            env={**os.environ, **self.environ, **values, "GITHUB_OUTPUT": str(output)},
            capture_output=True,
            text=True,
            check=False,
        )
        done.log += f"## {step['name']}\n{ended.stdout}{ended.stderr}"
        if "id" in step:
            done.outputs[step["id"]] = dict(line.split("=", 1) for line in output.read_text().splitlines())
        if ended.returncode and not done.failed:
            done.failed = step["name"]
