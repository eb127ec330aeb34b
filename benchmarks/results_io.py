"""Results through our writer and reader, against PyIceberg alone; pages of many files; memory of a long stream."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.result_uris import Execution, Port, ResultUri
from lakewright_spark.results.file_index import plan
from lakewright_spark.results.frames import ResultFrames
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.tables import PROPERTIES
from lakewright_spark.results.writer import CommitInterval, ResultWriter
from lakewright_spark.run.launch import RETURN_MEMORY
from lakewright_spark.session.builder import spark_session
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan

from benchmarks.ground import Ground
from benchmarks.measure import Row, measure_seconds

TIMES = 9
COMMITS, ROWS_A_COMMIT = 10, 100_000
FILES, FILES_A_COMMIT, ROWS_A_FILE = 1000, 20, 4096
PAGE = 20_000
LAST_PAGE, ROWS_OF_PAGED_FILE = 1000, 1_000_000
STREAM_ROWS = int(os.environ.get("LAKEWRIGHT_BENCH_STREAM_ROWS", "10000000"))
TARGET, PAGE_TARGET, MEMORY_TARGET = 1.1, 1.5, 300.0


def measure(ground: Ground) -> list[Row]:
    bench = Bench(ground.catalog)
    return [
        *bench.measure_writing(),
        *bench.measure_reading(),
        *bench.measure_paging(),
        *bench.measure_last_pages(),
        _memory(ground.catalog),
    ]


def batch(rows: int, start: int = 0) -> pa.RecordBatch:
    """Yield rows of about 40 bytes: a number, a category, a text and a measurement."""
    numbers = range(start, start + rows)
    return pa.record_batch(
        {
            "number": pa.array(numbers, pa.int64()),
            "category": pa.array([number % 97 for number in numbers], pa.int32()),
            "text": pa.array([f"row {number}" for number in numbers]),
            "value": pa.array([number * 0.5 for number in numbers]),
        }
    )


@dataclass
class Bench:
    """The compared clients on one warehouse; `plain` is PyIceberg's catalog alone."""

    config: CatalogConfig
    plain: Catalog = field(init=False)
    execution: int = 0

    def __post_init__(self) -> None:
        self.warehouse = self.config.warehouses[0].name
        self.plain = open_catalog(self.config, self.warehouse)
        self.writer = ResultWriter(
            self.config, self.warehouse, commit=CommitInterval(rows=ROWS_A_COMMIT, bytes=None, seconds=None)
        )
        self.reader = ResultReader(self.config, self.warehouse)
        self.parts = [batch(ROWS_A_COMMIT, start=number * ROWS_A_COMMIT) for number in range(COMMITS)]

    def new(self) -> ResultUri:
        self.execution += 1
        return Execution(900, self.execution).result(Port("Bench-1"))

    def measure_writing(self) -> Iterator[Row]:
        """Write the same rows in the same number of commits, to tables with the same properties."""

        def ours() -> None:
            with self.writer.stream(self.new(), self.parts[0].schema) as stream:
                for part in self.parts:
                    stream.append_batch(part)

        def write_plainly() -> None:
            identifier = self.writer.tables.identifier(self.new())
            table = self.plain.create_table(identifier, self.parts[0].schema, properties=dict(PROPERTIES))
            for part in self.parts:
                table.append(pa.Table.from_batches([part]))

        note = f"{COMMITS} commits of {ROWS_A_COMMIT:,} rows, by batches"
        yield _compare("result writer", ours, write_plainly, TARGET, note)

    def measure_reading(self) -> Iterator[Row]:
        uri = self.new()
        with self.writer.stream(uri, self.parts[0].schema) as stream:
            for part in self.parts:
                stream.append_batch(part)
        identifier = self.writer.tables.identifier(uri)
        note = f"{COMMITS} files, {COMMITS * ROWS_A_COMMIT:,} rows; each time from the catalog on"
        yield _compare(
            "result reader, whole",
            lambda: ResultReader(self.config, self.warehouse).read_all(uri),
            lambda: self.plain.load_table(identifier).scan().to_arrow(),
            TARGET,
            note,
        )

    def measure_paging(self) -> Iterator[Row]:
        """Compare a page with reading only the files that contain it."""
        uri = self.new()
        one = batch(ROWS_A_FILE)
        table = self.writer.tables.create_or_load(uri, one.schema)
        with table.transaction() as change:
            change.set_properties({"write.target-file-size-bytes": str(one.nbytes)})
        for _ in range(FILES // FILES_A_COMMIT):
            table.append(pa.Table.from_batches([one] * FILES_A_COMMIT))
        files: list[object] = []
        by_hand = measure_seconds(lambda: files.extend(table.scan().plan_files()))
        first = measure_seconds(lambda: self.reader.count(uri))
        yield Row("range(): first planning", first, by_hand, None, note=f"{len(files):,} files; afterwards it is kept")
        offset = FILES * ROWS_A_FILE // 2 + 100
        tasks, _ = plan(table).page(offset, PAGE)
        scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        note = f"{PAGE:,} rows out of {FILES * ROWS_A_FILE:,}: {len(tasks)} of {len(files):,} files"
        yield _compare(
            "range(): a page",
            lambda: self.reader.range(uri, offset, PAGE),
            lambda: scan.to_table(tasks),
            PAGE_TARGET,
            note,
        )

    def measure_last_pages(self) -> Iterator[Row]:
        """Compare the last page of a file of each writer with reading the row group that holds it."""
        numbers = pa.array(range(ROWS_OF_PAGED_FILE), pa.int64())
        of_pyiceberg, of_spark = self.new(), self.new()
        self.writer.write(of_pyiceberg, pa.table({"number": numbers, "text": numbers.cast(pa.string())}))
        spark = spark_session(self.config, "benchmark")
        try:
            frame = spark.range(0, ROWS_OF_PAGED_FILE, numPartitions=1).selectExpr("id", "string(id) AS text")
            ResultFrames(spark, self.config, self.warehouse).write(of_spark, frame)
        finally:
            spark.stop()
        for writer, uri in (("PyIceberg", of_pyiceberg), ("Spark", of_spark)):
            yield self._compare_last_page(writer, uri)

    def _compare_last_page(self, writer: str, uri: ResultUri) -> Row:
        (task,) = self.reader.table(uri).scan().plan_files()
        groups: list[int] = []

        def read_last_group() -> None:
            with self.reader.table(uri).io.new_input(task.file.file_path).open() as stream:
                file: Any = pq.ParquetFile(stream, pre_buffer=True)
                groups[:] = [file.num_row_groups, file.read_row_group(file.num_row_groups - 1).num_rows]

        def read_last_page() -> None:
            page = self.reader.range(uri, ROWS_OF_PAGED_FILE - LAST_PAGE, LAST_PAGE)
            assert page.num_rows == LAST_PAGE

        read_last_group()
        number, rows = groups
        note = f"{LAST_PAGE:,} of {ROWS_OF_PAGED_FILE:,} rows"
        reference = f"load the table, read the last of {number} row groups ({rows:,} rows) with PyArrow"
        return _compare(
            f"last page, file of {writer}", read_last_page, read_last_group, PAGE_TARGET, note, reference_name=reference
        )


def _compare(
    name: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    target: float,
    note: str,
    *,
    reference_name: str = "PyIceberg alone",
) -> Row:
    """Return the medians of both, measured alternately after a warm-up of each."""
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    actions = {"ours": ours, "theirs": theirs}
    for number in range(TIMES + 1):
        for side in sorted(actions, reverse=bool(number % 2)):
            taken = measure_seconds(actions[side])
            if number:
                seconds[side].append(taken)
    mine, reference = (statistics.median(seconds[side]) for side in ("ours", "theirs"))
    return Row(name, mine, reference, target, note=f"{note}; reference: {reference_name}; median of {TIMES}")


def _memory(config: CatalogConfig) -> Row:
    """Return the peak memory of a process that writes rows one by one, and reads them by batches."""
    command = [sys.executable, "-m", "benchmarks.streamed_rows", str(STREAM_ROWS)]
    environment = {**os.environ, **RETURN_MEMORY}  # as `lakewright-spark run` starts scripts
    finished = subprocess.run(
        command, input=config.to_json(), env=environment, capture_output=True, text=True, check=True
    )
    seconds, mebibytes = map(float, finished.stdout.split()[-2:])
    note = f"{STREAM_ROWS:,} rows in {seconds:.0f} s; peak of the process; reference: the limit"
    return Row("rows written and read, memory", mebibytes, MEMORY_TARGET, 1.0, unit="MiB", note=note)
