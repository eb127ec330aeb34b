"""`preview --validate`: an engine that also has the provider check each warehouse, and reports the results."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from lakewright_engine import Operation, Result
    from pulumi.automation.events import EngineEvent

    from lakewright.cli.engines.choice import Engine
    from lakewright.lakekeeper.preflight import Report

NOTHING_TO_VALIDATE = "nothing to validate: the program declares no warehouse whose server is known"


@dataclass
class ValidatingEngine:
    """Runs another engine, and reports the checks of each warehouse. A failed check fails the run."""

    engine: Engine
    reports: list[Report] = field(default_factory=list["Report"])

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report its events and the checks."""
        from lakewright_engine.operation import UNEXPECTED_CHANGES  # noqa: PLC0415 - slow to load

        from lakewright.lakekeeper.preflight import report  # noqa: PLC0415

        with tempfile.TemporaryDirectory(prefix="lakewright-") as folder:
            file = Path(folder) / "reports"
            file.touch(mode=0o600)
            os.environ[report.FILE] = str(file)
            try:
                result = self.engine.run(operation, on_event)
            finally:
                del os.environ[report.FILE]
            self.reports = report.read_reports(file)
        for severity, line in _lines(self.reports):
            on_event(_diagnostic(severity, line))
            if severity == "error":
                result.messages.append(f"error: {line}")
        if any(report.failed for report in self.reports) and result.exit in (0, UNEXPECTED_CHANGES):
            result.exit = 1
        return result

    def to_json(self) -> list[dict[str, Any]]:
        """Return the reports for the object that `--json` prints."""
        return [report.model_dump() for report in self.reports]


def _lines(reports: list[Report]) -> list[tuple[str, str]]:
    """Return severity and text of each line."""
    if not reports:
        return [("info", NOTHING_TO_VALIDATE)]
    return [
        (
            "error" if check.status == "failed" else "info",
            f"{report.project_id}/{report.warehouse}: {check.name}: {check.status}"
            + (f": {check.reason}" if check.reason else ""),
        )
        for report in reports
        for check in report.checks
    ]


def _diagnostic(severity: str, line: str) -> EngineEvent:
    from pulumi.automation.events import EngineEvent  # noqa: PLC0415

    prefix = "error: " if severity == "error" else ""
    body = {"message": line + "\n", "color": "never", "severity": severity, "prefix": prefix}
    event: EngineEvent = cast("Any", EngineEvent).from_json(
        {"sequence": 0, "timestamp": int(time.time()), "diagnosticEvent": body}
    )
    return event
