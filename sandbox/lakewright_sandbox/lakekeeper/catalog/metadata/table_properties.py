"""Properties that a table may have, and properties that may change.

Source: `validate_table_properties`, `CompressionCodec` and `IMMUTABLE_TABLE_PROPERTIES` of Lakekeeper 0.11 to 0.14.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

Json = dict[str, Any]

CODEC = "write.metadata.compression-codec"
DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"
PREVIOUS_VERSIONS_MAX = "write.metadata.previous-versions-max"

SUPPORTED_METADATA_PROPERTIES = frozenset({CODEC, DELETE_AFTER_COMMIT, PREVIOUS_VERSIONS_MAX})
IMMUTABLE = ("encryption.key-id",)


def check_supported(names: Iterable[str]) -> None:
    """Raise 409 `FailedToSetProperties` for a property that the server does not support."""
    for name in names:
        if name.startswith("write.metadata.metrics.") or name in SUPPORTED_METADATA_PROPERTIES:
            continue
        if name.startswith(("write.metadata", "write.data.path")):
            raise ApiError(409, "FailedToSetProperties", f"Properties contain unsupported property: '{name}'")


def check_codec(properties: Mapping[str, str]) -> None:
    """Raise 400 `UnsupportedCompressionCodec` for anything but gzip and none."""
    codec = properties.get(CODEC, "gzip")
    if codec not in {"gzip", "none"}:
        raise ApiError(400, "UnsupportedCompressionCodec", f"Unsupported compression codec: {codec}")


def check_supported_updates(updates: Iterable[Json]) -> None:
    """Raise 409 `FailedToSetProperties` for updates that set or remove an unsupported property."""
    for update in updates:
        match update.get("action"):
            case "set-properties":
                check_supported(update.get("updates", {}))
            case "remove-properties":
                check_supported(update.get("removals", []))
            case _:
                pass


def check_not_modified(before: Mapping[str, str], updates: Mapping[str, str]) -> None:
    """Raise 400 if an immutable property changes."""
    for name in IMMUTABLE:
        if name in before and updates.get(name, before[name]) != before[name]:
            raise ApiError(400, "ImmutablePropertyModification", f"Cannot modify immutable property '{name}'")


def check_not_removed(before: Mapping[str, str], removals: Collection[str]) -> None:
    """Raise 400 if an immutable property is removed."""
    for name in IMMUTABLE:
        if name in before and name in removals:
            raise ApiError(400, "ImmutablePropertyRemoval", f"Cannot remove immutable property '{name}'")


def deletes_after_commit(properties: Mapping[str, str]) -> bool:
    """Return whether metadata files that leave the log are deleted, which is the default."""
    return properties.get(DELETE_AFTER_COMMIT, "true").lower() in {"true", "yes", "1"}
