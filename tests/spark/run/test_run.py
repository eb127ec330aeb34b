"""`lakewright-spark run`: a script is one execution, refused before it starts or recorded until it ends. No JVM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from authenticating_proxy import issue_token
from lakewright_spark import cli
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import TokenFileAuth
from lakewright_spark.errors import DeadlineError, WarehouseRefusedError
from lakewright_spark.execution_registry.records import ExecutionRecord, ExecutionStatus
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.policies.model import PolicyPattern
from lakewright_spark.pyiceberg_client.catalog_cache import CATALOGS
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.run import script
from lakewright_spark.run.context import ExecutionRun
from lakewright_spark.run.facts import ExecutionFacts
from lakewright_spark.run.launch import Launch

STREAM = """
import sys
import pyarrow as pa
from lakewright_spark import current

run = current()
with run.stream("Count-1", pa.schema([("number", pa.int64())])) as result:
    for number in range(int(sys.argv[1])):
        result.append((number,))
print("counted", sys.argv[1])
"""


@dataclass
class Finished:
    """Exit code and output of a command; wrapped error lines are joined."""

    code: int
    out: str
    err: str


class Runner:
    """Runs scripts of one tenant with its own registry."""

    def __init__(self, folder: Path, config: CatalogConfig, patch: pytest.MonkeyPatch, capture: Any) -> None:
        self.folder, self._patch, self._capture = folder, patch, capture
        self.workflow = uuid.uuid4().int % 10**9
        self.database = f"sqlite:///{folder}/executions.db"
        patch.setenv("LAKEWRIGHT_REGISTRY", self.database)
        self.use(config)

    def use(self, config: CatalogConfig) -> None:
        self.config = config
        (self.folder / "catalog.json").write_text(config.to_json())

    def build_arguments(
        self, script: str, *options: str, execution: int = 1, arguments: tuple[str, ...] = ()
    ) -> list[str]:
        path = self.folder / "script.py"
        path.write_text(script)
        which = ["--workflow", str(self.workflow), "--execution", str(execution), "--computing-unit", "notebook"]
        return ["run", "--config", str(self.folder / "catalog.json"), *which, *options, str(path), *arguments]

    def __call__(self, script: str, *options: str, **more: Any) -> Finished:
        return self.command(*self.build_arguments(script, *options, **more))

    def command(self, *arguments: str) -> Finished:
        """Run a command in this process, which has all modules loaded; scripts have their own processes."""
        self._patch.setattr(sys, "argv", ["lakewright-spark", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        output = self._capture.readouterr()
        code = ended.value.code
        return Finished(code if isinstance(code, int) else 0, output.out, " ".join(output.err.split()))

    def find_record(self, execution: int = 1) -> ExecutionRecord | None:
        registry = ExecutionRegistry(self.config.tenant, self.database)
        try:
            return registry.find(self.workflow, execution)
        finally:
            registry.close()


@pytest.fixture
def runner(tmp_path: Path, catalog_config: CatalogConfig, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Runner:
    return Runner(tmp_path, catalog_config, monkeypatch, capfd)


def test_script_is_one_execution(runner: Runner) -> None:
    finished = runner(STREAM, "--json", arguments=("3",))
    assert finished.code == 0, finished.err
    run = Execution(runner.workflow, 1, "results")
    printed, report = finished.out.splitlines()
    assert printed == "counted 3"
    uris = {run.result(Port("Count-1")): 3, run.console_messages("script"): 1, run.runtime_statistics(): 1}
    assert {uri: table["rows"] for uri, table in json.loads(report)["tables"].items()} == {
        str(uri): rows for uri, rows in uris.items()
    }
    reader = ResultReader(runner.config)
    assert reader.read_all(run.console_messages("script"))["message"].to_pylist() == ["counted 3"]
    (statistics,) = reader.read_all(run.runtime_statistics()).to_pylist()
    assert (statistics["operatorId"], statistics["outputTupleCnt"], statistics["status"]) == ("Count-1", 3, 3)
    record = runner.find_record()
    assert record is not None
    assert (record.status, record.warehouse, record.computing_unit) == (
        ExecutionStatus.COMPLETED,
        "results",
        "notebook",
    )
    assert {table.uri: table.rows for table in record.tables} == uris


@pytest.mark.long
def test_next_execution_replaces_the_previous_one(runner: Runner) -> None:
    assert runner(STREAM, arguments=("3",)).code == 0
    assert runner("print('nothing else')", execution=1).code == 0
    second_record = runner.find_record(1)
    assert second_record is not None
    assert [table.uri.kind.value for table in second_record.tables] == ["consolemessages"]
    assert runner(STREAM, execution=2, arguments=("4",)).code == 0
    old, new = runner.find_record(1), runner.find_record(2)
    assert old is not None
    assert new is not None
    assert old.replaced_at
    assert old.tables == ()
    assert len(new.tables) == 3
    # Commands that list, read and clean up executions:
    config = ("--config", str(runner.folder / "catalog.json"))
    executions = json.loads(runner.command("executions", "list", *config, "--json").out)
    assert [(record["execution"], record["status"]) for record in executions] == [(1, "completed"), (2, "completed")]
    uri = str(Execution(runner.workflow, 2, "results").result(Port("Count-1")))
    assert runner.command("read", uri, *config, "--count").out == "4\n"
    *rows, cursor = runner.command("read", uri, *config, "--after", "start", "--limit", "3").out.splitlines()
    assert len(rows) == 3
    remaining_lines = runner.command("read", uri, *config, "--after", json.loads(cursor)["cursor"]).out.splitlines()
    assert [json.loads(row) for row in remaining_lines[:-1]] == [{"number": 3}]
    assert json.loads(runner.command("executions", "orphans", *config, "--json").out)["rows"] == []
    registry = ExecutionRegistry(runner.config.tenant, runner.database)
    registry.finish(runner.workflow, 2, ExecutionStatus.COMPLETED, now=datetime.now(UTC) - timedelta(hours=2))
    registry.close()
    dry = json.loads(runner.command("executions", "sweep", *config, "--ttl", "1h", "--dry-run", "--json").out)
    assert uri in dry["tables"]
    assert runner.command("executions", "sweep", *config, "--ttl", "1h").code == 0
    assert runner.find_record(2) is None
    assert "has no vfs:///wh/results" in runner.command("read", uri, *config).err


def test_failed_script_is_recorded_with_its_tables(runner: Runner) -> None:
    finished = runner(STREAM + "raise SystemExit(5)\n", arguments=("2",))
    assert finished.code == 8
    assert "ended with exit code 5" in finished.err
    record = runner.find_record()
    assert record is not None
    assert record.status is ExecutionStatus.FAILED
    assert "exit code 5" in str(record.error)
    assert len(record.tables) == 3


def test_deadline_ends_the_run(runner: Runner) -> None:
    CATALOGS.get(runner.config, "results")  # so that only the script's time counts
    script = runner.folder / "script.py"
    script.write_text("import threading; threading.Event().wait()")
    soon = datetime.now(UTC) + timedelta(seconds=2)
    facts = ExecutionFacts(workflow=runner.workflow, execution=1, warehouse="results", deadline=soon)
    registry = ExecutionRegistry(runner.config.tenant, runner.database)
    with pytest.raises(DeadlineError, match="was ended at its deadline"):
        Launch(runner.config, facts, script, registry=registry).run()
    registry.close()
    record = runner.find_record()
    assert record is not None
    assert record.status is ExecutionStatus.KILLED


@pytest.mark.long
def test_sigterm_ends_the_script(runner: Runner) -> None:
    script = "import os, threading; print('mine is', os.getpid()); threading.Event().wait()"
    command = [sys.executable, "-m", "lakewright_spark.cli", *runner.build_arguments(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline().rpartition(" ")[2])
        run.send_signal(signal.SIGTERM)
        _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert "was ended from outside" in errors
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    record = runner.find_record()
    assert record is not None
    assert record.status is ExecutionStatus.KILLED


def test_spark_submit(runner: Runner) -> None:
    """Run the file that spark-submit gets with Python, since the script needs no Spark."""
    path = runner.folder / "script.py"
    path.write_text(STREAM)
    which = ["--config", str(runner.folder / "catalog.json"), "--workflow", str(runner.workflow), "--execution", "7"]

    def submit(warehouse: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, script.__file__, *which, "--warehouse", warehouse, str(path), "2"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    finished = submit("results")
    assert finished.returncode == 0, finished.stderr
    uri = Execution(runner.workflow, 7, "results").result(Port("Count-1"))
    assert ResultReader(runner.config).count(uri) == 2
    finished = submit("sales")
    assert finished.returncode == 4
    assert finished.stderr.startswith("script.py: tenant spark-tests has no warehouse 'sales'")


def test_script_sees_no_registry(runner: Runner) -> None:
    script = "import os; print(sorted(name for name in os.environ if name.startswith('LAKEWRIGHT_')))"
    finished = runner(script, "--no-registry")
    assert finished.code == 0, finished.err
    assert finished.out.splitlines()[0] == "['LAKEWRIGHT_CATALOG', 'LAKEWRIGHT_RUN']"
    assert not (runner.folder / "executions.db").exists()


NEVER = "raise AssertionError('it ran')"


def run_refused_script(runner: Runner, code: int, *options: str) -> str:
    """Expect a run to be refused without starting anything; return its error text."""
    finished = runner(NEVER, *options)
    assert finished.code == code, finished.err
    assert "Traceback" not in finished.err
    assert "it ran" not in finished.err
    assert runner.find_record() is None
    return finished.err


def test_warehouse_outside_the_configuration(runner: Runner) -> None:
    assert "has no warehouse 'sales' in this configuration" in run_refused_script(runner, 4, "--warehouse", "sales")


def test_warehouse_of_another_owner(runner: Runner) -> None:
    (results,) = runner.config.warehouses
    owned = results.model_copy(update={"owner": "ann"})
    runner.use(runner.config.model_copy(update={"warehouses": [owned]}))
    assert "who has no grant to write there" in run_refused_script(runner, 4, "--submitter", "ben")


def test_unshared_result_is_refused_before_spark_starts(runner: Runner) -> None:
    assert runner(STREAM, arguments=("3",)).code == 0
    uri = Execution(runner.workflow, 1, "results").result(Port("Count-1"))
    (results,) = runner.config.warehouses
    closed = PolicyPattern.model_validate({"match": "results.*.*", "sharing": False})
    owned = {"warehouses": [results.model_copy(update={"owner": "user:oidc~ann"})], "policies": (closed,)}
    facts = ExecutionFacts(workflow=1, execution=1, warehouse="results", submitter="user:oidc~ben")

    with pytest.raises(WarehouseRefusedError, match="is not shared, by results"):
        ExecutionRun(facts, runner.config.model_copy(update=owned)).read(uri)


def test_restart_elsewhere_needs_the_earlier_warehouse(runner: Runner) -> None:
    """A killed run recorded no tables, so its tables can be found only where its row says."""
    hidden = CatalogWarehouse(name="archive", id="5ad1d6a4-0000-4000-8000-000000000000")
    runner.use(runner.config.model_copy(update={"warehouses": [*runner.config.warehouses, hidden]}))
    registry = ExecutionRegistry(runner.config.tenant, runner.database)
    registry.begin(runner.workflow, 1, computing_unit="notebook", warehouse="archive")
    registry.finish(runner.workflow, 1, ExecutionStatus.KILLED)
    registry.close()
    for _ in range(2):
        refused = runner("print('never')", "--warehouse", "results")
        assert refused.code == 1
        assert "cannot be dropped: warehouse archive of" in refused.err
    record = runner.find_record()
    assert record is not None
    assert (record.warehouse, record.status) == ("archive", ExecutionStatus.FAILED)


def test_catalog_is_down(runner: Runner) -> None:
    runner.use(runner.config.model_copy(update={"uri": "http://127.0.0.1:1/catalog"}))
    assert "warehouse results of http://127.0.0.1:1/catalog does not respond" in run_refused_script(runner, 6)


def test_warehouse_missing_in_the_catalog(runner: Runner) -> None:
    runner.use(runner.config.model_copy(update={"warehouses": [CatalogWarehouse(name="gone", id="1")]}))
    message = run_refused_script(runner, 4)
    assert "warehouse gone of" in message
    assert "does not exist, or this identity may not use it" in message


def test_token_that_expires_before_the_deadline(runner: Runner, tmp_path: Path) -> None:
    file = tmp_path / "token"
    runner.use(runner.config.model_copy(update={"auth": TokenFileAuth(kind="token-file", path=str(file))}))
    file.write_text(issue_token(-5))
    assert "Provide a new token" in run_refused_script(runner, 7, "--deadline", "10m")
    file.write_text(issue_token(300))
    assert "give a deadline below" in run_refused_script(runner, 7, "--deadline", "10m")
    assert "has no deadline" in run_refused_script(runner, 7)


def test_missing_or_newer_configuration(runner: Runner) -> None:
    (runner.folder / "catalog.json").write_text(runner.config.to_json().replace('"version": 1', '"version": 2'))
    message = run_refused_script(runner, 3)
    assert "is no catalog configuration: version: Input should be 1" in message
    (runner.folder / "catalog.json").unlink()
    assert "no catalog configuration at" in run_refused_script(runner, 3)


def test_invalid_options(runner: Runner) -> None:
    assert "expected a duration such as 90s" in run_refused_script(runner, 2, "--deadline", "soon")
    assert "expected KEY=VALUE" in run_refused_script(runner, 2, "--conf", "spark")
