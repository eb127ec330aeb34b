"""Reports of `lakewright-spark` on many tenants. No Spark runs.

One process reads the tables of all tenants with the identity of their jobs: the catalog configuration of each stack
names it. It needs PyIceberg (`lakewright-spark[jobs]`), and the secrets that the configurations refer to.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakewright_spark.catalog import CatalogConfig

from lakewright.fleet.selection import SelectedStack
from lakewright.validation.documents import as_mapping, as_text


@dataclass(frozen=True)
class SparkReport:
    """The report on one tenant."""

    stack: SelectedStack
    report: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The JSON that the command printed for the tenant; empty if nothing could be read."""
    problem: str = ""
    """Parts that could not be read, and the reasons."""
    is_deployed: bool = True
    """Whether the backend has the stack. A missing stack is not a problem."""

    def to_json(self) -> dict[str, Any]:
        """Return the tenant's entry in the JSON document, without the report."""
        return {
            "stack": self.stack.name,
            "tenant": self.stack.tenant,
            "environment": self.stack.environment,
            "labels": self.stack.labels,
            "problem": self.problem,
            "deployed": self.is_deployed,
        }


def read_spark_reports(
    command: Sequence[str],
    stacks: Sequence[SelectedStack],
    read_config: Callable[[str], CatalogConfig],
    expected: tuple[type[Exception], ...],
    absent: Collection[str] = (),
) -> list[SparkReport]:
    """Return the reports on stacks, in their order.

    Args:
        command: Words of the command of `lakewright-spark`, which has the option `--configs`.
        stacks: The stacks.
        read_config: Returns the catalog configuration of a stack.
        expected: Errors of `read_config` that are problems of one stack.
        absent: Names of stacks that the backend does not have.
    """
    reports: dict[str, SparkReport] = {}
    by_bundle: dict[str, dict[str, CatalogConfig]] = {}
    for stack in stacks:
        if stack.name in absent:
            reports[stack.name] = SparkReport(stack, is_deployed=False)
            continue
        try:
            config = read_config(stack.name)
        except expected as error:
            reports[stack.name] = SparkReport(stack, problem=str(error))
        else:
            # A process trusts one bundle of certificate authorities.
            by_bundle.setdefault(str(config.ca_bundle or ""), {})[stack.name] = config
    for configs in by_bundle.values():
        lines = _run_command(command, configs)
        for stack in stacks:
            if stack.name in configs:
                reports[stack.name] = _create_report(stack, lines)
    return [reports[stack.name] for stack in stacks]


def _run_command(command: Sequence[str], configs: Mapping[str, CatalogConfig]) -> dict[str, Mapping[str, Any]]:
    """Return the lines of a command by stack; under an empty name why it failed as a whole."""
    with tempfile.TemporaryDirectory(prefix="lakewright-") as name:
        folder = Path(name)
        for stack, config in configs.items():
            (folder / f"{stack}.json").write_text(config.to_json(), encoding="utf-8")
        arguments = [sys.executable, "-P", "-m", "lakewright_spark.cli", *command, "--configs", name, "--json"]
        done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = [as_mapping(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    reports = {str(line.get("config")): line for line in lines}
    last = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
    text = (
        f"`lakewright-spark {' '.join(command)}` failed: {last}. It needs PyIceberg: install `lakewright-spark[jobs]`"
    )
    return {"": {"error": text}, **reports}


def _create_report(stack: SelectedStack, lines: Mapping[str, Mapping[str, Any]]) -> SparkReport:
    line = lines.get(stack.name, lines[""])
    report = {key: value for key, value in line.items() if key not in ("config", "error")}
    return SparkReport(stack, report, as_text(line.get("error")) or "")


def compute_exit_code(reports: Iterable[SparkReport]) -> int:
    """Return 1 if something could not be read, else 0."""
    return int(any(report.problem for report in reports))
