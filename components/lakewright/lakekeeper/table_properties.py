"""Properties of tables: which ones a declaration can have."""

from typing import Annotated

from pydantic import AfterValidator

RESERVED = frozenset(
    {
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that Iceberg's libraries show a table's own values under; properties cannot have them."""


def _own_properties(properties: dict[str, str]) -> dict[str, str]:
    if "format-version" in properties:
        raise ValueError("`format-version` is no property of a table that is there; use `format_version`")
    for key in sorted(RESERVED & properties.keys()):
        raise ValueError(f"`{key}` is reserved by Iceberg")
    return properties


TableProperties = Annotated[dict[str, str], AfterValidator(_own_properties)]
