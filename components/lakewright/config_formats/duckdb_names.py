"""Names of databases in DuckDB: which must be in quotes, and which DuckDB refuses.

A test compares them with DuckDB 1.5.
"""

from __future__ import annotations

from lakewright.config_formats.config_format import ConfigRequest
from lakewright.config_formats.sql import quote_identifier

_KEYWORDS_TEXT = """
all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case cast check
collate collation column concurrently constraint create cross default deferrable desc describe distinct do
else end except false fetch for foreign freeze from full glob group having ilike in initially inner intersect
into is isnull join lambda lateral leading left like limit natural not notnull null offset on only or order
outer overlaps pivot pivot_longer pivot_wider placing positional primary qualify references returning right
select semi show similar some summarize symmetric table tablesample then to trailing true union unique unpack
unpivot using variadic verbose when where window with
"""
_KEYWORDS = frozenset(_KEYWORDS_TEXT.split())
"""Words that DuckDB does not parse as the name of a database."""
_RESERVED = frozenset({"main", "system", "temp"})
"""Names of databases that DuckDB has itself."""


def quote_if_needed(name: str) -> str:
    """Return the name of a database as SQL has it: in quotes only if it must be."""
    return name if name.isidentifier() and name.casefold() not in _KEYWORDS else quote_identifier(name)


def list_reserved_names(request: ConfigRequest) -> tuple[str, ...]:
    """Return a problem for each warehouse with the name of a database of DuckDB itself."""
    return tuple(
        f"warehouse {warehouse.name} has the name of a database that DuckDB has itself: leave the warehouse out with"
        " --warehouse, or give it another name in the spec (`renamed_from`)"
        for warehouse in request.config.warehouses
        if warehouse.name.casefold() in _RESERVED
    )
