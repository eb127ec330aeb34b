"""Streams of DataFrames into a result: each row once, also after the end of a process at any point."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.result_uris import Execution, Port, ResultUri
from lakewright_spark.results.frames import ResultFrames
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.session.builder import spark_session
from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PORT = Port("Stream-1")
ROWS_A_FILE = 5


@pytest.fixture(scope="module")
def spark(catalog_config: CatalogConfig) -> Iterator[SparkSession]:
    session = spark_session(catalog_config, "frame-streams")
    yield session
    session.stop()


@pytest.fixture
def frames(spark: SparkSession, catalog_config: CatalogConfig) -> ResultFrames:
    return ResultFrames(spark, catalog_config, "results")


@pytest.fixture
def reader(catalog_config: CatalogConfig) -> ResultReader:
    return ResultReader(catalog_config)


def add_files(folder: Path, first: int, stop: int) -> None:
    """Write files with five numbers each, whose names and times are in the order of the numbers."""
    folder.mkdir(exist_ok=True)
    for number in range(first, stop):
        lines = [json.dumps({"number": number * ROWS_A_FILE + row}) for row in range(ROWS_A_FILE)]
        partial = folder / f".{number:05}"
        partial.write_text("\n".join(lines))
        os.utime(partial, (1_800_000_000 + number,) * 2)
        partial.rename(folder / f"{number:05}.json")


def read_files(spark: SparkSession, folder: Path) -> DataFrame:
    """Return a streaming frame of the folder's files, one file in each batch."""
    return spark.readStream.schema("number short").option("maxFilesPerTrigger", 1).json(folder.as_uri())


def read_numbers(reader: ResultReader, uri: ResultUri) -> list[int]:
    return sorted(reader.read_all(uri)["number"].to_pylist())


def write_available(frames: ResultFrames, uri: ResultUri, folder: Path) -> None:
    """Write the files that exist now, and wait for the end of the query."""
    frame = read_files(frames.spark, folder / "files")
    query = frames.write_stream(uri, frame, (folder / "checkpoint").as_uri(), every_seconds=None)
    assert query.awaitTermination(120)


@pytest.mark.long
def test_batch_that_was_committed_is_not_written_again(
    frames: ResultFrames, reader: ResultReader, tmp_path: Path
) -> None:
    """The process ended between the table's commit of a batch and the note of it in the checkpoint."""
    uri = Execution(1, 30, "results").result(PORT)
    add_files(tmp_path / "files", 0, 3)
    write_available(frames, uri, tmp_path)
    snapshots = len(reader.table(uri).metadata.snapshots)
    assert snapshots >= 3
    for note in (tmp_path / "checkpoint" / "commits").glob("*2*"):
        note.unlink()

    write_available(frames, uri, tmp_path)

    assert len(reader.table(uri).metadata.snapshots) == snapshots
    add_files(tmp_path / "files", 3, 4)
    write_available(frames, uri, tmp_path)
    assert read_numbers(reader, uri) == list(range(4 * ROWS_A_FILE))
    assert reader.table(uri).properties["write.metadata.previous-versions-max"] == "10"
    assert str(reader.table(uri).schema().find_type("number")) == "int"  # Texera has no short integers


def test_stream_adds_to_the_rows_of_a_result(frames: ResultFrames, reader: ResultReader, tmp_path: Path) -> None:
    uri = Execution(1, 31, "results").result(PORT)
    frames.write(uri, frames.spark.range(100, 102).selectExpr("cast(id AS int) AS number"))
    add_files(tmp_path / "files", 0, 1)

    write_available(frames, uri, tmp_path)

    assert read_numbers(reader, uri) == [*range(ROWS_A_FILE), 100, 101]


def test_running_stream_is_followed_by_a_reader(frames: ResultFrames, reader: ResultReader, tmp_path: Path) -> None:
    uri = Execution(1, 32, "results").result(PORT)
    add_files(tmp_path / "files", 0, 1)
    frame = read_files(frames.spark, tmp_path / "files")
    query = frames.write_stream(uri, frame, (tmp_path / "checkpoint").as_uri(), every_seconds=0.1)
    try:
        news = reader.follow(uri)
        assert next(news).rows["number"].to_pylist() == list(range(ROWS_A_FILE))
        add_files(tmp_path / "files", 1, 2)
        assert next(news).rows["number"].to_pylist() == list(range(ROWS_A_FILE, 2 * ROWS_A_FILE))
        assert query.exception() is None
    finally:
        query.stop()


PROCESS = """
import sys
from pathlib import Path

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.frames import ResultFrames
from lakewright_spark.session.builder import spark_session

config = CatalogConfig.from_json(sys.stdin.read())
folder = Path(sys.argv[1])
frames = ResultFrames(spark_session(config, "killed"), config, "results")
frame = frames.spark.readStream.schema("number short").option("maxFilesPerTrigger", 1)
uri = Execution(1, 33, "results").result(Port("Stream-1"))
query = frames.write_stream(
    uri, frame.json((folder / "files").as_uri()), (folder / "checkpoint").as_uri(), every_seconds=None
)
query.awaitTermination()
"""


@pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="a JVM for each kill: test-all")
@pytest.mark.timeout(900)
def test_killed_processes_lose_and_repeat_no_row(
    reader: ResultReader, catalog_config: CatalogConfig, tmp_path: Path
) -> None:
    files, uri = 60, Execution(1, 33, "results").result(PORT)
    add_files(tmp_path / "files", 0, files)
    commits = tmp_path / "checkpoint" / "commits"
    kills = 0
    for after in (1, 7, 20, 35, None):
        process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path)],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdin
        process.stdin.write(catalog_config.to_json())
        process.stdin.close()
        while after is not None and process.poll() is None:
            if commits.is_dir() and len([*commits.glob("[0-9]*")]) >= after:
                os.killpg(process.pid, signal.SIGKILL)  # the JVM, too
                kills += 1
                break
            time.sleep(0.01)
        code = process.wait(300)
        assert code == (0 if after is None else -signal.SIGKILL)

    assert kills == 4
    assert read_numbers(reader, uri) == list(range(files * ROWS_A_FILE))
