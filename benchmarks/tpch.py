"""TPC-H in Iceberg beside the same tables in DuckDB: generated rows, streams of changes, and checks of the contents."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

TABLES = ("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem")
CHANGED = ("orders", "lineitem")
LOADS = 6
"""Commits that fill a changed table."""
_MERGE_ON_READ = ", ".join(f"'write.{change}.mode' = 'merge-on-read'" for change in ("update", "delete", "merge"))
_LAYOUTS = {
    "orders": f"TBLPROPERTIES ('format-version' = '{{version}}', {_MERGE_ON_READ})",
    "lineitem": f"PARTITIONED BY (years(l_shipdate)) TBLPROPERTIES ('format-version' = '2', {_MERGE_ON_READ})",
}
"""Deletions are files of position deletes in `lineitem`, and deletion vectors in `orders` of version 3."""


@dataclass
class Tpch:
    """The tables of TPC-H in a namespace, and in DuckDB, which does the same changes.

    Args:
        spark: The session.
        namespace: Warehouse and namespace of the tables. It is created.
        folder: Folder for the generated files.
        scale: Scale factor: 1 has six million rows of `lineitem`.
        version: Format version of `orders`.
    """

    spark: SparkSession
    namespace: str
    folder: Path
    scale: float
    version: int = 3
    database: duckdb.DuckDBPyConnection = field(init=False)
    rounds: int = 0

    def __post_init__(self) -> None:
        self.database = duckdb.connect(str(self.folder / "tpch.duckdb"))
        package = importlib.util.find_spec("duckdb_extension_tpch")
        assert package is not None
        (folder,) = package.submodule_search_locations or []
        extension = next(Path(folder).rglob("*.duckdb_extension"))
        self.database.execute("SET memory_limit = '1GB'")
        self.database.execute(f"LOAD '{extension}'")
        self.database.execute(f"CALL dbgen(sf = {self.scale})")

    def load(self) -> None:
        """Create the tables, and load the generated rows: each changed table by several commits."""
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.namespace}")
        for table in TABLES:
            file = self.folder / f"{table}.parquet"
            self.database.execute(f"COPY {table} TO '{file}' (FORMAT parquet)")
            self.spark.read.parquet(str(file)).createOrReplaceTempView("generated")
            number = LOADS if table in CHANGED else 1
            key = self.database.table(table).columns[0]
            layout = _LAYOUTS.get(table, "").format(version=self.version)
            create = f"CREATE TABLE {self.namespace}.{table} USING iceberg {layout} AS"
            for part in range(number):
                command = create if part == 0 else f"INSERT INTO {self.namespace}.{table}"
                self.spark.sql(f"{command} SELECT * FROM generated WHERE {key} DIV 32 % {number} = {part}")
            file.unlink()

    def change(self) -> None:
        """Insert and delete 0.1 % of the orders with their items, as RF1 and RF2 do, and update 1 % of both tables.

        TPC-H uses eight of 32 order keys. New orders have unused keys.
        """
        first = self.rounds * 32
        step = 8 * (self.rounds % 3 + 1)
        for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            columns = ", ".join(name for name in self.database.table(table).columns if name != key)
            self._execute(
                f"INSERT INTO {{}}{table} SELECT {key} + {step} AS {key}, {columns} FROM {{}}{table} "
                f"WHERE {key} % 32000 BETWEEN {first} AND {first + 7}"
            )
        updated = f"% 100 = {self.rounds % 100}"
        self._execute(f"UPDATE {{}}orders SET o_totalprice = o_totalprice + 1 WHERE o_orderkey {updated}")
        self._execute(f"UPDATE {{}}lineitem SET l_quantity = l_quantity + 1 WHERE l_orderkey {updated}")
        for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
            self._execute(f"DELETE FROM {{}}{table} WHERE {key} % 32000 BETWEEN {16000 + first} AND {16031 + first}")
        self.rounds += 1

    def check(self, step: str, tables: tuple[str, ...] = CHANGED) -> None:
        """Compare number and checksum of the rows with DuckDB. Raises AssertionError."""
        for table in tables:
            columns = self.database.table(table).columns
            text = f"md5(concat_ws('|', {', '.join(f'CAST({name} AS {{}})' for name in columns)}))"
            self.spark.catalog.refreshTable(f"{self.namespace}.{table}")
            mine = self.spark.sql(
                f"SELECT count(*), sum(CAST(conv(substr({text.replace('{}', 'STRING')}, 1, 8), 16, 10) AS BIGINT)) "
                f"FROM {self.namespace}.{table}"
            ).collect()
            expected = self.database.sql(
                f"SELECT count(*), sum(CAST('0x' || substr({text.replace('{}', 'VARCHAR')}, 1, 8) AS BIGINT)) "
                f"FROM {table}"
            ).fetchall()
            row_sums = tuple(int(value) for value in mine[0])
            assert row_sums == tuple(int(value) for value in expected[0]), (
                f"{table} after {step}: {row_sums}, {expected}"
            )

    def _execute(self, statement: str) -> None:
        self.spark.sql(statement.replace("{}", f"{self.namespace}."))
        self.database.execute(statement.replace("{}", ""))
