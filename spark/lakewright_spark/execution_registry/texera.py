"""TexeraExecutions: executions in Texera's database, which is only read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, MetaData, Table, inspect, select

from lakewright_spark.errors import BadAddressError, RegistryError
from lakewright_spark.execution_registry import database
from lakewright_spark.execution_registry.records import ExecutionRecord, ExecutionStatus, WrittenTable
from lakewright_spark.result_uris import ResultUri

SCHEMA = "texera_db"
_REQUIRED_TABLES = ("workflow_executions", "workflow_version", "operator_port_executions", "operator_executions")
WAREHOUSE_NAMES = ("lakekeeper_warehouse_name", "warehouse_name")
"""Columns of `user_warehouse` with the warehouse's name in Lakekeeper: since texera#7754, and before."""
_STATUS = dict(enumerate(ExecutionStatus))
"""The numbers under which Texera's web service stores states: 0 is ready, 3 completed, 5 killed.

It stores -1 for all other states, such as pausing and resuming, in which an execution has not ended.
"""


class TexeraExecutions:
    """The executions in a Texera deployment's database. Methods raise RegistryError only.

    `url` as for the registry, of an account that may read `texera_db`. Transactions are read-only.
    """

    def __init__(self, url: str, schema: str | None = SCHEMA) -> None:
        """Connect to Texera's database and read the columns of its tables."""
        self._engine = database.connect(url, read_only=True)
        if self._engine.dialect.name == "sqlite":
            schema = None
        with database.explain_errors(self._engine):
            table_names = set(inspect(self._engine).get_table_names(schema))
            if lacking := [name for name in _REQUIRED_TABLES if name not in table_names]:
                raise RegistryError(
                    f"{database.redact(self._engine.url)}: expected Texera's tables in schema {schema or 'main'}, "
                    f"found no {', '.join(lacking)}"
                )
            # Columns differ between Texera's versions: warehouses came late.
            names = [*_REQUIRED_TABLES, *(["user_warehouse"] if "user_warehouse" in table_names else [])]
            metadata = MetaData(schema=schema)
            metadata.reflect(self._engine, only=names, resolve_fks=False)
        self._tables = {name: metadata.tables[f"{schema}.{name}" if schema else name] for name in names}

    def all(self) -> Iterator[ExecutionRecord]:
        """Return every execution, oldest first."""
        return iter(self._read())

    def knows(self, workflow: int, execution: int) -> bool:
        """Return whether the execution is known."""
        return any(record.workflow == workflow for record in self._read(execution))

    def find_warehouse(self, workflow: int, execution: int) -> str | None:
        """Return the warehouse of an execution; None if it is unknown, or in a deployment with a single warehouse."""
        return next((r.warehouse for r in self._read(execution) if r.workflow == workflow), None)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _read(self, execution: int | None = None) -> list[ExecutionRecord]:
        runs = self._tables["workflow_executions"]
        versions = self._tables["workflow_version"]
        query = select(runs, versions.c.wid).join_from(runs, versions, runs.c.vid == versions.c.vid)
        with database.explain_errors(self._engine), self._engine.connect() as connection:
            if execution is not None:
                query = query.where(runs.c.eid == execution)
            rows = connection.execute(query.order_by(runs.c.eid)).mappings().all()
            warehouses = self._read_warehouses(connection)
            tables = self._read_uris(connection, execution)
        return [_record(row, tables[row["eid"]], warehouses.get(row.get("whid"))) for row in rows]

    def _read_warehouses(self, connection: Connection) -> dict[Any, str]:
        if (warehouse_table := self._tables.get("user_warehouse")) is None:
            return {}
        column = next((warehouse_table.c[name] for name in WAREHOUSE_NAMES if name in warehouse_table.c), None)
        if column is None:
            raise RegistryError(
                f"{database.redact(self._engine.url)}: expected column {' or '.join(WAREHOUSE_NAMES)} in table"
                f" user_warehouse of Texera, found {', '.join(warehouse_table.c.keys())}"
            )
        rows = connection.execute(select(warehouse_table.c.whid, column))
        return {row.whid: row[1] for row in rows}

    def _read_uris(
        self, connection: Connection, execution: int | None
    ) -> defaultdict[int, list[tuple[str, int | None]]]:
        uris: defaultdict[int, list[tuple[str, int | None]]] = defaultdict(list)
        for name, column in (("operator_port_executions", "result"), ("operator_executions", "console_messages")):
            table = self._tables[name]
            uri, size = table.c[f"{column}_uri"], _find_column(table, f"{column}_size")
            query = select(table.c.workflow_execution_id, uri, *([] if size is None else [size])).where(
                uri.is_not(None)
            )
            if execution is not None:
                query = query.where(table.c.workflow_execution_id == execution)
            for number, address, *sizes in connection.execute(query):
                uris[number].append((address, sizes[0] if sizes else None))
        return uris


def _record(row: Any, uris: list[tuple[str, int | None]], warehouse: str | None) -> ExecutionRecord:
    if row["runtime_stats_uri"]:
        uris = [*uris, (row["runtime_stats_uri"], row.get("runtime_stats_size"))]
    tables = [WrittenTable(uri, bytes=size) for address, size in uris for uri in _parse_addresses(address)]
    uri_warehouse = next((table.uri.warehouse for table in tables if table.uri.warehouse), None)
    status = _STATUS.get(row["status"], ExecutionStatus.RUNNING)
    started = _convert_to_utc(row["starting_time"])
    updated = _convert_to_utc(row["last_update_time"]) if row["last_update_time"] else started
    return ExecutionRecord(
        workflow=row["wid"],
        execution=row["eid"],
        computing_unit=None if row.get("cuid") is None else str(row["cuid"]),
        warehouse=warehouse or uri_warehouse,
        submitter=str(row["uid"]),
        status=status,
        started_at=started,
        updated_at=updated,
        finished_at=updated if status.has_ended else None,
        tables=tuple(tables),
    )


def _parse_addresses(text: str) -> list[ResultUri]:
    """Return the addresses in a column. Newer versions store the address of a port, which has a result and a state."""
    try:
        return [ResultUri.parse(text)]
    except BadAddressError:
        pass
    try:
        return [ResultUri.parse(f"{text.rstrip('/')}/{kind}") for kind in ("result", "state")]
    except BadAddressError:
        return []  # results that are not in the catalog


def _convert_to_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _find_column(table: Table, column: str) -> Any:
    return table.c.get(column)
