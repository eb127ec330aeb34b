"""The fleet's exceptions.

FleetError
  SelectionError   no stack matches, or a filter is malformed; exit code 2
  ResumeError      no run can be resumed; exit code 2
"""

from __future__ import annotations


class FleetError(Exception):
    """An operation on many stacks cannot start."""

    exit_code = 1


class SelectionError(FleetError):
    """The filters select no stack, or a filter is malformed."""

    exit_code = 2


class ResumeError(FleetError):
    """No interrupted or failed run can be resumed."""

    exit_code = 2
