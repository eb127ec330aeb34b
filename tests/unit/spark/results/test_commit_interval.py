"""How often a stream commits as it gets older, and the metadata that its commits write."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog_cache import CatalogCache
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.writer import EVERY_BATCH, CommitInterval, ResultWriter
from pyiceberg.catalog.sql import SqlCatalog

DAY_SECONDS = 24 * 60 * 60
MAX_METADATA = 10**9


def list_commits() -> list[float]:
    """Return the seconds of each commit of a day. A row arrives each second; the first of them starts the timer."""
    interval, commits, age = CommitInterval(), list[float](), 0.0
    while age < DAY_SECONDS:
        age += interval.seconds_at_age(age) or 0
        commits.append(age)
    return commits


def test_stream_of_a_day_makes_few_commits() -> None:
    commits = list_commits()
    assert 400 < len(commits) <= 500, "every five seconds would make 17,280"
    assert commits[:3] == [5, 10, 15], "a reader sees the first rows soon"
    assert commits[-1] - commits[-2] == 300


@pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="450 commits: test-all")
def test_metadata_of_a_day_takes_less_than_a_gigabyte(
    local_config: CatalogConfig, local_catalog: SqlCatalog, tmp_path: Path
) -> None:
    """Files that commits delete again count, too. Files of all commits every five seconds would take 136 GB."""
    cache = CatalogCache(lambda config, name: local_catalog)
    writer = ResultWriter(
        local_config, "local", commit=CommitInterval(rows=None, bytes=None, seconds=None), catalogs=cache
    )
    uri = Execution(7, 1, "local").result(Port("Scan-1"))
    sizes: dict[str, int] = {}
    with writer.stream(uri, pa.schema([("second", pa.int64()), ("text", pa.string())])) as stream:
        for commit in list_commits():
            seconds = range(stream.rows, round(commit))
            stream.append_batch(pa.table({"second": [*seconds], "text": [f"row {second}" for second in seconds]}))
            stream.flush()
            sizes |= {file.name: file.stat().st_size for file in tmp_path.rglob("metadata/*")}
    reader = ResultReader(local_config, "local", catalogs=cache)
    assert reader.count(uri) >= DAY_SECONDS
    assert len(reader.table(uri).metadata.snapshots) <= 500
    print(f"{sum(sizes.values()) / 1e6:.0f} MB of metadata in {len(sizes)} files")
    assert sum(sizes.values()) <= MAX_METADATA


def test_interval_without_seconds() -> None:
    assert EVERY_BATCH.seconds_at_age(DAY_SECONDS) is None
    assert (
        CommitInterval(seconds=900).seconds_at_age(0) == CommitInterval(seconds=900).seconds_at_age(DAY_SECONDS) == 900
    )
