"""Columns of a sort order as policies write them: a name or a transform, a direction, and the place of nulls.

The grammar is that of `sort_order` in Iceberg's procedure `rewrite_data_files`. Pure functions.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lakewright_spark.table_identifier import quote_name

_PART = r"(?:`[^`]+`|[^\s.,()`]+)"
_NAME = rf"(?P<name>{_PART}(?:\.{_PART})*)"
_TRANSFORM = rf"(?P<transform>years?|months?|days?|hours?|bucket|truncate)\(\s*(?:(?P<width>\d+)\s*,\s*)?{_NAME}\s*\)"
_ORDER = r"(?:\s+(?P<direction>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?"
_SORTED_NAME = re.compile(_NAME + _ORDER, re.IGNORECASE)
_SORTED_TRANSFORM = re.compile(_TRANSFORM + _ORDER, re.IGNORECASE)
_WITH_WIDTH = ("bucket", "truncate")


class SortColumn(NamedTuple):
    """A column of a sort order."""

    name: str
    """Full name, its levels joined with dots."""
    sql: str
    """The column for Iceberg's procedure."""
    is_plain: bool
    """Whether the text is only the name of a top-level column."""


def parse_sort_column(text: str) -> SortColumn:
    """Return the column of a text such as `day`, `address.city desc` or `bucket(16, id) asc nulls last`.

    Raises ValueError if a transform lacks its number, or has a number that it does not take.
    """
    match = _SORTED_TRANSFORM.fullmatch(text.strip()) or _SORTED_NAME.fullmatch(text.strip())
    if match is None:
        return SortColumn(text, quote_name(text), is_plain=True)  # any other text is a column's name
    fields = match.groupdict()
    levels = [part.strip("`") for part in re.findall(_PART, fields["name"])]
    sql = ".".join(map(quote_name, levels))
    if transform := fields.get("transform"):
        if (transform.lower() in _WITH_WIDTH) != (fields["width"] is not None):
            raise ValueError(
                f"expected bucket(NUMBER, COLUMN), truncate(NUMBER, COLUMN) or days(COLUMN), found {text!r}"
            )
        sql = f"{transform}({fields['width']}, {sql})" if fields["width"] else f"{transform}({sql})"
    order = [fields["direction"] or "", f"nulls {fields['nulls']}" if fields["nulls"] else ""]
    is_plain = len(levels) == 1 and not transform and not any(order)
    return SortColumn(".".join(levels), " ".join(filter(None, (sql, *order))), is_plain)
