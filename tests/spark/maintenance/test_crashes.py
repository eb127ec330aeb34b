"""Jobs in a storm: the store and the catalog fail at random, processes die; the next run finishes, no data is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import httpx
import pytest
from lakewright_sandbox.in_process import serving
from lakewright_sandbox.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import JobFailedError
from pyspark.sql import SparkSession
from storm import Storm, at_random, killing

from .conftest import DAY, Maintained, s3
from .histories import History, Watch

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
pytestmark = [pytest.mark.spark, pytest.mark.timeout(1500 if FULL else 300)]

SEEDS = range(12 if FULL else 1)
JOBS = ["compaction", "snapshot-expiration", "rewrite-manifests", "orphan-files", "staged-files"]
IMPATIENT = {
    "s3.retry.num-retries": "1",
    "s3.retry.min-wait-ms": "20",
    "s3.retry.max-wait-ms": "50",
    "rest.client.max-retries": "1",
}
"""Clients that give up soon: else they sit out every storm."""


@dataclass
class Struck:
    """A warehouse behind two storms."""

    store: Storm
    catalog: Storm
    config: CatalogConfig


@pytest.fixture(scope="module")
def struck(sandbox: Sandbox, catalog_config: CatalogConfig, spark: SparkSession) -> Iterator[Struck]:
    store, catalog = Storm(sandbox.aws.endpoint), Storm(sandbox.lakekeeper.endpoint)
    with serving(store) as way_to_store, serving(catalog) as way_to_catalog:
        bucket = f"struck-{uuid.uuid4().hex[:8]}"
        s3(sandbox).create_bucket(Bucket=bucket)
        body = {
            "warehouse-name": "struck",
            "project-id": catalog_config.project_id,
            "storage-profile": {
                "type": "s3",
                "bucket": bucket,
                "region": sandbox.aws.region,
                "endpoint": way_to_store,
                "path-style-access": True,
                "flavor": "s3-compat",
                "sts-enabled": True,
            },
            "storage-credential": {
                "type": "s3",
                "credential-type": "access-key",
                "access-key-id": sandbox.admin.access_key_id,
                "secret-access-key": sandbox.admin.secret_access_key.get_secret_value(),
            },
            "delete-profile": {"type": "hard"},
        }
        answer = httpx.post(f"{sandbox.lakekeeper.endpoint}/management/v1/warehouse", json=body, timeout=60)
        assert answer.status_code == 201, answer.text
        warehouse = CatalogWarehouse(name="struck", id=answer.json()["warehouse-id"], s3=IMPATIENT)
        config = catalog_config.model_copy(update={"uri": f"{way_to_catalog}/catalog", "warehouses": [warehouse]})
        for key, value in config.spark_properties().items():
            if key.startswith("spark.sql.catalog.struck"):
                spark.conf.set(key, value)
        spark.sql("CREATE NAMESPACE struck.maintained")
        yield Struck(store, catalog, config)


@pytest.fixture
def lived(made: Callable[..., Maintained], struck: Struck) -> Callable[[str], tuple[History, Watch]]:
    """A table with all that jobs deal in, a month ago."""

    def live(name: str) -> tuple[History, Watch]:
        table = made(name, "(n int) USING iceberg", "struck")
        table.allow(
            history={"versions": 2},
            orphan_files={"older_than_days": 1},
            staged_files={"older_than_days": 1},
            compaction={"min_input_files": 2},
        )
        history = History(table, struck.config)
        for number, step in enumerate(["append", "append", "overwrite", "tag", "branch", "append", "append", "fail"]):
            history.take(step, number)
        watch = Watch(history)
        watch.look()
        return history, watch

    return live


def rows(history: History) -> dict[str, list[int]]:
    return {ref: history.rows(ref) for ref in history.refs()}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_next_run_finishes_what_a_storm_has_ended(
    lived: Callable[[str], tuple[History, Watch]], struck: Struck, seed: int
) -> None:
    history, watch = lived(f"stormy_{seed}")
    table, before, random, hits = history.table, rows(history), Random(seed), list[str]()
    for job in [*(JOBS if FULL else ["compaction", "snapshot-expiration", "orphan-files"]), "staged-files"]:
        store, catalog = at_random(random, 0.15, hits), at_random(random, 0.15, hits)
        with struck.store.rising(store), struck.catalog.rising(catalog), suppress(JobFailedError):
            table.job(job)
        watch.compare(job)
        table.job(job)
        watch.compare(job)
        assert rows(history) == before
        table.now += 2 * DAY
    assert hits, "there was a storm"
    assert history.lost() == []


DEATHS = [("snapshot-expiration", "store", "?delete", 1)]
"""A job, and where it dies: at the nth request to the store or the catalog that has this in it."""
if FULL:
    dice = Random(5)
    DEATHS += [("staged-files", "store", "?delete", 1), ("compaction", "catalog", "POST", 1)]
    DEATHS += [(job, dice.choice(["store", "catalog"]), "", dice.randint(1, 20)) for job in JOBS * 2]


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: "-".join(str(part) for part in death if part))
def test_a_job_that_dies_leaves_no_harm(
    lived: Callable[[str], tuple[History, Watch]], struck: Struck, tmp_path: Path, death: tuple[str, str, str, int]
) -> None:
    job, where, line, nth = death
    history, watch = lived(f"dying_{uuid.uuid4().hex[:8]}")
    table, before = history.table, rows(history)
    if job == "staged-files":
        table.job("orphan-files")
        table.now += 2 * DAY
    (tmp_path / "catalog.json").write_text(struck.config.to_json())
    command = [sys.executable, str(Path(__file__).parent / "dying_job.py"), str(tmp_path / "catalog.json")]
    command += [f"maintained.{table.table.name}", table.policy.model_dump_json(), job, table.now.isoformat()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        storm = struck.store if where == "store" else struck.catalog
        with storm.rising(killing(lambda: os.killpg(process.pid, signal.SIGKILL), nth, line)):
            process.wait()
        died = process.stdout.read() == ""
    assert died or line == "", f"no {line} among {storm.lines}"
    watch.compare(job)
    for again in [job, *(JOBS if FULL else []), "orphan-files", "staged-files"]:
        table.job(again)
        watch.compare(again)
        table.now += 2 * DAY
    assert rows(history) == before
    assert history.lost() == []
    assert table.objects().keys() == watch.referred, "what the dead one left is gone in the end"
