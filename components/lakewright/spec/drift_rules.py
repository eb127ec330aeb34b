"""Rules about drift, in specs and environments: differences that are expected for a time."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from lakewright.validation.strict_model import StrictModel


def _date(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise ValueError("expected a date such as `2027-01-31`") from None
    return value


Pattern = Annotated[str, Field(min_length=1)]
Day = Annotated[date, BeforeValidator(_date), WithJsonSchema({"type": "string", "format": "date"})]


class IgnoreRule(StrictModel):
    """Differences that are expected until a day. They are shown as ignored and do not change the exit code."""

    resource: Pattern
    """Pattern of the resource's name, its type, or its URN, with `*` and `?`."""
    property: Pattern = "*"
    """Pattern of the property's path, such as `delete_profile` or `tags.*`. Default: every property."""
    until: Day
    """Last day of the rule, in UTC. An expired rule is reported and ignores nothing."""
    reason: Annotated[str, Field(min_length=1, max_length=500)]
    """Why the difference is expected, for the reader of the report."""


class DriftRules(StrictModel):
    """Rules about drift."""

    ignore: list[IgnoreRule] = []
    """Differences that are expected for a time."""
