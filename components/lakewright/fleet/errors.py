"""The fleet's exceptions. `lakewright.errors` draws the tree."""

from __future__ import annotations

from lakewright.errors import LakewrightError


class FleetError(LakewrightError):
    """An operation on many stacks cannot start."""


class SelectionError(FleetError):
    """The filters select no stack, or a filter is malformed."""

    exit_code = 2


class ResumeError(FleetError):
    """No interrupted or failed run can be resumed."""

    exit_code = 2
