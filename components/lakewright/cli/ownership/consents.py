"""Consents of the operator of a run: `--adopt KIND=NAME`, and the environment variable `LAKEWRIGHT_ADOPT`."""

from __future__ import annotations

from collections.abc import Sequence

from lakewright.cli.errors import UsageError
from lakewright.ownership.consent import Consent, parse_consent, read_consents


def read_operator_consents(options: Sequence[str] | None) -> frozenset[Consent]:
    """Return what the operator permits a run to adopt.

    Args:
        options: Values of the option `--adopt`. Values of the environment variable are added.

    Raises:
        UsageError: A value has another form than KIND=NAME, or an unknown kind.
    """
    return parse_options("--adopt", options or ()) | _read_variable()


def parse_options(name: str, values: Sequence[str]) -> frozenset[Consent]:
    """Return the consents in the values of an option or argument. Raise UsageError for other values."""
    try:
        return frozenset(parse_consent(value) for value in values)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def _read_variable() -> frozenset[Consent]:
    try:
        return read_consents()
    except ValueError as error:
        raise UsageError(str(error)) from None
