"""Rules for the properties of declared tables and views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from lakewright.lakekeeper.table.schema.columns import is_observed

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
"""Names that Iceberg reserves for values of a table. Properties cannot have them."""

FIXED = frozenset({"encryption.key-id"})
"""Properties that cannot change after they are set, by Iceberg's specification and in Lakekeeper since 0.12."""

_CODEC = "write.metadata.compression-codec"
_CODECS = ("none", "gzip")
_WRITE_METADATA = frozenset(
    {_CODEC, "write.metadata.delete-after-commit.enabled", "write.metadata.previous-versions-max"}
)
_METRICS = "write.metadata.metrics."


def property_mistakes(properties: dict[str, str]) -> Iterator[str]:
    """Yield an error message for each invalid property of a table."""
    for key in sorted(properties):
        if key == "format-version":
            yield "`format-version` is not a table property; use `format_version`"
        elif key in RESERVED:
            yield f"`{key}` is reserved by Iceberg"
    yield from write_property_mistakes(properties)


def write_property_mistakes(properties: dict[str, str]) -> Iterator[str]:
    """Yield an error message for each property about writing that Lakekeeper refuses, of a table or view.

    The rules are the rules of Lakekeeper's `validate_table_properties` and `CompressionCodec`, which
    are the same from 0.11 to 0.14. The server refuses such a table, view or commit with 409 or 400.
    """
    for key, value in sorted(properties.items()):
        if key.startswith("write.data.path"):
            yield f"`{key}` is refused by Lakekeeper, which keeps files in the location of the table; remove it"
        elif key == _CODEC and value not in _CODECS:
            yield f"`{key}`: expected {' or '.join(_CODECS)}, found {value!r}"
        elif key.startswith("write.metadata") and key not in _WRITE_METADATA and not key.startswith(_METRICS):
            accepted = ", ".join(f"`{name}`" for name in [*sorted(_WRITE_METADATA), f"{_METRICS}*"])
            yield f"`{key}` is refused by Lakekeeper, which accepts only {accepted}; remove it"


def _declarable(properties: dict[str, str], info: ValidationInfo) -> dict[str, str]:
    if not is_observed(info) and (mistakes := "; ".join(property_mistakes(properties))):
        raise ValueError(mistakes)
    return properties


def _declarable_by_view(properties: dict[str, str], info: ValidationInfo) -> dict[str, str]:
    if not is_observed(info) and (mistakes := "; ".join(write_property_mistakes(properties))):
        raise ValueError(mistakes)
    return properties


TableProperties = Annotated[dict[str, str], AfterValidator(_declarable)]
ViewProperties = Annotated[dict[str, str], AfterValidator(_declarable_by_view)]
