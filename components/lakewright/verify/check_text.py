"""The results of probes as lines of text, for `lakewright verify` and `lakewright fleet verify`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakewright.client_access.check import VerifyCheck
from lakewright.terminal.check_lines import CheckLine
from lakewright.validation.documents import as_list, as_mapping

_FAILED = {"not proven": "not proven"}
"""Status of a check that does not hold, if it is not `failed`."""


def to_check_line(check: VerifyCheck) -> CheckLine:
    """Return a check as a line of text, with its evidence and its remedy."""
    identity = "/".join(part for part in (check.identity, check.warehouse) if part)
    subject = ": ".join(part for part in (check.probe, identity, check.attempt) if part)
    evidence = check.found if check.holds else f"{check.found}, expected {check.expected}"
    status = ("ok", "green") if check.holds else (_FAILED.get(check.found, "failed"), "red")
    return CheckLine(*status, subject, f"{evidence}: {check.evidence}", check.remedy)


def read_failed_checks(document: Mapping[str, Any]) -> Iterator[VerifyCheck]:
    """Yield the checks that do not hold of a document that `lakewright verify --json` printed."""
    for entry in map(as_mapping, as_list(document.get("checks"))):
        check = VerifyCheck(**{name: value for name, value in entry.items() if name != "holds"})
        if not check.holds:
            yield check
