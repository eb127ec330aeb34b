"""Memory and commits of `maintain` and of a reader in a catalog of 10,000 tables, which is generated in a folder.

LAKEWRIGHT_BENCH_MANY_TABLES is the number of tables (2,000 by default, for a run of a few minutes).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pyarrow as pa
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.maintenance.jobs.statistics import COMMITS, PARTITIONS, TABLES
from lakewright_spark.policies.model import JOBS
from lakewright_spark.pyiceberg_client.catalog_cache import CatalogCache
from lakewright_spark.result_uris import Execution, Port, ResultUri
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.writer import ResultWriter
from lakewright_spark.scheduler.recovery import close_abandoned_runs
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.histories import load_histories
from lakewright_spark.scheduler.run_log.job_runs import HISTORY_WINDOW
from lakewright_spark.scheduler.run_log.ops_buffer import OpsBuffer
from lakewright_spark.scheduler.run_log.ops_tables import create_if_missing
from pyiceberg.catalog.sql import SqlCatalog

from benchmarks.ground import Ground
from benchmarks.measure import Row, measure_seconds, read_peak_mib

MANY = int(os.environ.get("LAKEWRIGHT_BENCH_MANY_TABLES", "2000"))
SAMPLE = timedelta(days=3)
"""Days that are read the former way; their cost is scaled to sixty days."""
ROWS, PAGE, COUNTED = 1_000_000, 1000, 400
MEMORY_TARGET, COMMITS_TARGET, PAGE_TARGET, KEPT_TARGET = 0.1, 0.01, 3.0, 0.4
CONFIG = CatalogConfig(
    kind="jdbc",
    tenant="bench",
    uri="sqlite:////unused.db",
    warehouses=[CatalogWarehouse(name="many", location="s3://unused/many")],
)


def measure(ground: Ground) -> list[Row]:
    """Measure in a separate catalog without a server."""
    del ground
    with tempfile.TemporaryDirectory(prefix="lakewright-many-") as folder:
        catalog = local_catalog(Path(folder))
        _generate_runs(catalog)
        ours, former = (_growth(folder, way) for way in ("ours", "former"))
        runs = f"{MANY:,} tables, {len(JOBS)} jobs a day, {HISTORY_WINDOW.days} days"
        return [
            Row(
                "start of maintain, memory",
                ours,
                former * (HISTORY_WINDOW / SAMPLE),
                MEMORY_TARGET,
                unit="MiB",
                note=f"{runs}; beyond the imports; reference: all runs as records, scaled from {SAMPLE.days} days",
            ),
            Row(
                "statistics, commits",
                _commits(catalog),
                3 * MANY,
                COMMITS_TARGET,
                unit="commits",
                note=f"{MANY:,} tables, one flush a thousand of them; reference: three commits a table",
            ),
            *_measure_reading(catalog),
        ]


def local_catalog(folder: Path) -> SqlCatalog:
    return SqlCatalog("many", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/files")


def _generate_runs(catalog: SqlCatalog) -> None:
    """Fill `ops.job_runs` with a row for each run that was queued, and one for each that succeeded."""
    table = create_if_missing(catalog, job_runs.NAME, job_runs.SCHEMA, job_runs.PROPERTIES, job_runs._PARTITIONS)
    schema, run_count = table.schema().as_arrow(), MANY * len(JOBS)
    now = datetime.now(UTC)
    for ago in range(HISTORY_WINDOW.days - 1, -1, -1):
        at = now - timedelta(days=ago)
        same: dict[str, object] = {
            "day": f"{at:%Y-%m-%d}",
            "runner": "host/1/0123abcd",
            "reason": "no earlier run",
            "snapshot_id": 1,
            "queued_at": at,
            "metrics": '{"rows": 1000, "data_files": 10}',
            "recorded_at": at,
        }
        columns = {
            "run_id": [f"{ago:08x}{number:024x}" for number in range(run_count)],
            "table_name": [f"many.sales.t{number // len(JOBS)}" for number in range(run_count)],
            "table_uuid": [str(UUID(int=number // len(JOBS))) for number in range(run_count)],
            "job": list(JOBS) * MANY,
        }
        for state, ended in (("QUEUED", None), ("SUCCEEDED", at)):
            times = {"state": state, "started_at": ended, "finished_at": ended, "seconds": ended and 0.0}
            constant = {name: [value] * run_count for name, value in (same | times).items()}
            table.append(pa.table({name: (columns | constant)[name] for name in schema.names}, schema=schema))


def _growth(folder: str, way: str) -> float:
    """Return the MiB by which the peak of a process grows that reads the runs."""
    command = [sys.executable, "-m", "benchmarks.many_tables", folder, way]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _read_runs(folder: str, way: str) -> None:
    """Read the runs as `maintain` does at its start; print the growth of this process in MiB."""
    catalog, now = local_catalog(Path(folder)), datetime.now(UTC)
    catalog.load_table(("ops", job_runs.NAME))
    before = read_peak_mib()
    if way == "former":
        runs = job_runs.list_runs(catalog, "many", now - SAMPLE + timedelta(days=1))
        assert len(runs) == MANY * len(JOBS) * SAMPLE.days
    else:
        assert close_abandoned_runs(catalog, "many", "bench", now) == []
        assert len(load_histories(catalog, now)) == MANY
    print(read_peak_mib() - before)


def _commits(catalog: SqlCatalog) -> int:
    """Return how many commits the statistics of all tables take."""
    buffer = OpsBuffer(CONFIG, {"many": catalog})
    at = datetime.now(UTC)
    ops_tables = (TABLES, PARTITIONS, COMMITS)
    for number in range(MANY):
        for ops_table in ops_tables:
            values: dict[str, object] = {}
            for column in ops_table.columns.split(","):
                name, kind = column.split()
                values[name] = {"string": f"t{number}", "timestamp": at}.get(kind, number)
            buffer.add("many", ops_table, [values])
        if number % 1000 == 999 or number == MANY - 1:
            assert buffer.flush("many") == []
    return sum(len(catalog.load_table(("ops", ops_table.name)).metadata.snapshots) for ops_table in ops_tables)


def _measure_reading(catalog: SqlCatalog) -> list[Row]:
    cache = CatalogCache(lambda *_: catalog)
    writer, reader = ResultWriter(CONFIG, "many", catalogs=cache), ResultReader(CONFIG, "many", catalogs=cache)
    numbers = pa.array(range(ROWS), pa.int64())
    uri = _address(0)
    writer.write(uri, pa.table({"number": numbers, "text": numbers.cast(pa.string())}))
    reader.range(uri, 0, PAGE)
    first = min(measure_seconds(lambda: reader.range(uri, 0, PAGE)) for _ in range(5))
    last = min(measure_seconds(lambda: reader.range(uri, ROWS - PAGE, PAGE)) for _ in range(5))
    for number in range(1, COUNTED + 1):
        writer.tables.create_or_load(_address(number), pa.schema([("number", pa.int64())]))
        reader.count(_address(number))
    return [
        Row("range(): last page of a file", last, first, PAGE_TARGET, note=f"{ROWS:,} rows; reference: its first page"),
        Row(
            "count(): results kept",
            len(reader._indexes),
            COUNTED,
            KEPT_TARGET,
            unit="results",
            note=f"after counting {COUNTED}; reference: all of them",
        ),
    ]


def _address(number: int) -> ResultUri:
    return Execution(903, number + 1).result(Port("Many-1"))


if __name__ == "__main__":
    _read_runs(*sys.argv[1:])
