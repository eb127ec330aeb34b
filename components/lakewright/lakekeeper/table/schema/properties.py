"""Properties of tables: which ones a declaration can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from lakewright.lakekeeper.table.schema.columns import observed

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

FIXED = frozenset({"encryption.key-id"})
"""Properties that never change once a table has them: by Iceberg's specification, and by Lakekeeper from 0.12 on."""

_CODEC = "write.metadata.compression-codec"
_CODECS = ("none", "gzip")
_WRITE_METADATA = frozenset(
    {_CODEC, "write.metadata.delete-after-commit.enabled", "write.metadata.previous-versions-max"}
)
_METRICS = "write.metadata.metrics."


def property_mistakes(properties: dict[str, str]) -> Iterator[str]:
    """Yield a sentence for each property that no table can have.

    The rules about `write.*` are those of Lakekeeper's `validate_table_properties` and `CompressionCodec`, which are
    the same from 0.11 to 0.14. The server refuses such a table or commit with 409 or 400.
    """
    for key, value in sorted(properties.items()):
        if key == "format-version":
            yield "`format-version` is no property of a table that is there; use `format_version`"
        elif key in RESERVED:
            yield f"`{key}` is reserved by Iceberg"
        elif key.startswith("write.data.path"):
            yield f"`{key}` is refused by Lakekeeper, which keeps a table's files in its location; leave it out"
        elif key == _CODEC and value not in _CODECS:
            yield f"`{key}`: expected {' or '.join(_CODECS)}, found {value!r}"
        elif key.startswith("write.metadata") and key not in _WRITE_METADATA and not key.startswith(_METRICS):
            known = ", ".join(f"`{one}`" for one in [*sorted(_WRITE_METADATA), f"{_METRICS}*"])
            yield f"`{key}` is refused by Lakekeeper, which knows {known} alone; leave it out"


def _declarable(properties: dict[str, str], info: ValidationInfo) -> dict[str, str]:
    if not observed(info) and (mistakes := "; ".join(property_mistakes(properties))):
        raise ValueError(mistakes)
    return properties


TableProperties = Annotated[dict[str, str], AfterValidator(_declarable)]
