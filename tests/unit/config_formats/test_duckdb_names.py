"""Names of warehouses as names of databases, in DuckDB itself."""

from __future__ import annotations

import duckdb
import pytest
from lakewright.config_formats.duckdb_names import quote_if_needed

RESERVED = {"system", "temp"}
"""Keywords that name databases of DuckDB itself. `lakewright config` refuses them, see `test_refusals.py`."""


def attach(alias: str) -> None:
    """Attach a database of this name, and detach it."""
    duckdb.execute(f"ATTACH ':memory:' AS {alias}")
    duckdb.execute(f"DETACH {alias}")


def test_database_may_have_the_name_of_a_keyword() -> None:
    rows = duckdb.sql("SELECT DISTINCT keyword_name FROM duckdb_keywords()").fetchall()
    keywords = {str(keyword) for (keyword,) in rows}

    for keyword in keywords - RESERVED:
        attach(quote_if_needed(keyword))

    assert len(keywords) > 400


@pytest.mark.parametrize(
    ("name", "alias"), [("lake", "lake"), ("order", '"order"'), ("Order", '"Order"'), ("a-b", '"a-b"')]
)
def test_quotes_are_written_only_where_needed(name: str, alias: str) -> None:
    """dbt-duckdb compares the alias with the setting `database`, which has no quotes."""
    attach(alias)

    assert quote_if_needed(name) == alias


@pytest.mark.parametrize("name", [*sorted(RESERVED), "main"])
def test_duckdb_refuses_the_names_of_its_databases(name: str) -> None:
    with pytest.raises(duckdb.Error, match=name):
        attach(f'"{name}"')
