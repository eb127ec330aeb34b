"""The exceptions of the report. `lakewright.errors` draws the tree."""

from __future__ import annotations

from lakewright.errors import LakewrightError


class ReportError(LakewrightError):
    """The base of the errors of the report."""


class ReportSourceError(ReportError):
    """A file is not the JSON of a command that the report shows. The message names the file and the commands."""

    exit_code = 2


class ReportFileError(ReportError):
    """The report cannot be written. The message names the file."""
