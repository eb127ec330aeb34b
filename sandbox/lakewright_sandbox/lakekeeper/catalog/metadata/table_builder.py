"""A table's metadata document while a commit changes it."""

from __future__ import annotations

import copy
from typing import Any

from ...protocol.errors import ApiError

Json = dict[str, Any]

LAST_ADDED = -1


class TableBuilder:
    """One commit in the making: the document, and what this commit added (`-1` in an update refers to it)."""

    def __init__(
        self, document: Json, allowed_format_versions: list[int], now_millis: int, *, fixed_properties: bool = True
    ) -> None:
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
        """Snapshots that were current only within this commit never were, for time travel."""
        current = self.document.get("current-snapshot-id")
        self.document["snapshot-log"] = [
            entry
            for entry in self.document["snapshot-log"]
            if entry["snapshot-id"] not in self.added_snapshots or entry["snapshot-id"] == current
        ]

    def resolve(self, kind: str, number: int) -> int:
        """The id that an update means: `-1` is the one this commit added last."""
        if number != LAST_ADDED:
            return number
        if kind not in self.added:
            raise ApiError(400, "InvalidTableUpdate", f"Cannot refer to the last added {kind}: none was added.")
        return self.added[kind]

    def one(self, collection: str, key: str, number: int) -> Json:
        for entry in self.document[collection]:
            if entry[key] == number:
                return entry
        raise ApiError(400, "InvalidTableUpdate", f"There is no {key} {number} in the table's {collection}.")
