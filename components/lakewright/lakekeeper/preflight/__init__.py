"""Pre-flight checks of `lakewright preview --validate` for each declared warehouse, before changes are made."""

from lakewright.lakekeeper.preflight.report import Check, Report, is_wanted, read_reports

__all__ = ["Check", "Report", "is_wanted", "read_reports"]
