"""The sources of a report: documents that commands print with `--json`, recognized by their `command`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakewright.report.errors import ReportSourceError
from lakewright.terminal.json_document import VERSION
from lakewright.validation.documents import as_list, as_mapping, as_text


class SourceKind(StrEnum):
    """Commands whose documents a report shows, by the `command` of the document."""

    LIST = "list"
    DRIFT = "drift"
    CHECK = "check"
    STATUS = "status"
    VERIFY = "verify"
    USAGE = "usage"
    RUNS = "runs"

    @property
    def command(self) -> tuple[str, ...]:
        """The words after `lakewright` of the command for many stacks."""
        return (self.value,) if self in (SourceKind.DRIFT, SourceKind.CHECK) else ("fleet", self.value)


@dataclass(frozen=True)
class ReportSource:
    """One document, or why it does not exist."""

    kind: SourceKind
    origin: str
    """The file, or the command that was run."""
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: str = ""
    """Why there is no document, or what the document itself reports for the whole fleet."""
    is_collected: bool = False
    """Whether the report ran the command, with its selection of stacks. A file does not say its selection."""

    @property
    def at(self) -> str:
        """The time of the document (RFC 3339, UTC); empty if it has none."""
        return as_text(self.document.get("at")) or ""

    @property
    def stacks(self) -> dict[str, Mapping[str, Any]]:
        """The entries of the stacks by name."""
        entries = (as_mapping(entry) for entry in as_list(self.document.get("stacks")))
        return {str(entry["stack"]): entry for entry in entries if as_text(entry.get("stack"))}


def read_source(text: str | bytes, origin: str) -> ReportSource:
    """Return the source of a document.

    Args:
        text: The JSON.
        origin: Name of the file or command, for the report and for messages.

    Raises:
        ReportSourceError: The text is not the document of a command that the report shows.
    """
    commands = ", ".join(f"`lakewright {' '.join(kind.command)} --json`" for kind in SourceKind)
    try:
        document: object = json.loads(text)
    except ValueError as error:
        description = "nothing" if not text.strip() else f"something else ({error})"
        raise ReportSourceError(f"{origin}: expected the JSON of one of {commands}, found {description}") from None
    mapping = as_mapping(document)
    command = as_text(mapping.get("command")) or ""
    if command not in {kind.value for kind in SourceKind}:
        description = f"that of `{command}`" if command else "a document without `command`"
        raise ReportSourceError(f"{origin}: expected the JSON of one of {commands}, found {description}")
    if mapping.get("version") != VERSION:
        raise ReportSourceError(
            f"{origin}: `version`: expected {VERSION}, found {mapping.get('version')!r}."
            " Use the `lakewright` that wrote the file"
        )
    return ReportSource(SourceKind(command), origin, mapping, as_text(mapping.get("error")) or "")
