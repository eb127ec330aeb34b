"""What a pre-flight reports, and the way of a report from a provider's process to the command line: a file."""

import os
import threading
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

FILE = "LAKEWRIGHT_VALIDATE"
"""Names the file to append reports to. Where it is not set, nothing is validated: validating writes probe objects."""

_appending = threading.Lock()


class Check(BaseModel):
    """One thing that was looked at. `reason` says what was found, and what to do about it."""

    model_config = ConfigDict(frozen=True)

    name: str
    status: Literal["passed", "failed", "skipped"]
    reason: str = ""


class Report(BaseModel):
    """All checks of one declared warehouse. Holds no secret."""

    model_config = ConfigDict(frozen=True)

    warehouse: str
    project_id: str
    endpoint: str
    checks: list[Check]

    @property
    def failed(self) -> bool:
        """Whether something is in the way of this warehouse."""
        return any(check.status == "failed" for check in self.checks)


def wanted() -> bool:
    """Whether this run is to validate."""
    return bool(os.environ.get(FILE))


def write(report: Report) -> None:
    """Hand a report to whoever asked for it."""
    with _appending, Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
        file.write(report.model_dump_json() + "\n")


def read_reports(file: Path) -> list[Report]:
    """The reports of a run, by project and name."""
    found = [Report.model_validate_json(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return sorted(found, key=lambda report: (report.project_id, report.warehouse))
