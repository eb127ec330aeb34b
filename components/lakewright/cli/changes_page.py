"""The page of `preview --html`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from lakewright_engine import Operation
    from lakewright_engine.display.report import OperationReport


def write_changes(file: Path | None, operation: Operation, report: OperationReport) -> None:
    """Write the page of an operation's changes, if a file is named.

    Raises:
        ReportFileError: The file cannot be written.
    """
    if file is None:
        return
    from lakewright.report.changes import build_changes  # noqa: PLC0415 - other operations need none of it
    from lakewright.report.page import render_changes  # noqa: PLC0415
    from lakewright.report.page_file import write_page  # noqa: PLC0415

    changes = build_changes(report, stack=operation.stack, verb=operation.verb, now=datetime.now(UTC))
    print(f"page of the changes: {write_page(file, render_changes(changes))}", file=sys.stderr)
