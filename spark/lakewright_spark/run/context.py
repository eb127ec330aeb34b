"""The execution of a script: its Spark session, and its results.

from lakewright_spark import current

run = current()
run.write("Clean-1", run.spark.table("raw.flights").dropna())
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.loading import load_config
from lakewright_spark.result_uris import Execution, Port, ResultNamespaces, ResultUri
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.schemas import RUNTIME_STATISTICS, Status
from lakewright_spark.results.tables import ResultTables, measure_size
from lakewright_spark.results.writer import CommitInterval, ResultStream, ResultWriter
from lakewright_spark.run.facts import ExecutionFacts
from lakewright_spark.run.permissions import check_shared
from lakewright_spark.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class ExecutionRun:
    """The execution of this process. Its session starts on first use."""

    facts: ExecutionFacts
    config: CatalogConfig
    namespaces: ResultNamespaces = field(default_factory=ResultNamespaces.from_environment)
    _statistics: list[dict[str, object]] = field(default_factory=list[dict[str, object]], init=False, repr=False)

    @property
    def addresses(self) -> Execution:
        """Addresses of the execution's results."""
        return self.facts.addresses

    @cached_property
    def spark(self) -> SparkSession:
        """Session with every warehouse of the computing unit; the run's warehouse is the default catalog."""
        from lakewright_spark.session.builder import Workload, spark_session  # noqa: PLC0415  # scripts without Spark need no PySpark

        facts = self.facts
        name = f"workflow-{facts.workflow}-execution-{facts.execution}"
        properties = {"spark.sql.defaultCatalog": facts.warehouse, **facts.conf}
        return spark_session(
            self.config,
            name,
            master=facts.master,
            remote=facts.remote,
            deadline=facts.deadline,
            properties=properties,
            workload=Workload.SCRIPT,
        )

    def write(self, operator: str | Port, frame: DataFrame, *, input_rows: int = 0) -> ResultUri:
        """Write a frame as the result of an operator or of one of its ports, and return its address.

        Args:
            operator: Operator ID, or a port.
            frame: The rows.
            input_rows: Number of input rows, for the runtime statistics.
        """
        from lakewright_spark.results.frames import ResultFrames  # noqa: PLC0415  # as above

        uri, began = self._result(operator), time.monotonic_ns()
        ResultFrames(self.spark, self.config, self.facts.warehouse, self.namespaces).write(uri, frame)
        self._count(operator, uri, time.monotonic_ns() - began, input_rows)
        return uri

    @contextmanager
    def stream(
        self, operator: str | Port, schema: pa.Schema, *, commit: CommitInterval | None = None
    ) -> Generator[ResultStream, None, None]:
        """Write an operator's result row by row, visible to readers as it grows. No session is needed."""
        uri, began = self._result(operator), time.monotonic_ns()
        with self._writer(commit).stream(uri, schema) as stream:
            yield stream
        self._count(operator, uri, time.monotonic_ns() - began, 0)

    @contextmanager
    def state(self, port: Port, schema: pa.Schema) -> Generator[ResultStream, None, None]:
        """Append to the state of a loop. The table is created once and kept."""
        with self._writer(None).stream(self.addresses.state(port), schema, reuse=True) as stream:
            yield stream

    def read(self, uri: ResultUri) -> DataFrame:
        """Return a result as a frame, of this or another execution in a warehouse of the unit.

        Raises:
            WarehouseRefusedError: The table is in another owner's warehouse and has the policy `sharing: false`.
        """
        from lakewright_spark.results.frames import ResultFrames  # noqa: PLC0415  # as above

        warehouse = ResultReader(self.config, self.facts.warehouse, self.namespaces).find_warehouse(uri)
        tables = ResultTables(self.config, warehouse, self.namespaces)
        namespace, name = tables.identifier(uri)
        table = TableIdentifier(warehouse, (namespace,), name)
        check_shared(self.config, table, tables.load(uri).properties, self.facts.submitter)
        return ResultFrames(self.spark, self.config, warehouse, self.namespaces).read(uri)

    def close(self) -> None:
        """Write the runtime statistics, a row for each result, and stop the session."""
        try:
            if self._statistics:
                self._writer(None).write_rows(self.addresses.runtime_statistics(), RUNTIME_STATISTICS, self._statistics)
        finally:
            if "spark" in self.__dict__:
                self.spark.stop()

    def _result(self, operator: str | Port) -> ResultUri:
        return self.addresses.result(operator if isinstance(operator, Port) else Port(operator))

    def _writer(self, commit: CommitInterval | None) -> ResultWriter:
        return ResultWriter(self.config, self.facts.warehouse, self.namespaces, commit or CommitInterval())

    def _count(self, operator: str | Port, uri: ResultUri, nanoseconds: int, input_rows: int) -> None:
        rows, size = measure_size(ResultTables(self.config, self.facts.warehouse, self.namespaces).load(uri))
        local = "spark" in self.__dict__ and self.facts.remote is None
        self._statistics.append(
            {
                "operatorId": operator.operator if isinstance(operator, Port) else operator,
                "time": datetime.now(UTC).replace(tzinfo=None),
                "inputTupleCnt": input_rows,
                "inputTupleSize": 0,
                "outputTupleCnt": rows,
                "outputTupleSize": size,
                "dataProcessingTime": nanoseconds,
                "controlProcessingTime": 0,
                "idleTime": 0,
                "numWorkers": self.spark.sparkContext.defaultParallelism if local else 1,
                "status": int(Status.COMPLETED),
            }
        )


@cache
def current() -> ExecutionRun:
    """Return the execution of this process.

    Raises:
        ConfigMissingError: `lakewright-spark run` did not start this process.
    """
    return ExecutionRun(ExecutionFacts.from_environment(), load_config())
