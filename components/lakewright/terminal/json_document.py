"""The head of the documents that `--json` prints for a fleet: version, command and time.

Readers recognize a document by its command, and show its age. One shape for all commands keeps both possible.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from lakewright_spark.times import format_json_time

VERSION = 1
"""Version of the documents."""


def make_head(command: str) -> dict[str, Any]:
    """Return the first keys of a document: its version, the command that prints it, and the time (RFC 3339, UTC)."""
    return {"version": VERSION, "command": command, "at": format_json_time(datetime.now(UTC).replace(microsecond=0))}
