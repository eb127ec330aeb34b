"""Consent of an operator to adopt objects in one run: `up --adopt KIND=NAME`.

The command line passes it to program and providers in the environment variable `LAKEWRIGHT_ADOPT`. Users of plain
`pulumi up` set the variable themselves: `LAKEWRIGHT_ADOPT=bucket=acme-lake,project=acme`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

ADOPT = "LAKEWRIGHT_ADOPT"
"""Environment variable: objects to adopt, as `KIND=NAME`, separated by commas."""


class ConsentKind(StrEnum):
    """Kinds of objects that need consent to be adopted."""

    BUCKET = "bucket"
    """A bucket by its name. The consent covers its key."""
    PROJECT = "project"
    """A Lakekeeper project by its id. The consent covers everything in it."""
    WAREHOUSE = "warehouse"
    """A Lakekeeper warehouse, as `PROJECT/NAME` or `NAME`."""
    ROLE = "role"
    """An IAM role by its name, or a role of a shared Lakekeeper project as `PROJECT/NAME`."""
    KEY = "key"
    """A KMS key by its alias or id."""


@dataclass(frozen=True, order=True)
class Consent:
    """Consent to adopt one object."""

    kind: ConsentKind
    name: str

    def __str__(self) -> str:
        """Return `KIND=NAME`."""
        return f"{self.kind}={self.name}"


def parse_consent(text: str) -> Consent:
    """Return the consent that `KIND=NAME` gives.

    Raises:
        ValueError: The text has another form, or an unknown kind.
    """
    kind, _, name = text.strip().partition("=")
    expected = f"expected KIND=NAME with one of the kinds {', '.join(ConsentKind)}; found `{text}`"
    if kind not in list(ConsentKind) or not name.strip():
        raise ValueError(expected)
    if "," in name:
        raise ValueError(f"expected a name without a comma; found `{text}`")
    return Consent(ConsentKind(kind), name.strip())


def parse_consents(text: str) -> frozenset[Consent]:
    """Return the consents in a value of `LAKEWRIGHT_ADOPT`.

    Raises:
        ValueError: A part has another form than `KIND=NAME`, or an unknown kind.
    """
    return frozenset(parse_consent(part) for part in text.split(",") if part.strip())


def format_consents(consents: Iterable[Consent]) -> str:
    """Return the value of `LAKEWRIGHT_ADOPT` for consents."""
    return ",".join(str(consent) for consent in sorted(consents))


def read_consents() -> frozenset[Consent]:
    """Return the operator's consents for this run.

    Raises:
        ValueError: The environment variable has another form.
    """
    try:
        return parse_consents(os.environ.get(ADOPT, ""))
    except ValueError as error:
        raise ValueError(f"{ADOPT}: {error}") from None


def is_permitted(kind: ConsentKind, *names: str) -> bool:
    """Return whether the operator permits this run to adopt an object.

    Args:
        kind: Kind of the object.
        names: Names of the object, each of which a consent may use.

    Raises:
        ValueError: The environment variable has another form.
    """
    return any(consent.kind is kind and consent.name in names for consent in read_consents())
