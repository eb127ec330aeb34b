"""The flights job as a user runs it: in a process with the generated configuration and no key."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.schemas import RUNTIME_STATISTICS, Status

from demo import nycflights
from tests.integration.tenant.faulty_proxy import VENDED, FaultyProxy, run_proxy

pytestmark = [pytest.mark.spark, pytest.mark.long]

RUN = Execution(7, 42, "results")


REPOSITORY = Path(__file__).resolve().parents[3]


def job(config: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    command = [sys.executable, "-m", module, *arguments, "--config", str(config)]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def catalog(sandbox: Sandbox) -> Iterator[FaultyProxy]:
    """Return a proxy of the catalog that records vended credentials."""
    with run_proxy(sandbox.lakekeeper.endpoint) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def config_file(catalog: FaultyProxy, catalog_config: CatalogConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "catalog.json"
    path.write_text(catalog_config.model_copy(update={"uri": f"{catalog.endpoint}/catalog"}).to_json())
    return path


@pytest.fixture(scope="module")
def report(config_file: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    log = tmp_path_factory.mktemp("event-log")
    arguments = ["--workflow", "7", "--execution", "42", "--event-log", str(log), "--json"]
    finished = job(config_file, "demo.run_flights", *arguments)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout.splitlines()[-1]) | {
        "event_log": log,
        "output": finished.stdout + finished.stderr,
    }


@pytest.fixture
def reader(catalog_config: CatalogConfig, report: dict) -> ResultReader:
    return ResultReader(catalog_config, "results")


def test_totals_match_the_source_data(report: dict) -> None:
    # Source: the documentation of the data set, 336,776 flights in 2013, 8,255 of them cancelled.
    assert report["totals"]["flights"] == 336_776
    assert report["totals"]["cancelled"] == 8_255


def test_one_table_per_result_kind(report: dict) -> None:
    joined = str(RUN.result(Port("FlightsJoin-operator-1")))
    assert joined == (
        "vfs:///wh/results/wid/7/eid/42/globalportid/"
        "(logicalOpId=FlightsJoin-operator-1,layerName=main,portId=0,isInternal=false,isInput=false)/result"
    )
    assert report["tables"][joined] == 336_776
    assert report["tables"][str(RUN.runtime_statistics())] == 2
    assert report["tables"][str(RUN.console_messages("RouteDelays-operator-2"))] == 1


def test_runtime_statistics_table(reader: ResultReader) -> None:
    table = reader.table(RUN.runtime_statistics())
    assert [(c.name, c.field_id, c.required) for c in table.schema().fields] == [
        (name, number, False) for number, name in enumerate(RUNTIME_STATISTICS.names, start=1)
    ]
    assert str(table.schema().find_type("time")) == "timestamp"
    assert table.spec().is_unpartitioned()
    assert table.properties["commit.retry.num-retries"] == "10"
    assert table.properties["commit.retry.min-wait-ms"] == "100"
    assert table.properties["commit.retry.max-wait-ms"] == "10000"
    first, second = reader.read_all(RUN.runtime_statistics()).to_pylist()
    assert first["status"] == second["status"] == Status.COMPLETED
    assert first["outputTupleCnt"] == second["inputTupleCnt"] == 336_776
    assert second["inputTupleSize"] > 1_000_000


def test_page_equals_slice_of_whole_result(reader: ResultReader) -> None:
    delays = RUN.result(Port("RouteDelays-operator-2"))
    whole = reader.read_all(delays)
    assert reader.count(delays) == whole.num_rows > 500
    assert reader.range(delays, 100, 50).equals(whole.slice(100, 50))
    assert reader.range(delays, whole.num_rows - 5, 50).num_rows == 5
    assert reader.range(delays, whole.num_rows, 50).num_rows == 0


def data_files(reader: ResultReader) -> set[str]:
    """Return the paths of the files that hold the current rows of the runtime statistics."""
    tasks = reader.table(RUN.runtime_statistics()).scan().plan_files()
    return {task.file.file_path for task in tasks}


def test_read_prints_rows_by_address(config_file: Path, report: dict) -> None:
    finished = job(config_file, "lakewright_spark.cli", "read", str(RUN.runtime_statistics()))
    rows = [json.loads(line) for line in finished.stdout.splitlines()]
    assert [row["operatorId"] for row in rows] == ["FlightsJoin-operator-1", "RouteDelays-operator-2"]


def test_no_secret_in_event_log_or_output(report: dict, sandbox: Sandbox, catalog: FaultyProxy) -> None:
    logs = [path.read_text() for path in report["event_log"].rglob("*") if path.is_file()]
    assert any("SparkListenerApplicationEnd" in text for text in logs)
    vended = catalog.list_vended_secrets()
    assert len(vended) >= len(VENDED), "tables were loaded with credentials"
    for text in [*logs, report["output"]]:
        assert sandbox.admin.secret_access_key.get_secret_value() not in text
        assert sandbox.admin.access_key_id not in text
        assert not [name for name in VENDED if name in text]
        assert not [value for value in vended if value in text]


FEW = 2_000
"""Flights of the second run, in the first days of January."""


@pytest.fixture
def few_flights(tmp_path: Path) -> Path:
    """Return the data set with few flights."""
    files = nycflights.unpack(nycflights.find_installed_files(), tmp_path)
    with (files / "flights.csv").open() as flights:
        lines = list(itertools.islice(flights, FEW + 1))
    with zipfile.ZipFile(files / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", "".join(lines))
    return files


def test_second_run_replaces_results_of_the_first(config_file: Path, reader: ResultReader, few_flights: Path) -> None:
    before = data_files(reader)
    arguments = ["--workflow", "7", "--execution", "42", "--data", str(few_flights)]
    finished = job(config_file, "demo.run_flights", *arguments)
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert not before & data_files(reader)
    assert reader.count(RUN.runtime_statistics()) == 2
    assert reader.count(RUN.result(Port("FlightsJoin-operator-1"))) == FEW
