"""After concurrent replacements, a result has the rows of exactly one writer."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog_cache import CatalogCache
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.replacement import replace_rows
from lakewright_spark.results.tables import PROPERTIES, ResultTables
from lakewright_spark.results.writer import CommitInterval, ResultWriter
from pyiceberg.catalog.sql import SqlCatalog

NUMBERS = pa.table({"n": pa.array([1, 2], pa.int32())})
MORE_NUMBERS = pa.table({"n": pa.array([3, 4, 5], pa.int32())})
TEXTS = pa.table({"other": ["x", "y"]})
NAME = "sales.orders"
URI = Execution(7, 1, "local").result(Port("Scan-1"))


def read_rows(catalog: SqlCatalog, name: str = NAME) -> list[dict[str, Any]]:
    return catalog.load_table(name).scan().to_arrow().to_pylist()


@pytest.fixture
def writer(local_config: CatalogConfig, local_catalog: SqlCatalog) -> ResultWriter:
    cache = CatalogCache(lambda config, name: local_catalog)
    return ResultWriter(local_config, "local", commit=CommitInterval(None, None, None), catalogs=cache)


@pytest.fixture
def replaced_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another writer replace a new table, with other columns, before the creator's first commit."""
    create_or_load = ResultTables.create_or_load

    def create(self: ResultTables, *arguments: Any) -> Any:
        created_table = create_or_load(self, *arguments)
        replace_rows(self.load(arguments[0]), TEXTS)
        return created_table

    monkeypatch.setattr(ResultTables, "create_or_load", create)


@pytest.mark.parametrize(
    "first", [NUMBERS, TEXTS, TEXTS.slice(0, 0)], ids=["same columns", "other columns", "other columns, no rows"]
)
def test_concurrent_replacements_of_an_empty_result(local_catalog: SqlCatalog, first: pa.Table) -> None:
    """Regression: the result had the rows of both writers, with NULLs in the columns of the other."""
    # PyIceberg itself retries a commit that cannot succeed while the columns differ.
    local_catalog.create_table(NAME, NUMBERS.schema, properties={**PROPERTIES, "commit.retry.num-retries": "1"})
    one, two = local_catalog.load_table(NAME), local_catalog.load_table(NAME)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        # pytest drops the filter that the package sets.
        warnings.filterwarnings("ignore", "Parquet writer option")
        replace_rows(one, first)
        replace_rows(two, MORE_NUMBERS)
    assert read_rows(local_catalog) == MORE_NUMBERS.to_pylist()


def test_concurrent_replacements_of_a_result_without_files(local_catalog: SqlCatalog) -> None:
    """A result that was replaced by no rows has a snapshot but no files."""
    local_catalog.create_table(NAME, NUMBERS.schema, properties=dict(PROPERTIES))
    replace_rows(local_catalog.load_table(NAME), NUMBERS)
    replace_rows(local_catalog.load_table(NAME), NUMBERS.slice(0, 0))
    one, two = local_catalog.load_table(NAME), local_catalog.load_table(NAME)
    replace_rows(one, NUMBERS)
    replace_rows(two, MORE_NUMBERS)
    assert read_rows(local_catalog) == MORE_NUMBERS.to_pylist()


@pytest.mark.usefixtures("replaced_meanwhile")
def test_new_result_replaced_before_its_first_rows(writer: ResultWriter, local_catalog: SqlCatalog) -> None:
    writer.write(URI, MORE_NUMBERS)
    assert read_rows(local_catalog, ".".join(writer.tables.identifier(URI))) == MORE_NUMBERS.to_pylist()


@pytest.mark.usefixtures("replaced_meanwhile")
@pytest.mark.parametrize("rows", [[(3,), (4,)], []], ids=["rows", "no rows"])
def test_new_stream_replaced_before_its_first_rows(
    writer: ResultWriter, local_catalog: SqlCatalog, rows: list[tuple[int]]
) -> None:
    writer.write_rows(URI, NUMBERS.schema, rows)
    assert read_rows(local_catalog, ".".join(writer.tables.identifier(URI))) == [{"n": n} for (n,) in rows]
