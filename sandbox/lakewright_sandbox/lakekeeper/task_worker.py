"""The background worker: runs due soft deletions and purges, one after the other."""

from __future__ import annotations

import logging
import threading

from sqlalchemy import select

from lakewright_sandbox.lakekeeper.authz.store import forget_tabulars
from lakewright_sandbox.lakekeeper.database.lookups import find_tabular_by_id
from lakewright_sandbox.lakekeeper.database.models import TaskRow, WarehouseRow
from lakewright_sandbox.lakekeeper.management.statistics import HOUR, take_all_statistics
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper
from lakewright_sandbox.lakekeeper.server.task_queue import PURGE, SOFT_DELETION, schedule_purge
from lakewright_sandbox.lakekeeper.storage.access import AnyStorage

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
RETRY_SECONDS = 2


class TaskWorker:
    """A thread that polls the task table. `run_due` runs one round at once."""

    def __init__(self, server: Lakekeeper) -> None:
        """Work on a server's tasks."""
        self._server = server
        self._stopping = threading.Event()
        self._counted_hour: int | None = None
        self._thread = threading.Thread(target=self._run, name="lakekeeper-tasks", daemon=True)

    def start(self) -> None:
        """Restart interrupted tasks, and start the thread."""
        self._reset_interrupted()
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopping.set()
        self._thread.join(timeout=10)

    def run_due(self) -> int:
        """Run every due task and take the statistics of a new hour. Return the number of tasks."""
        self._take_statistics()
        done = 0
        while not self._stopping.is_set() and (task := self._take()) is not None:
            self._run_task(task)
            done += 1
        return done

    def _run(self) -> None:
        while not self._stopping.wait(self._server.settings.task_poll_seconds):
            try:
                self.run_due()
            except Exception:
                log.exception("a round of background tasks failed")

    def _reset_interrupted(self) -> None:
        """Reschedule tasks that a killed server left running."""
        with self._server.database.write() as session:
            for task in session.scalars(select(TaskRow).where(TaskRow.status.in_(("RUNNING", "STOPPING")))):
                task.status = "SCHEDULED"

    def _take_statistics(self) -> None:
        now = self._server.clock.now()
        if now // HOUR != self._counted_hour:
            with self._server.database.write() as session:
                take_all_statistics(session, now)
            self._counted_hour = now // HOUR

    def _take(self) -> TaskRow | None:
        now = self._server.clock.now()
        query = (
            select(TaskRow)
            .where(TaskRow.status == "SCHEDULED", TaskRow.scheduled_for <= now)
            .order_by(TaskRow.scheduled_for)
        )
        with self._server.database.read() as session:
            if session.scalars(query.limit(1)).first() is None:
                return None
        with self._server.database.write() as session:
            task = session.scalars(query.limit(1).with_for_update(skip_locked=True)).first()
            if task is not None:
                task.status, task.picked_up_at, task.attempt = "RUNNING", now, task.attempt + 1
                task.updated_at = now
        return task

    def _run_task(self, task: TaskRow) -> None:
        try:
            if task.queue == SOFT_DELETION:
                self._expire(task)
            elif task.queue == PURGE:
                self._purge(task)
        except ApiError as error:
            self._record_failure(task, error)
        else:
            self._finish(task, "SUCCESS", None)

    def _expire(self, task: TaskRow) -> None:
        with self._server.database.write() as session:
            tabular = find_tabular_by_id(session, task.warehouse_id, task.entity_id)
            warehouse = session.get(WarehouseRow, task.warehouse_id)
            if tabular is None or warehouse is None or tabular.deleted_at is None:
                return
            if task.payload.get("purge"):
                schedule_purge(self._server, session, warehouse, tabular)
            forget_tabulars(session, [tabular])
            session.delete(tabular)

    def _purge(self, task: TaskRow) -> None:
        with self._server.database.read() as session:
            warehouse = session.get(WarehouseRow, task.warehouse_id)
            storage: AnyStorage | None = (
                self._server.open_storage(session, warehouse) if warehouse is not None else None
            )
        if storage is not None:
            self._server.access.objects(storage).delete_under(task.payload["location"])

    def _record_failure(self, task: TaskRow, error: ApiError) -> None:
        log.warning("task %s (%s of %s) failed: %s", task.id, task.queue, ".".join(task.entity_name), error.message)
        if task.attempt >= MAX_ATTEMPTS:
            self._finish(task, "FAILED", error.message)
            return
        with self._server.database.write() as session:
            row = session.get(TaskRow, task.id)
            if row is not None:
                row.status, row.message = "SCHEDULED", error.message
                row.scheduled_for = self._server.clock.now() + RETRY_SECONDS * 1_000_000

    def _finish(self, task: TaskRow, status: str, message: str | None) -> None:
        with self._server.database.write() as session:
            row = session.get(TaskRow, task.id)
            if row is not None:
                row.status, row.message, row.updated_at = status, message, self._server.clock.now()
