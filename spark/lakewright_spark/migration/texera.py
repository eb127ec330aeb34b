"""Texera's executions: the warehouse of each user, and the rows and addresses that name it after a cut-over."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.typedef import Identifier
from sqlalchemy import Connection, Engine, MetaData, Table, func, inspect, select, update
from sqlalchemy.exc import IntegrityError

from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import MigrationError
from lakewright_spark.execution_registry import database
from lakewright_spark.execution_registry.texera import SCHEMA, WAREHOUSE_NAMES, TexeraExecutions
from lakewright_spark.migration.ledger import Ledger
from lakewright_spark.result_uris import ResultNamespaces, ResultUri

_USER_WAREHOUSE = re.compile(r"user-(\d+)-(.+)")
"""Names of users' warehouses, as Texera creates them."""
_ADDRESSES = {
    "workflow_executions": ("eid", "runtime_stats_uri"),
    "operator_executions": ("workflow_execution_id", "console_messages_uri"),
    "operator_port_executions": ("workflow_execution_id", "result_uri"),
}
"""By table: the column with the execution, and the column with an address."""
ATTEMPTS = 5
"""Attempts to add a row that another process adds as well."""
_WAREHOUSE_PART = re.compile(r"^vfs:///(?:wh/[^/]+/)?(?=wid/)")
RUNNING_REASON = "its execution is running; run the migration again after its end"
"""Why a table is left out."""
FINISHED_REASON = "it is finished: only the target has it, and the rows of its execution remain as they are"
"""Why an undo leaves out a table."""
UNDONE_REASON = "it is undone: the source has it, and the rows of its execution remain as they are"
"""Why an undo leaves out a table of an execution with a finished table."""
LOST_REASON = (
    "the source lost it before its cut-over, so the other tables of its execution move without it: if the target has a "
    "copy, the copy remains with its fence"
)
"""Why each command leaves out a table."""
PARTLY_FINISHED_REASON = (
    "another table of its execution is finished, and the tables of an execution move together: run --finish"
)
"""Why an undo leaves out a table that is neither finished nor undone."""
_FLAVOR = "local"
"""Flavor of added warehouses. Texera writes no other flavor (texera#7473): `aws` is planned for users' roles that
Texera itself records (texera#6935)."""

ExecutionKey = tuple[int, int]
"""Workflow and execution."""


@dataclass(frozen=True)
class UserExecution:
    """An execution, its user and whether it has ended."""

    user: int
    has_ended: bool


class TexeraRows:
    """Texera's rows about executions and users' warehouses. Methods raise this package's errors.

    `url` names Texera's database with an account that has the rights of docs/guides/migration.md.
    """

    def __init__(self, url: str, config: CatalogConfig, schema: str | None = SCHEMA) -> None:
        """Connect to Texera's database.

        Args:
            url: Address of the database.
            config: Configuration of the target, with a warehouse of each user.
            schema: Schema of the tables. SQLite has none.

        Raises:
            MigrationError: This version of Texera has no warehouses, or a user has several warehouses in the target.
        """
        executions = TexeraExecutions(url, schema)
        records = list(executions.all())
        executions.close()
        self._engine = database.connect(url)
        self._schema = None if self._engine.dialect.name == "sqlite" else schema
        self._tables = _reflect(self._engine, self._schema)
        self._config = config
        self._guard = threading.Lock()  # executions of one user need one row of its warehouse
        self.executions: Mapping[ExecutionKey, UserExecution] = {
            (record.workflow, record.execution): UserExecution(int(record.submitter or 0), record.status.has_ended)
            for record in records
        }
        self._name_column = next(name for name in WAREHOUSE_NAMES if name in self._tables["user_warehouse"].c)
        self.warehouses = self._match_warehouses()
        self.deleted_executions: set[ExecutionKey] = set()
        """Executions of migrated tables that Texera has deleted, as far as this run met them."""

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def choose_warehouse(self, identifier: Identifier, namespaces: ResultNamespaces) -> CatalogWarehouse | str:
        """Return the warehouse of the user whose execution wrote a table, or why the table is left out."""
        key = find_execution(identifier, namespaces)
        execution = self.executions.get(key) if key else None
        if execution is None:
            return "it is no result of an execution in Texera's database"
        if not execution.has_ended:
            return RUNNING_REASON
        warehouse = self.warehouses.get(execution.user)
        if warehouse is None:
            return f"user {execution.user} has no warehouse user-{execution.user}-NAME in --to"
        return warehouse

    def is_running(self, key: ExecutionKey) -> bool:
        """Return whether an execution has not ended. A deleted execution counts as ended."""
        execution = self.executions.get(key)
        return execution is not None and not execution.has_ended

    def add_warehouses(self, selected: Iterable[tuple[ExecutionKey, str]]) -> None:
        """Add the rows that Texera does not have yet of the warehouses of executions: all rows, or none.

        Args:
            selected: Executions, and the warehouses of their users.

        Raises:
            MigrationError: Texera requires a value that is not known.
            RegistryError: Texera's database refuses a row.
        """
        names = {(self.executions[key].user, name) for key, name in selected if key in self.executions}
        warehouses = {warehouse.name: warehouse for warehouse in self._config.warehouses}
        with database.explain_errors(self._engine), self._engine.begin() as connection:
            for user, name in sorted(names):
                if name in warehouses:  # the cut-over of a table fails without its warehouse
                    self._require_row(connection, user, warehouses[name])

    def point(self, key: ExecutionKey, warehouse_name: str, ledger: Ledger) -> None:
        """Let an execution's rows name its user's warehouse, in one transaction. Earlier values are in the ledger.

        Do nothing if Texera has deleted the execution; `deleted_executions` has it then.
        """
        warehouse, execution = self._config.warehouse(warehouse_name), self.executions.get(key)
        with self._guard, database.explain_errors(self._engine), self._engine.begin() as connection:
            current = self._read_rows(connection, key[1]) if execution else None
            if execution is None or current is None:
                self.deleted_executions.add(key)
                return
            previous = ledger.find_execution(key)
            if previous is None:
                previous = current
                # Written before the commit: a killed run then writes the same rows again.
                ledger.record_execution(key, previous)
            whid = self._require_row(connection, execution.user, warehouse)
            changes = [[table, old, replace_warehouse(old, warehouse.name)] for table, old in previous["addresses"]]
            self._update(connection, key[1], whid, changes)

    def restore(self, key: ExecutionKey, warehouse_name: str, ledger: Ledger) -> None:
        """Write the earlier values of an execution's rows. Do nothing if its rows were not changed."""
        previous = ledger.find_execution(key)
        if previous is None:
            return
        if key not in self.executions:
            self.deleted_executions.add(key)
        with database.explain_errors(self._engine), self._engine.begin() as connection:
            changes = [[table, replace_warehouse(old, warehouse_name), old] for table, old in previous["addresses"]]
            self._update(connection, key[1], previous["whid"], changes)
        ledger.forget_execution(key)

    def list_notes(self) -> list[str]:
        """Return a sentence for each execution without rows that this run could have changed."""
        return [
            f"execution {execution} of workflow {workflow} is not in Texera's database: its tables move, and it has no "
            "rows to change"
            for workflow, execution in sorted(self.deleted_executions)
        ]

    def _match_warehouses(self) -> dict[int, CatalogWarehouse]:
        table = self._tables["user_warehouse"]
        with database.explain_errors(self._engine), self._engine.connect() as connection:
            rows = connection.execute(select(table.c.uid, table.c[self._name_column])).all()
        owners: dict[str, int] = {name: user for user, name in rows}
        by_user: defaultdict[int, list[CatalogWarehouse]] = defaultdict(list)
        for warehouse in self._config.warehouses:
            match = _USER_WAREHOUSE.fullmatch(warehouse.name)
            if (user := owners.get(warehouse.name, int(match[1]) if match else None)) is not None:
                by_user[user].append(warehouse)
        for user, warehouses in by_user.items():
            if len(warehouses) > 1:
                names = ", ".join(warehouse.name for warehouse in warehouses)
                raise MigrationError(f"--to: expected one warehouse of user {user}, found {names}")
        return {user: warehouses[0] for user, warehouses in by_user.items()}

    def _read_rows(self, connection: Connection, execution: int) -> dict[str, Any] | None:
        """Return the values of an execution's rows that a migration changes; None if Texera has deleted it."""
        runs = self._tables["workflow_executions"]
        row = connection.execute(select(runs.c.whid).where(runs.c.eid == execution)).one_or_none()
        if row is None:
            return None
        addresses: list[list[str]] = []
        for name, (key_column, column) in _ADDRESSES.items():
            table = self._tables[name]
            query = select(table.c[column]).where(table.c[key_column] == execution, table.c[column].is_not(None))
            addresses += [[name, address] for address in connection.scalars(query).all()]
        return {"whid": row.whid, "addresses": addresses}

    def _update(self, connection: Connection, execution: int, whid: int | None, changes: list[list[str]]) -> None:
        runs = self._tables["workflow_executions"]
        connection.execute(update(runs).where(runs.c.eid == execution).values(whid=whid))
        for name, old, new in changes:
            table, (key_column, column) = self._tables[name], _ADDRESSES[name]
            condition = (table.c[key_column] == execution, table.c[column] == old)
            connection.execute(update(table).where(*condition).values({column: new}))

    def _require_row(self, connection: Connection, user: int, warehouse: CatalogWarehouse) -> int:
        """Return the number of a user's warehouse, and add its row if Texera has none.

        Texera or another migration may add the row, or take its number, at the same time.
        """
        table = self._tables["user_warehouse"]
        query = select(table.c.whid).where(table.c.uid == user, table.c[self._name_column] == warehouse.name)
        for attempt in range(ATTEMPTS):
            if (number := connection.scalar(query)) is not None:
                return number
            try:
                with connection.begin_nested():
                    return self._add_row(connection, table, user, warehouse)
            except IntegrityError:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def _add_row(self, connection: Connection, table: Table, user: int, warehouse: CatalogWarehouse) -> int:
        match = _USER_WAREHOUSE.fullmatch(warehouse.name)
        values: dict[str, Any] = {
            "whid": (connection.scalar(select(func.max(table.c.whid))) or 0) + 1,
            "uid": user,
            "name": match[2] if match else warehouse.name,
            self._name_column: warehouse.name,
            "lakekeeper_warehouse_id": warehouse.id,
            "flavor": _FLAVOR,
            "s3_endpoint": warehouse.s3.get("s3.endpoint"),
            "s3_region": warehouse.s3.get("s3.region") or warehouse.s3.get("client.region"),
        }
        if _generates_key(table):
            del values["whid"]
        row = {name: value for name, value in values.items() if name in table.c and value is not None}
        required_columns = [
            column.name
            for column in table.c
            if not column.nullable and column.server_default is None and column.name not in {*row, "whid"}
        ]
        if required_columns:
            raise MigrationError(
                f"user {user}: expected a row of warehouse {warehouse.name} in Texera's user_warehouse, found none, "
                f"and columns {', '.join(required_columns)} have no known value: create the warehouse in Texera first"
            )
        return connection.execute(table.insert().values(row).returning(table.c.whid)).scalar_one()


def find_execution(identifier: Identifier, namespaces: ResultNamespaces) -> ExecutionKey | None:
    """Return workflow and execution of a result table; None for another table."""
    uri = ResultUri.from_table_name(identifier[-1])
    if uri is None or identifier[:-1] != (namespaces.look_up(uri),):
        return None
    return uri.execution.workflow, uri.execution.execution


def replace_warehouse(address: str, warehouse: str) -> str:
    """Return an address with another warehouse. Addresses of other kinds remain.

    >>> replace_warehouse("vfs:///wid/7/eid/1/runtimestatistics", "user-3-main")
    'vfs:///wh/user-3-main/wid/7/eid/1/runtimestatistics'
    """
    return _WAREHOUSE_PART.sub(f"vfs:///wh/{warehouse}/", address)


def _reflect(engine: Engine, schema: str | None) -> dict[str, Table]:
    with database.explain_errors(engine):
        names = [*_ADDRESSES, "user_warehouse"]
        existing_names = inspect(engine).get_table_names(schema)
        metadata = MetaData(schema=schema)
        metadata.reflect(engine, only=[name for name in names if name in existing_names], resolve_fks=False)
    tables = {name: metadata.tables.get(f"{schema}.{name}" if schema else name) for name in names}
    warehouses, runs = tables["user_warehouse"], tables["workflow_executions"]
    if warehouses is None or runs is None or "whid" not in runs.c:
        raise MigrationError(
            f"{database.redact(engine.url)}: expected a Texera with warehouses, which has table user_warehouse and "
            "column whid of workflow_executions (texera#6931); found none. Upgrade Texera first"
        )
    return {name: table for name, table in tables.items() if table is not None}


def _generates_key(table: Table) -> bool:
    column = table.c.whid
    return column.server_default is not None or column.identity is not None
