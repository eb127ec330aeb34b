"""Pre-flight: what `lakewright preview --validate` finds out about each declared warehouse before anything is made."""

from lakewright.lakekeeper.preflight.report import Check, Report, read_reports, wanted

__all__ = ["Check", "Report", "read_reports", "wanted"]
