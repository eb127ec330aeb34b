"""ExecutionRegistry: a tenant's executions, from their start until their results are dropped."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Engine, Select, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, selectinload

from lakewright_spark.errors import BadAddressError, RegistryError
from lakewright_spark.execution_registry import database
from lakewright_spark.execution_registry.models import ExecutionRow, TableRow
from lakewright_spark.execution_registry.records import ExecutionRecord, ExecutionStatus, WrittenTable
from lakewright_spark.result_uris import ResultUri
from lakewright_spark.times import format_time

_ENDED = tuple(status.value for status in ExecutionStatus if status.has_ended)


class ExecutionRegistry:
    """A tenant's executions and their tables. Methods raise RegistryError only."""

    def __init__(self, tenant: str, url: str | None = None) -> None:
        """Connect to `url`, or to `database.default_url()`. A SQLite file is created and upgraded; Postgres is not."""
        self.tenant = tenant
        self._engine: Engine = database.connect(url or database.default_url())
        if self._engine.dialect.name == "sqlite":
            database.upgrade(self._engine)
        else:
            database.check(self._engine)

    def begin(
        self,
        workflow: int,
        execution: int,
        *,
        computing_unit: str | None,
        warehouse: str,
        submitter: str | None = None,
        stale_before: datetime | None = None,
        now: datetime | None = None,
    ) -> ExecutionRecord:
        """Register an execution that starts. An ended execution may start again under its number.

        Until `record_restart`, the record of such an execution has the warehouse and the tables of its earlier run.

        Raises:
            RegistryError: The execution is running, with a heartbeat since `stale_before`.
        """
        now = now or datetime.now(UTC)
        fresh = {
            "computing_unit": computing_unit,
            "submitter": submitter,
            "status": ExecutionStatus.RUNNING.value,
            "started_at": now,
            "updated_at": now,
            "finished_at": None,
            "replaced_at": None,
            "error": None,
        }
        try:
            with self._session() as session:
                row = session.scalar(self._select_row(workflow, execution).with_for_update())
                if row is None:
                    key = {"tenant": self.tenant, "workflow": workflow, "execution": execution}
                    row = ExecutionRow(**key, warehouse=warehouse, **fresh)
                    session.add(row)
                else:
                    alive = stale_before is None or row.updated_at >= stale_before
                    if row.status not in _ENDED and alive:
                        raise self._build_running_error(workflow, execution, row.updated_at)
                    for name, value in fresh.items():
                        setattr(row, name, value)
                session.flush()
                return _record(row)
        except RegistryError as error:
            if isinstance(error.__cause__, IntegrityError):  # another process registered it at the same time
                raise self._build_running_error(workflow, execution, now) from None
            raise

    def record_restart(self, workflow: int, execution: int, warehouse: str) -> ExecutionRecord:
        """Record that the tables of the earlier run are dropped, and that the execution writes to this warehouse."""
        with self._session() as session:
            row = self._load_row(session, workflow, execution)
            row.tables, row.warehouse = [], warehouse
            session.flush()
            return _record(row)

    def record_heartbeat(self, workflow: int, execution: int, now: datetime | None = None) -> None:
        """Record a heartbeat."""
        with self._session() as session:
            self._load_row(session, workflow, execution).updated_at = now or datetime.now(UTC)

    def record_tables(self, workflow: int, execution: int, tables: Iterable[WrittenTable]) -> None:
        """Record the tables of an execution in place of the earlier tables."""
        with self._session() as session:
            row = self._load_row(session, workflow, execution)
            existing_tables = {table.uri: table for table in row.tables}
            row.tables = []
            for written in tables:
                table = existing_tables.get(str(written.uri)) or TableRow(uri=str(written.uri))
                table.rows, table.bytes = written.rows, written.bytes
                row.tables.append(table)

    def finish(
        self,
        workflow: int,
        execution: int,
        status: ExecutionStatus,
        *,
        error: str | None = None,
        now: datetime | None = None,
    ) -> None:
        """Record the end of an execution."""
        with self._session() as session:
            row = self._load_row(session, workflow, execution)
            row.status, row.error = status.value, error
            row.finished_at = row.updated_at = now or datetime.now(UTC)

    def mark_replaced(self, workflow: int, execution: int, now: datetime | None = None) -> None:
        """Record that a later execution replaced it."""
        with self._session() as session:
            self._load_row(session, workflow, execution).replaced_at = now or datetime.now(UTC)

    def remove(self, record: ExecutionRecord) -> bool:
        """Remove an execution. Return False if its row has changed since the record was read, and then keep it.

        Drop its tables first, since their record is removed as well.
        """
        with self._session() as session:
            row = session.scalar(self._select_row(record.workflow, record.execution).with_for_update())
            if row is None or _record(row) != record:
                return False
            session.delete(row)
            return True

    def is_current(self, record: ExecutionRecord) -> bool:
        """Return whether the row is as it was when the record was read: the execution did not start again since."""
        return self.find(record.workflow, record.execution) == record

    def find(self, workflow: int, execution: int) -> ExecutionRecord | None:
        """Return an execution; None if it is not known."""
        with self._session() as session:
            row = session.scalar(self._select_row(workflow, execution))
            return row and _record(row)

    def knows(self, workflow: int, execution: int) -> bool:
        """Return whether the execution is known."""
        return self.find(workflow, execution) is not None

    def find_warehouse(self, workflow: int, execution: int) -> str | None:
        """Return the warehouse that an execution wrote to; None if it is not known."""
        record = self.find(workflow, execution)
        return record and record.warehouse

    def list_previous(self, workflow: int, execution: int, computing_unit: str | None) -> list[ExecutionRecord]:
        """Return the other executions of this workflow on this unit that were not replaced yet."""
        return self._select(
            ExecutionRow.workflow == workflow,
            ExecutionRow.execution != execution,
            ExecutionRow.computing_unit == computing_unit,
            ExecutionRow.replaced_at.is_(None),
        )

    def list_expired(self, before: datetime) -> list[ExecutionRecord]:
        """Return the executions whose end or last heartbeat is before an instant."""
        return self._select(
            or_(
                ExecutionRow.finished_at < before,
                ExecutionRow.finished_at.is_(None) & (ExecutionRow.updated_at < before),
            )
        )

    def all(self) -> Iterator[ExecutionRecord]:
        """Return every execution of the tenant, oldest first."""
        return iter(self._select())

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _select(self, *conditions: ColumnElement[bool]) -> list[ExecutionRecord]:
        query = select(ExecutionRow).where(ExecutionRow.tenant == self.tenant, *conditions)
        with self._session() as session:
            rows = session.scalars(query.options(selectinload(ExecutionRow.tables)).order_by(ExecutionRow.id))
            return [_record(row) for row in rows]

    def _select_row(self, workflow: int, execution: int) -> Select[ExecutionRow]:
        return select(ExecutionRow).where(
            ExecutionRow.tenant == self.tenant, ExecutionRow.workflow == workflow, ExecutionRow.execution == execution
        )

    def _load_row(self, session: Session, workflow: int, execution: int) -> ExecutionRow:
        row = session.scalar(self._select_row(workflow, execution).with_for_update())
        if row is None:
            raise RegistryError(f"tenant {self.tenant} has no execution {execution} of workflow {workflow}")
        return row

    def _build_running_error(self, workflow: int, execution: int, since: datetime) -> RegistryError:
        return RegistryError(
            f"execution {execution} of workflow {workflow} of tenant {self.tenant} is running (last heartbeat "
            f"{format_time(since)}): wait for its end, or use another execution number"
        )

    @contextmanager
    def _session(self) -> Generator[Session, None, None]:
        with database.explain_errors(self._engine), Session(self._engine) as session, session.begin():
            yield session


def _record(row: ExecutionRow) -> ExecutionRecord:
    tables: list[WrittenTable] = []
    for table in row.tables:
        try:
            tables.append(WrittenTable(ResultUri.parse(table.uri), table.rows, table.bytes))
        except BadAddressError as error:
            raise RegistryError(f"execution {row.execution} of workflow {row.workflow}: {error}") from None
    return ExecutionRecord(
        workflow=row.workflow,
        execution=row.execution,
        computing_unit=row.computing_unit,
        warehouse=row.warehouse,
        submitter=row.submitter,
        status=ExecutionStatus(row.status),
        started_at=row.started_at,
        updated_at=row.updated_at,
        finished_at=row.finished_at,
        replaced_at=row.replaced_at,
        error=row.error,
        tables=tuple(tables),
    )
