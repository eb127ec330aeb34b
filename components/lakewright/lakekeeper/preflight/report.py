"""Reports of pre-flight checks. A file passes them from the provider's process to the command line."""

import os
import threading
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

FILE = "LAKEWRIGHT_VALIDATE"
"""Environment variable with the path of the report file.

If it is not set, nothing is validated: validation writes probe objects.
"""

_appending = threading.Lock()


class Check(BaseModel):
    """Result of a check. `reason` describes the finding and the remedy."""

    model_config = ConfigDict(frozen=True)

    name: str
    status: Literal["passed", "failed", "skipped"]
    reason: str = ""


class Report(BaseModel):
    """All checks of a declared warehouse. Contains no secrets."""

    model_config = ConfigDict(frozen=True)

    warehouse: str
    project_id: str
    endpoint: str
    checks: list[Check]

    @property
    def failed(self) -> bool:
        """Return whether a check of this warehouse failed."""
        return any(check.status == "failed" for check in self.checks)


def is_wanted() -> bool:
    """Return whether this run validates warehouses."""
    return bool(os.environ.get(FILE))


def write(report: Report) -> None:
    """Append a report to the report file."""
    with _appending, Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
        file.write(report.model_dump_json() + "\n")


def read_reports(file: Path) -> list[Report]:
    """Return one report for each warehouse of a run, sorted by project and name."""
    reports: dict[tuple[str, str, str], Report] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        report = Report.model_validate_json(line)
        key = (report.project_id, report.warehouse, report.endpoint)
        # The warehouse and the proof of its role report separately.
        checks = [*reports[key].checks, *report.checks] if key in reports else report.checks
        reports[key] = report.model_copy(update={"checks": checks})
    return [reports[key] for key in sorted(reports)]
