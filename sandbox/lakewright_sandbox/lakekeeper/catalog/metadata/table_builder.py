"""A table's metadata document while a commit changes it."""

from __future__ import annotations

import copy
from typing import Any

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

Json = dict[str, Any]

LAST_ADDED = -1


class TableBuilder:
    """The document of one commit, and what the commit added; `-1` in an update means the last addition."""

    def __init__(
        self, document: Json, allowed_format_versions: list[int], now_millis: int, *, fixed_properties: bool = True
    ) -> None:
        """Copy a document.

        Args:
            document: The current metadata.
            allowed_format_versions: Format versions that the warehouse allows.
            now_millis: Time of the commit.
            fixed_properties: Whether some properties are immutable.
        """
        self.document = copy.deepcopy(document)
        self.fixed = dict(document.get("properties") or {}) if fixed_properties else {}
        for key in ("snapshots", "snapshot-log", "metadata-log", "statistics", "partition-statistics"):
            self.document.setdefault(key, [])
        self.document.setdefault("properties", {})
        self.document.setdefault("refs", {})
        self.allowed_format_versions = allowed_format_versions
        self.now_millis = now_millis
        self.added: dict[str, int] = {}
        self.added_snapshots: dict[int, Json] = {}

    def drop_intermediate_snapshots(self) -> None:
        """Remove snapshots from the log that were current only within this commit."""
        current = self.document.get("current-snapshot-id")
        self.document["snapshot-log"] = [
            entry
            for entry in self.document["snapshot-log"]
            if entry["snapshot-id"] not in self.added_snapshots or entry["snapshot-id"] == current
        ]

    def resolve(self, kind: str, number: int) -> int:
        """Return the id that an update means: `-1` is the last object that this commit added."""
        if number != LAST_ADDED:
            return number
        if kind not in self.added:
            raise ApiError(400, "InvalidTableUpdate", f"Cannot refer to the last added {kind}: none was added.")
        return self.added[kind]

    def find(self, collection: str, key: str, number: int) -> Json:
        """Return the entry of a collection by id. Raises 400 if there is none."""
        for entry in self.document[collection]:
            if entry[key] == number:
                return entry
        raise ApiError(400, "InvalidTableUpdate", f"There is no {key} {number} in the table's {collection}.")
