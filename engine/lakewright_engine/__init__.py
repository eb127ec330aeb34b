"""An embedded engine for Pulumi Python programs: `run` an Operation on a stack, get events on the way and a Result."""

from lakewright_engine.engine import Operation, Result, run

__all__ = ["Operation", "Result", "run"]
