"""Pre-flight checks of `lakewright preview --validate` for each declared warehouse, before changes are made."""

from lakewright.lakekeeper.preflight.report import Check, Report, read_reports, wanted

__all__ = ["Check", "Report", "read_reports", "wanted"]
