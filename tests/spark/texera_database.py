"""Texera's tables with executions of several users, whose results are in a catalog in a database."""

from __future__ import annotations

import pyarrow as pa
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.execution_registry import database
from lakewright_spark.result_uris import Execution, Port, ResultUri
from lakewright_spark.results.writer import ResultWriter
from sqlalchemy import text

_TABLES = """
CREATE TABLE {s}workflow_version (vid INT PRIMARY KEY, wid INT NOT NULL, content TEXT NOT NULL);
CREATE TABLE {s}user_warehouse (whid {serial}, uid INT NOT NULL, name TEXT NOT NULL,
  {warehouse_column} TEXT NOT NULL UNIQUE, lakekeeper_warehouse_id TEXT, flavor TEXT, s3_bucket TEXT,
  s3_endpoint TEXT, s3_region TEXT, created_at TIMESTAMP, UNIQUE (uid, name));
CREATE TABLE {s}workflow_executions (eid INT PRIMARY KEY, vid INT NOT NULL, uid INT NOT NULL, cuid INT,
  status SMALLINT NOT NULL, result TEXT, starting_time TIMESTAMP NOT NULL, last_update_time TIMESTAMP,
  runtime_stats_uri TEXT, runtime_stats_size INT, whid INT);
CREATE TABLE {s}operator_executions (workflow_execution_id INT NOT NULL, operator_id VARCHAR(100) NOT NULL,
  console_messages_uri TEXT, console_messages_size INT);
CREATE TABLE {s}operator_port_executions (workflow_execution_id INT NOT NULL, global_port_id VARCHAR(200) NOT NULL,
  result_uri TEXT, result_size INT)
"""
COMPLETED, RUNNING = 3, 1
PORT = Port("Op-1")


class TexeraDatabase:
    """Texera's tables in a database. Each execution has a workflow of its own number."""

    def __init__(self, url: str, warehouse_column: str = "lakekeeper_warehouse_name") -> None:
        """Create the tables.

        Args:
            url: SQLAlchemy URL of an empty database.
            warehouse_column: Column with a warehouse's name in Lakekeeper; `warehouse_name` before texera#7754.
        """
        self.url = url
        self.engine = database.connect(url)
        is_postgres = self.engine.dialect.name == "postgresql"
        self.schema = "texera_db." if is_postgres else ""
        with self.engine.begin() as connection:
            if is_postgres:
                connection.execute(text("CREATE SCHEMA texera_db"))
            serial = "SERIAL PRIMARY KEY" if is_postgres else "INTEGER PRIMARY KEY"
            tables = _TABLES.format(s=self.schema, serial=serial, warehouse_column=warehouse_column)
            for statement in tables.split(";\n"):
                connection.exec_driver_sql(statement)

    def add_execution(self, number: int, user: int, status: int = COMPLETED) -> Execution:
        """Add an execution with the addresses of a port, a console and its statistics, without a warehouse."""
        run = Execution(number, number)
        port_address = str(run.result(PORT)).removesuffix("/result")
        rows = {
            "workflow_version": (number, number, ""),
            "workflow_executions": (
                number, number, user, 5, status, None, "2026-11-21 11:00:00", "2026-11-21 12:00:00",
                str(run.runtime_statistics()), 9, None,
            ),
            "operator_executions": (number, "Op-1", str(run.console_messages("Op-1")), 5),
            "operator_port_executions": (number, "p", port_address, 99),
        }  # fmt: skip
        with self.engine.begin() as connection:
            for table, values in rows.items():
                names = {f"v{i}": value for i, value in enumerate(values)}
                connection.execute(
                    text(f"INSERT INTO {self.schema}{table} VALUES ({', '.join(f':{name}' for name in names)})"), names
                )
        return run

    def read(self, columns: str, table: str, order: str) -> list[tuple[object, ...]]:
        """Return rows of a table."""
        with self.engine.connect() as connection:
            query = text(f"SELECT {columns} FROM {self.schema}{table} ORDER BY {order}")
            return [tuple(row) for row in connection.execute(query)]


def write_results(config: CatalogConfig, warehouse: str, run: Execution) -> dict[ResultUri, pa.Table]:
    """Write the results of an execution."""
    writer = ResultWriter(config, warehouse)
    results = {
        run.result(PORT): pa.table({"number": [run.execution, 2, 3]}),
        run.runtime_statistics(): pa.table({"operatorId": ["Op-1"], "status": pa.array([3], pa.int32())}),
        run.console_messages("Op-1"): pa.table({"message": [f"hello from {run.execution}"]}),
    }
    for uri, rows in results.items():
        writer.write(uri, rows)
    return results
