"""Launch: check the request, register the execution, run the script, and record the tables that it wrote."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import (
    ConfigMissingError,
    DeadlineError,
    JobFailedError,
    LakewrightSparkError,
    RegistryError,
    ScriptFailedError,
)
from lakewright_spark.execution_registry.database import VARIABLE as REGISTRY
from lakewright_spark.execution_registry.records import ExecutionRecord, ExecutionStatus, WrittenTable
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS
from lakewright_spark.result_uris import ResultNamespaces
from lakewright_spark.results.cleanup import Cleaner, SweepReport, build_sweep_error
from lakewright_spark.results.tables import ResultTables, list_written_tables
from lakewright_spark.results.writer import ResultWriter
from lakewright_spark.run.child import Child
from lakewright_spark.run.console import Console
from lakewright_spark.run.facts import SECRETS_VARIABLE, ExecutionFacts
from lakewright_spark.run.heartbeat import SignsOfLife
from lakewright_spark.session.cluster import cluster_properties, spark_defaults
from lakewright_spark.session.secrets import check_before_start, check_executors
from lakewright_spark.times import format_time
from lakewright_spark.unavailable_warehouses import UnavailableWarehouses

HEARTBEAT_SECONDS = 30.0
FINISH_ATTEMPTS = 5
"""To enter the end of a run in the registry, with 1, 2, 4 and 8 seconds between them."""
STALE = timedelta(minutes=5)
"""An execution without a heartbeat for this long counts as dead."""

CONSOLE = "script"
"""Operator ID of the script's console messages."""


RETURN_MEMORY: Mapping[str, str] = {"MIMALLOC_PURGE_DELAY": "0"}
"""Lets PyArrow's allocator return freed memory at once. A writer of results took 40 MiB more by default."""


@dataclass
class Launch:
    """One run of a script. `registry` is None in a computing unit."""

    config: CatalogConfig
    facts: ExecutionFacts
    script: Path
    arguments: Sequence[str] = ()
    registry: ExecutionRegistry | None = None
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces.from_environment)
    note: Callable[[str], None] = lambda _: None
    """Called with each sentence about something that was left out, or that failed without ending the run."""

    def run(self) -> list[WrittenTable]:
        """Run it to its end; the tables that it wrote. Raises this package's errors; before it starts, nothing changed.

        ScriptFailedError if the script ended with an error, DeadlineError if it was ended for its deadline,
        JobFailedError if a signal ended this process.
        """
        self._check()
        cleaner = Cleaner(self.config, self.registry, self.namespaces) if self.registry else None
        record = self._register(cleaner)
        status, problem = ExecutionStatus.COMPLETED, None
        try:
            self._run_script()
        except _EndedError:
            status, problem = ExecutionStatus.KILLED, JobFailedError(f"{_describe(self.facts)} was ended from outside")
        except DeadlineError as error:
            status, problem = ExecutionStatus.KILLED, error
        except LakewrightSparkError as error:
            status, problem = ExecutionStatus.FAILED, error
        written: list[WrittenTable] = []
        try:
            # Record the tables in any case, since clean-up needs them.
            written = self._list_written_tables()
        except LakewrightSparkError as error:
            if problem is None:
                status, problem = ExecutionStatus.FAILED, error
        if self.registry and record:
            try:
                self._finish(self.registry, record, status, problem, written)
            except RegistryError as error:
                if problem is None:
                    raise
                self.note(f"the end of {record} is not in the registry: {error}")
        if problem:
            raise problem
        return written

    def _finish(
        self,
        registry: ExecutionRegistry,
        record: ExecutionRecord,
        status: ExecutionStatus,
        problem: LakewrightSparkError | None,
        written: list[WrittenTable],
    ) -> None:
        """Enter its end. Raises RegistryError after FINISH_ATTEMPTS."""
        for attempt in range(FINISH_ATTEMPTS):
            try:
                if written:
                    registry.record_tables(record.workflow, record.execution, written)
                reason = str(problem) if problem else None
                registry.finish(record.workflow, record.execution, status, error=reason)
            except RegistryError:
                if attempt == FINISH_ATTEMPTS - 1:
                    raise
                time.sleep(2**attempt)
            else:
                return

    def _check(self) -> None:
        if not self.script.is_file():
            raise ConfigMissingError(f"{self.script}: expected a PySpark script")
        if self.facts.deadline and self.facts.deadline <= datetime.now(UTC):
            raise DeadlineError(f"the deadline of {_describe(self.facts)} has passed before it started")
        if self.facts.remote is None:
            # A computing unit renews its own credential; for other servers, the session checks.
            check_before_start(self.config, self.facts.deadline)
        if self.facts.master:
            cluster_properties(self.facts.master, self.facts.conf)
            all_properties = {**spark_defaults(), **self.facts.conf}
            check_executors(self.facts.master, self.config.spark_secrets(), all_properties)
        CATALOGS.get(self.config, self.facts.warehouse)  # checks that the catalog responds and accepts the identity

    def _register(self, cleaner: Cleaner | None) -> ExecutionRecord | None:
        facts = self.facts
        if not self.registry or not cleaner:
            return None
        stale = datetime.now(UTC) - STALE
        earlier_run = self.registry.find(facts.workflow, facts.execution)
        record = self.registry.begin(
            facts.workflow,
            facts.execution,
            computing_unit=facts.computing_unit,
            warehouse=facts.warehouse,
            submitter=facts.submitter,
            stale_before=stale,
        )
        try:
            if earlier_run:
                record = cleaner.restart(earlier_run, facts.warehouse)
            swept = cleaner.replace_previous(record, stale)
            if problem := build_sweep_error(swept):
                raise problem
        except LakewrightSparkError as error:
            self.registry.finish(facts.workflow, facts.execution, ExecutionStatus.FAILED, error=str(error))
            raise
        self._note_what_stays(cleaner.unavailable, swept)
        return record

    def _note_what_stays(self, unavailable: UnavailableWarehouses, swept: SweepReport) -> None:
        if sentence := unavailable.note():
            self.note(sentence)
        for error in unavailable.failed.values():
            self.note(f"earlier results remain: {error}")
        for record, reason in swept.postponed:
            self.note(f"the results of {record} remain: {reason}")

    def _run_script(self) -> None:
        environment = {key: value for key, value in os.environ.items() if key not in (REGISTRY, SECRETS_VARIABLE)}
        environment = {**RETURN_MEMORY, **environment}
        environment["LAKEWRIGHT_CATALOG"] = self.config.to_json()
        writer = ResultWriter(self.config, self.facts.warehouse, self.namespaces)
        console = Console(writer, self.facts.addresses.console_messages(CONSOLE))
        signs = self._signs_of_life()
        child: Child | None = None
        try:
            with ExitStack() as stack:
                folder = stack.enter_context(TemporaryDirectory(prefix="lakewright-run-"))
                environment |= self.facts.to_environment(Path(folder))
                ended = stack.enter_context(_signals())
                if signs:
                    stack.enter_context(signs)
                child = Child(self.script, self.arguments, environment, console.line)
                stack.callback(child.end)
                code = self._supervise(child, ended)
        finally:
            # Also after a failure, when the last lines matter most.
            unkept = console.close(is_complete=child is None or child.is_output_passed_on)
            for sentence in [*unkept, *(signs.failures() if signs else [])]:
                self.note(sentence)
        if code:
            raise ScriptFailedError(f"{_describe(self.facts)}: {self.script} ended with exit code {code}")

    def _signs_of_life(self) -> SignsOfLife | None:
        if self.registry is None:
            return None
        return SignsOfLife(self.registry, self.facts.workflow, self.facts.execution, every=HEARTBEAT_SECONDS)

    def _supervise(self, child: Child, ended: threading.Event) -> int:
        while True:
            if (code := child.wait(0.5)) is not None:
                return code
            now = datetime.now(UTC)
            if ended.is_set():
                raise _EndedError
            if self.facts.deadline and now >= self.facts.deadline:
                raise DeadlineError(
                    f"{_describe(self.facts)} was ended at its deadline, {format_time(self.facts.deadline)}"
                )

    def _list_written_tables(self) -> list[WrittenTable]:
        tables = ResultTables(self.config, self.facts.warehouse, self.namespaces)
        return list_written_tables(tables, self.facts.workflow, self.facts.execution)


class _EndedError(LakewrightSparkError):
    """A signal asked this process to stop."""


@contextmanager
def _signals() -> Generator[threading.Event, None, None]:
    """Yield an event that SIGTERM, SIGINT and SIGHUP set. Only the main thread can receive signals.

    An ignored SIGHUP, as under `nohup`, remains ignored.
    """
    ended = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield ended
        return

    def end(*_: object) -> None:
        ended.set()

    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _describe(facts: ExecutionFacts) -> str:
    return f"execution {facts.execution} of workflow {facts.workflow}"
