"""The file of a page."""

from __future__ import annotations

import os
from pathlib import Path

from lakewright.report.errors import ReportFileError


def write_page(file: Path, text: str) -> Path:
    """Write a page, which replaces an earlier page at once, and return the file.

    Raises:
        ReportFileError: The file cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unready = file.with_name(f".{file.name}.{os.getpid()}")
        unready.write_text(text, encoding="utf-8")
        return unready.replace(file)
    except OSError as error:
        raise ReportFileError(f"{file}: expected a file that can be written ({error.strerror})") from error
