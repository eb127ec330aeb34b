"""Texera's tables with executions of several users, whose results are in a catalog in a database."""

from __future__ import annotations

import uuid

import pyarrow as pa
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.execution_registry import database
from lakewright_spark.result_uris import Execution, Port, ResultUri
from lakewright_spark.results.writer import ResultWriter
from sqlalchemy import Connection, text

_TABLES = """
CREATE TABLE {s}"user" (uid {serial}, name VARCHAR(256) NOT NULL);
CREATE TABLE {s}workflow_version (vid INT PRIMARY KEY, wid INT NOT NULL, content TEXT NOT NULL);
CREATE TABLE {s}user_warehouse (whid {serial}, uid INT NOT NULL REFERENCES {s}"user" (uid) ON DELETE CASCADE,
  name VARCHAR(128) NOT NULL, {warehouse_column} VARCHAR(255) NOT NULL UNIQUE,
  lakekeeper_warehouse_id {uuid} NOT NULL, flavor {flavor} NOT NULL, s3_bucket VARCHAR(255), s3_endpoint VARCHAR(255),
  s3_region VARCHAR(64), created_at {moment} NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (uid, name));
CREATE TABLE {s}workflow_executions (eid INT PRIMARY KEY, vid INT NOT NULL,
  uid INT NOT NULL REFERENCES {s}"user" (uid) ON DELETE CASCADE, cuid INT, status SMALLINT NOT NULL DEFAULT 1,
  result TEXT, starting_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, last_update_time TIMESTAMP,
  environment_version VARCHAR(128) NOT NULL, runtime_stats_uri TEXT, runtime_stats_size BIGINT DEFAULT 0, whid INT);
CREATE TABLE {s}operator_executions (workflow_execution_id INT NOT NULL, operator_id VARCHAR(100) NOT NULL,
  console_messages_uri TEXT, console_messages_size BIGINT DEFAULT 0, PRIMARY KEY (workflow_execution_id, operator_id));
CREATE TABLE {s}operator_port_executions (workflow_execution_id INT NOT NULL, global_port_id VARCHAR(200) NOT NULL,
  result_uri TEXT, result_size BIGINT DEFAULT 0, PRIMARY KEY (workflow_execution_id, global_port_id))
"""
"""Texera's tables, with the types and constraints of the columns that this project reads or writes."""
_TYPES = {
    "postgresql": {
        "serial": "SERIAL PRIMARY KEY",
        "uuid": "UUID",
        "flavor": "texera_db.user_warehouse_flavor_enum",
        "moment": "TIMESTAMPTZ",
    },
    "sqlite": {"serial": "INTEGER PRIMARY KEY", "uuid": "TEXT", "flavor": "TEXT", "moment": "TIMESTAMP"},
}
COMPLETED, RUNNING = 3, 1
PAUSING = -1
"""Texera's number of all states without a number of their own."""
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
        self.warehouse_column = warehouse_column
        dialect = self.engine.dialect.name
        self.schema = "texera_db." if dialect == "postgresql" else ""
        with self.engine.begin() as connection:
            if self.schema:
                connection.execute(text("CREATE SCHEMA texera_db"))
                connection.execute(text("CREATE TYPE texera_db.user_warehouse_flavor_enum AS ENUM ('local', 'aws')"))
            tables = _TABLES.format(s=self.schema, warehouse_column=warehouse_column, **_TYPES[dialect])
            for statement in tables.split(";\n"):
                connection.exec_driver_sql(statement)

    def add_execution(self, number: int, user: int, status: int = COMPLETED) -> Execution:
        """Add an execution with the addresses of a port, a console and its statistics, without a warehouse."""
        run = Execution(number, number)
        port_address = str(run.result(PORT)).removesuffix("/result")
        rows = {
            "workflow_version": (number, number, ""),
            "workflow_executions": (
                number, number, user, 5, status, None, "2026-11-21 11:00:00", "2026-11-21 12:00:00", "1.0",
                str(run.runtime_statistics()), 9, None,
            ),
            "operator_executions": (number, "Op-1", str(run.console_messages("Op-1")), 5),
            "operator_port_executions": (number, "p", port_address, 99),
        }  # fmt: skip
        with self.engine.begin() as connection:
            self._add_user(connection, user)
            for table, values in rows.items():
                names = {f"v{i}": value for i, value in enumerate(values)}
                connection.execute(
                    text(f"INSERT INTO {self.schema}{table} VALUES ({', '.join(f':{name}' for name in names)})"), names
                )
        return run

    def set_status(self, number: int, status: int) -> None:
        """Change the status of an execution."""
        with self.engine.begin() as connection:
            query = text(f"UPDATE {self.schema}workflow_executions SET status = :status WHERE eid = :number")
            connection.execute(query, {"status": status, "number": number})

    def add_warehouse(self, user: int, name: str, lakekeeper_name: str) -> None:
        """Add the row of a user's warehouse, as Texera does."""
        with self.engine.begin() as connection:
            self.insert_warehouse(connection, user, name, lakekeeper_name)

    def insert_warehouse(self, connection: Connection, user: int, name: str, lakekeeper_name: str) -> int:
        """Insert the row of a user's warehouse in a transaction, and return its number."""
        self._add_user(connection, user)
        columns = f"uid, name, {self.warehouse_column}, lakekeeper_warehouse_id, flavor"
        values = {"uid": user, "name": name, "lakekeeper_name": lakekeeper_name, "id": str(uuid.uuid4())}
        statement = (
            f"INSERT INTO {self.schema}user_warehouse ({columns}) VALUES (:uid, :name, :lakekeeper_name, :id, 'local')"
        )
        return connection.execute(text(f"{statement} RETURNING whid"), values).scalar_one()

    def _add_user(self, connection: Connection, user: int) -> None:
        statement = f'INSERT INTO {self.schema}"user" (uid, name) VALUES (:uid, :name) ON CONFLICT DO NOTHING'
        connection.execute(text(statement), {"uid": user, "name": f"user {user}"})

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
