"""The mark of a standby table or view: a property of the copy with its source and the source's metadata file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lakewright_spark.errors import StandbyError
from lakewright_spark.migration.fence import HELD, hold, read_held
from lakewright_spark.times import format_json_time

MARK = "lakewright.standby"
"""Property with the mark, as JSON."""
OWN_PROPERTIES = (MARK, *HELD)
"""Properties that a standby table has with other values than its source."""


@dataclass(frozen=True)
class StandbyMark:
    """The mark of a table or view that is or was a standby."""

    source: str
    """Catalog and warehouse of the source."""
    metadata: str
    """Metadata file of the source that the table or view is a copy of."""
    copied_at: datetime
    previous: Mapping[str, str | None]
    """The source's values of the properties that keep the table's files; None for a property that is not set."""
    promoted_at: datetime | None = None
    """None: the table is a standby."""
    content: str = ""
    """Checksum of the parts of a view that a copy has; empty for a table."""
    view_uuid: str = ""
    """UUID of the source's view; empty for a table."""
    changed_ms: int = 0
    """Time of the newest version of the source's view (ms since 1970)."""

    def to_property(self) -> dict[str, str]:
        """Return the mark as a property."""
        document = {
            "source": self.source,
            "metadata": self.metadata,
            "copied_at": format_json_time(self.copied_at),
            "previous": dict(self.previous),
            "promoted_at": format_json_time(self.promoted_at) if self.promoted_at else None,
            **({"content": self.content} if self.content else {}),
            **({"view_uuid": self.view_uuid, "changed_ms": self.changed_ms} if self.view_uuid else {}),
        }
        return {MARK: json.dumps(document)}


def build_mark(source: str, metadata: str, properties: Mapping[str, str], now: datetime) -> dict[str, str]:
    """Return the properties of the copy of a table with these properties: its mark, and a hold on its files."""
    message = f"standby of {source}; `lakewright-spark standby promote` removes this lock"
    return {**hold(message, now), **StandbyMark(source, metadata, now, read_held(properties)).to_property()}


def read_mark(properties: Mapping[str, str]) -> StandbyMark | None:
    """Return the mark of a table with these properties; None if it has no mark.

    Raises:
        StandbyError: The property cannot be read.
    """
    text = properties.get(MARK)
    if text is None:
        return None
    try:
        document = json.loads(text)
        copied_at, promoted_at = datetime.fromisoformat(document["copied_at"]), document.get("promoted_at")
        previous = read_held(document["previous"])
        promotion = datetime.fromisoformat(promoted_at) if promoted_at else None
        return StandbyMark(
            document["source"],
            document["metadata"],
            copied_at,
            previous,
            promotion,
            content=document.get("content", ""),
            view_uuid=document.get("view_uuid", ""),
            changed_ms=int(document.get("changed_ms", 0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StandbyError(f"property {MARK}: expected the JSON of a standby's mark, found other text") from None
