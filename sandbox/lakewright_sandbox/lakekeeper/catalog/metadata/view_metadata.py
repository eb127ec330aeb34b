"""Metadata documents of views (Iceberg view spec, version 1), and the updates that change them."""

from __future__ import annotations

import copy
from typing import Any

from lakewright_sandbox.lakekeeper.catalog.metadata.fresh_ids import field_ids
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

Json = dict[str, Any]

DEFAULT_HISTORY = 10
_TOLERANCE_MS = 60_000
"""How much older than the last version a new version may be."""
MAY_LOSE_DIALECTS = "replace.drop-dialect.allowed"


def new_view(
    view_uuid: str, location: str, *, schema: Json, version: Json, properties: dict[str, str], now: int
) -> Json:
    """Return a new view; `now` in milliseconds is the version's time, also if the client sent another time."""
    first = {**version, "version-id": 1, "schema-id": 0, "timestamp-ms": now}
    return {
        "format-version": 1,
        "view-uuid": view_uuid,
        "location": location,
        "current-version-id": 1,
        "versions": [first],
        "version-log": [{"version-id": 1, "timestamp-ms": now}],
        "schemas": [{"type": "struct", **schema, "schema-id": 0}],
        "properties": properties,
    }


class ViewBuilder:
    """One change of a view; `-1` in an update means the last addition of the change."""

    def __init__(self, document: Json, now: int) -> None:
        """Copy a document; `now` is in milliseconds."""
        self._document = copy.deepcopy(document)
        self._now = now
        self._added_schema: int | None = None
        self._added_version: int | None = None
        self._is_version_reused = False

    def apply(self, updates: list[Json]) -> Json:
        """Return the document after updates. Raises 400 for an unknown or invalid update."""
        document = self._document
        dialects_before = self._list_dialects()
        for update in updates:
            action = update.get("action")
            try:
                self._apply(str(action), update)
            except KeyError as missing:
                message = f"View update `{action}` lacks the field {missing}."
                raise ApiError(400, "InvalidViewUpdate", message) from None
        self._require_dialects(dialects_before)
        self._forget_old_versions()
        return document

    def _list_dialects(self) -> set[str]:
        """Return the dialects of the current version, in lower case."""
        document = self._document
        current = next(
            version for version in document["versions"] if version["version-id"] == document["current-version-id"]
        )
        return {entry["dialect"].lower() for entry in current["representations"] if entry.get("type") == "sql"}

    def _require_dialects(self, before: set[str]) -> None:
        """Raise 400 if a change lost a dialect. Source: `require_no_dialect_dropped` of iceberg-rust 0.10."""
        allowed = self._document["properties"].get(MAY_LOSE_DIALECTS, "").lower() == "true"
        after = self._list_dialects()
        if not allowed and not before <= after:
            raise ApiError(
                400,
                "BuildMetadataError",
                "Error building metadata: DataInvalid => Cannot replace view due to loss of view dialects: \n"
                f"Previous dialects: {sorted(before)}\nNew dialects: {sorted(after)}\n"
                f"Set {MAY_LOSE_DIALECTS} to true to allow dropping dialects.",
            )

    def _apply(self, action: str, update: Json) -> None:
        document = self._document
        if action == "assign-uuid":
            if update["uuid"] != document["view-uuid"]:
                raise ApiError(400, "InvalidViewUpdate", "Cannot reassign the view's uuid.")
        elif action == "upgrade-format-version":
            if update["format-version"] != 1:
                raise ApiError(400, "InvalidViewUpdate", "Views have format version 1 only.")
        elif action == "add-schema":
            self._add_schema(update["schema"])
        elif action == "add-view-version":
            self._add_version(update["view-version"])
        elif action == "set-current-view-version":
            self._set_current(update["view-version-id"])
        elif action == "set-location":
            document["location"] = update["location"].rstrip("/")
        elif action == "set-properties":
            document["properties"].update(update["updates"])
        elif action == "remove-properties":
            for key in update["removals"]:
                document["properties"].pop(key, None)
        else:
            raise ApiError(400, "UnsupportedViewUpdate", f"Unknown view update `{action}`.")

    def _add_schema(self, schema: Json) -> None:
        list(field_ids(schema))
        schemas = self._document["schemas"]
        for existing_schema in schemas:
            if {**existing_schema, "schema-id": 0} == {"type": "struct", **schema, "schema-id": 0}:
                self._added_schema = existing_schema["schema-id"]
                return
        self._added_schema = max(existing_schema["schema-id"] for existing_schema in schemas) + 1
        schemas.append({"type": "struct", **schema, "schema-id": self._added_schema})

    def _add_version(self, version: Json) -> None:
        versions = self._document["versions"]
        schema_id = self._added_schema if version["schema-id"] == -1 else version["schema-id"]
        if not any(existing["schema-id"] == schema_id for existing in self._document["schemas"]):
            raise ApiError(400, "InvalidViewUpdate", f"The view has no schema {schema_id}.")
        self._require_later_time(version["timestamp-ms"])
        added = {**version, "schema-id": schema_id}
        free = ("version-id", "timestamp-ms")
        for existing in versions:
            if {**existing, **dict.fromkeys(free)} == {**added, **dict.fromkeys(free)}:
                self._added_version = existing["version-id"]
                self._is_version_reused = True
                return
        taken = {existing["version-id"] for existing in versions}
        number = added["version-id"] if added["version-id"] not in taken else max(taken) + 1
        versions.append({**added, "version-id": number})
        self._added_version = number

    def _require_later_time(self, time_ms: int) -> None:
        """Refuse a version that is more than a minute older than the last version, as iceberg-rust's builder does."""
        last_ms = self._document["version-log"][-1]["timestamp-ms"]
        if time_ms - last_ms < -_TOLERANCE_MS:
            raise ApiError(
                400,
                "AppendViewVersionError",
                "Error appending view version: DataInvalid => Invalid snapshot timestamp "
                f"{time_ms}: before last snapshot timestamp {last_ms}",
            )

    def _set_current(self, number: int) -> None:
        """Make a version current.

        Raise 503 for an added version that equals an earlier version. iceberg-rust 0.10 then logs the earlier version a
        second time with its old time (`set_current_version_id`), which the database of Lakekeeper 0.13.3 refuses.
        """
        document, is_reused = self._document, False
        if number == -1 and self._added_version is not None:
            number, is_reused = self._added_version, self._is_version_reused
        if not any(version["version-id"] == number for version in document["versions"]):
            raise ApiError(400, "InvalidViewUpdate", f"The view has no version {number}.")
        if document["current-version-id"] != number:
            if is_reused:
                message = 'duplicate key value violates unique constraint "view_version_log_pkey"'
                raise ApiError(503, "CatalogBackendError", f"Catalog backend error (Unexpected): {message}")
            document["current-version-id"] = number
            document["version-log"].append({"version-id": number, "timestamp-ms": self._now})

    def _forget_old_versions(self) -> None:
        document = self._document
        keep = max(1, int(document["properties"].get("version.history.num-entries", DEFAULT_HISTORY)))
        current = document["current-version-id"]
        recent = {version["version-id"] for version in document["versions"][-keep:]} | {current}
        document["versions"] = [version for version in document["versions"] if version["version-id"] in recent]
        document["version-log"] = [entry for entry in document["version-log"] if entry["version-id"] in recent]
