"""The flights job: which routes are late, and is it the weather? Two operators, written as one Texera execution."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.compute as pc
from lakewright_spark import CatalogConfig, Execution, Port, ResultReader, ResultUri, ResultWriter, spark_session
from lakewright_spark.errors import ResultMismatchError
from lakewright_spark.result_uris import ResultNamespaces
from lakewright_spark.results.frames import ResultFrames
from lakewright_spark.results.schemas import CONSOLE_MESSAGES, RUNTIME_STATISTICS, Status
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from demo import nycflights

JOIN = Port("FlightsJoin-operator-1")
DELAYS = Port("RouteDelays-operator-2")


@dataclass(frozen=True)
class Written:
    """One operator's result: its address, rows and duration in nanoseconds."""

    port: Port
    uri: ResultUri
    rows: int
    nanoseconds: int


@dataclass(frozen=True)
class FlightsReport:
    """The tables that the job wrote, and the verified totals."""

    tables: dict[str, int]
    """Rows by address."""
    totals: nycflights.Totals
    worst: list[dict[str, object]]
    """The routes with the longest mean delay in rough weather."""
    seconds: dict[str, float]


def run(
    config: CatalogConfig,
    warehouse: str,
    execution: Execution,
    *,
    data: Path | None = None,
    namespaces: ResultNamespaces | None = None,
    event_log: Path | None = None,
) -> FlightsReport:
    """Compute, write, read back and check; ResultMismatchError if a sum differs from the source's."""
    namespaces = namespaces or ResultNamespaces.from_environment()
    marks: dict[str, float] = {}
    started = time.monotonic()

    def mark(name: str) -> None:
        marks[name] = round(time.monotonic() - started - sum(marks.values()), 2)

    with tempfile.TemporaryDirectory(prefix="lakewright-flights-") as scratch:
        files = nycflights.unpack(data or nycflights.find_installed_files(), Path(scratch))
        expected = nycflights.totals(files)
        spark = spark_session(config.select_warehouses([warehouse]), "lakewright-flights", event_log=event_log)
        mark("start")
        try:
            frames = ResultFrames(spark, config, warehouse, namespaces)
            join = _operator(frames, execution, JOIN, lambda: join_flights(spark, files))
            mark("join")
            delays = _operator(frames, execution, DELAYS, lambda: route_delays(frames.read(join.uri)))
            mark("delays")
            writer = ResultWriter(config, warehouse, namespaces)
            _statistics(writer, frames, execution, [join, delays], expected.flights)
            _console(writer, execution, join, delays)
            mark("records")
        finally:
            spark.stop()
    reader = ResultReader(config, warehouse, namespaces)
    worst = check(reader, join, delays, expected)
    logs = [execution.runtime_statistics(), *(execution.console_messages(p.operator) for p in (JOIN, DELAYS))]
    tables = {str(uri): reader.count(uri) for uri in [join.uri, delays.uri, *logs]}
    mark("read back")
    return FlightsReport(tables=tables, totals=expected, worst=worst, seconds=marks)


def join_flights(spark: SparkSession, files: Path) -> DataFrame:
    """Every flight with its airline, destination, plane and the weather at the hour it was to leave."""
    airlines = nycflights.read(spark, files, "airlines").withColumnRenamed("name", "airline")
    airports = nycflights.read(spark, files, "airports").select(f.col("faa").alias("dest"), f.col("name").alias("to"))
    planes = nycflights.read(spark, files, "planes").select("tailnum", "manufacturer", "seats")
    # An hour occurs twice when the clocks go back; one record is kept.
    weather = nycflights.read(spark, files, "weather").dropDuplicates(["origin", "time_hour"])
    weather = weather.select("origin", "time_hour", "temp", "wind_speed", "precip", "visib")
    return (
        nycflights.read(spark, files, "flights")
        .join(f.broadcast(airlines), "carrier", "left")
        .join(f.broadcast(airports), "dest", "left")
        .join(f.broadcast(planes), "tailnum", "left")
        .join(f.broadcast(weather), ["origin", "time_hour"], "left")
        .select(
            *("time_hour", "carrier", "airline", "flight", "tailnum", "manufacturer", "seats", "origin", "dest", "to"),
            *("dep_time", "dep_delay", "arr_delay", "air_time", "distance", "temp", "wind_speed", "precip", "visib"),
        )
    )


def route_delays(flights: DataFrame) -> DataFrame:
    """Flights, cancellations and delays (minutes) by airline, route and weather."""
    rough = (f.col("precip") > 0) | (f.col("visib") < 5) | (f.col("wind_speed") > 25)
    return (
        flights.withColumn(
            "weather", f.when(rough, "rough").when(f.col("visib").isNotNull(), "fair").otherwise("unknown")
        )
        .groupBy("airline", "origin", "dest", "to", "weather")
        .agg(
            f.count("*").alias("flights"),
            f.sum(f.col("dep_time").isNull().cast("long")).alias("cancelled"),
            f.sum("arr_delay").alias("arrival_delay"),
            f.avg("arr_delay").alias("mean_arrival_delay"),
            f.sum("distance").alias("distance"),
            f.sum("seats").alias("seats"),
        )
        .orderBy("airline", "origin", "dest", "weather")
    )


def check(reader: ResultReader, join: Written, delays: Written, expected: nycflights.Totals) -> list[dict[str, object]]:
    """Read both results through PyIceberg and add them up; the routes that are worst off in rough weather."""
    routes = reader.read_all(delays.uri)
    totals_by_uri = {
        join.uri: nycflights.totals_of_flights(reader.read_all(join.uri)),
        delays.uri: nycflights.Totals(*nycflights.sums(routes, "flights", "cancelled", "arrival_delay", "distance")),
    }
    for uri, totals in totals_by_uri.items():
        if totals != expected:
            raise ResultMismatchError(f"{uri}: expected {expected} as in the source, read back {totals}")
    often = routes.filter((pc.field("weather") == "rough") & (pc.field("flights") >= 50))
    worst = often.sort_by([("mean_arrival_delay", "descending")]).slice(0, 5)
    return worst.select(["airline", "origin", "dest", "flights", "mean_arrival_delay"]).to_pylist()


def _operator(frames: ResultFrames, execution: Execution, port: Port, compute: Callable[[], DataFrame]) -> Written:
    uri = execution.result(port)
    began = time.monotonic_ns()
    frames.write(uri, compute())
    rows = frames.read(uri).count()
    return Written(port, uri, rows, time.monotonic_ns() - began)


def _statistics(
    writer: ResultWriter, frames: ResultFrames, execution: Execution, written: list[Written], source_rows: int
) -> None:
    rows = []
    inputs = source_rows, 0
    for done in written:
        output = done.rows, _bytes(frames, done.uri)
        now = datetime.now(UTC).replace(tzinfo=None)
        cores = frames.spark.sparkContext.defaultParallelism
        rows.append((done.port.operator, now, *inputs, *output, done.nanoseconds, 0, 0, cores, int(Status.COMPLETED)))
        inputs = output
    writer.write_rows(execution.runtime_statistics(), RUNTIME_STATISTICS, rows)


def _console(writer: ResultWriter, execution: Execution, *written: Written) -> None:
    for done in written:
        message = f"{done.port.operator}: {done.rows} rows in {done.nanoseconds / 1e9:.1f} s"
        writer.write_rows(execution.console_messages(done.port.operator), CONSOLE_MESSAGES, [(message,)])


def _bytes(frames: ResultFrames, uri: ResultUri) -> int:
    files = frames.spark.table(f"{frames.identifier(uri)}.files")
    return files.agg(f.sum("file_size_in_bytes")).collect()[0][0]
