"""`preview --validate`: an engine that also has the provider check each warehouse, and tells what it found."""

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

NOTHING = "nothing to validate: the program declares no warehouse whose server is known"


@dataclass
class Validating:
    """Runs another engine. What a report says is told like everything else of a run; a failed check fails the run."""

    engine: Engine
    reports: list[Report] = field(default_factory=list["Report"])

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        from lakewright_engine.operation import UNEXPECTED_CHANGES  # noqa: PLC0415 - `--help` needs none of it

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
            on_event(_said(severity, line))
            if severity == "error":
                result.messages.append(f"error: {line}")
        if any(one.failed for one in self.reports) and result.exit in (0, UNEXPECTED_CHANGES):
            result.exit = 1
        return result

    def as_json(self) -> list[dict[str, Any]]:
        """The reports, for the object that `--json` prints."""
        return [report.model_dump() for report in self.reports]


def _lines(reports: list[Report]) -> list[tuple[str, str]]:
    """Severity and text of what is told."""
    if not reports:
        return [("info", NOTHING)]
    return [
        (
            "error" if check.status == "failed" else "info",
            f"{report.project_id}/{report.warehouse}: {check.name}: {check.status}"
            + (f": {check.reason}" if check.reason else ""),
        )
        for report in reports
        for check in report.checks
    ]


def _said(severity: str, line: str) -> EngineEvent:
    from pulumi.automation.events import EngineEvent  # noqa: PLC0415

    prefix = "error: " if severity == "error" else ""
    body = {"message": line + "\n", "color": "never", "severity": severity, "prefix": prefix}
    event: EngineEvent = cast("Any", EngineEvent).from_json(
        {"sequence": 0, "timestamp": int(time.time()), "diagnosticEvent": body}
    )
    return event
