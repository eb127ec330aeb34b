"""The permission to adopt existing objects, for good or until a day."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Discriminator, Tag

from lakewright.validation.moment import EndText, has_ended
from lakewright.validation.strict_model import StrictModel


class AdoptionPeriod(StrictModel):
    """A permission to adopt for a time."""

    until: EndText
    """Last day of the permission, in UTC, or a time with its zone."""


def _form(value: object) -> str:
    return "tag:period" if isinstance(value, dict | AdoptionPeriod) else "tag:flag"


Adoption = Annotated[
    Annotated[bool, Tag("tag:flag")] | Annotated[AdoptionPeriod, Tag("tag:period")], Discriminator(_form)
]
"""`true`, `false`, or a permission for a time."""


def is_adopting(adoption: Adoption, now: datetime) -> bool:
    """Return whether a permission to adopt is in force."""
    return not has_ended(adoption.until, now) if isinstance(adoption, AdoptionPeriod) else adoption
