"""A table's metadata document while a commit changes it."""

from __future__ import annotations

import copy
from typing import Any

from lakewright_sandbox.lakekeeper.catalog.metadata.document_rules import complete
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
        complete(self.document)
        self.allowed_format_versions = allowed_format_versions
        self.now_millis = now_millis
        self.added: dict[str, int] = {}
        self.added_snapshots: dict[int, Json] = {}
        self.removes_snapshots = False
        self.last_updated: int | None = None
        # A staged table is as old as its first commit.
        self.previous_update: int = document["last-updated-ms"] if self.document["schemas"] else 0

    def drop_intermediate_snapshots(self) -> None:
        """Remove snapshots from the log that were current only within this commit.

        Raises 409 if the commit removes the current snapshot.
        """
        current, log = self.document.get("current-snapshot-id"), self.document["snapshot-log"]
        remaining = [
            entry
            for entry in log
            if entry["snapshot-id"] not in self.added_snapshots or entry["snapshot-id"] == current
        ]
        changed = remaining != log or self.removes_snapshots
        if changed and current is not None and (not remaining or remaining[-1]["snapshot-id"] != current):
            message = "Cannot set invalid snapshot log: latest entry is not the current snapshot"
            raise ApiError(409, "CommitFailedException", message)
        self.document["snapshot-log"] = remaining

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
