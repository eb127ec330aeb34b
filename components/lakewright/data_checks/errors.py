"""Exceptions of checks. `lakewright.errors` draws the tree."""

from __future__ import annotations

from lakewright.errors import LakewrightError


class DataCheckError(LakewrightError):
    """Base of this package's errors."""


class NotEvaluatedError(DataCheckError):
    """A check could not be evaluated. The message says why, and what to do."""
