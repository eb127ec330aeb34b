"""Exceptions of checks.

DataCheckError
+-- NotEvaluatedError   a check could not be evaluated, so it neither passed nor failed
"""

from __future__ import annotations


class DataCheckError(Exception):
    """Base of this package's errors."""


class NotEvaluatedError(DataCheckError):
    """A check could not be evaluated. The message says why, and what to do."""
