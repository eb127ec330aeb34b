"""A running script: its last lines are kept or reported as lost, and its processes end with the run."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.result_uris import ResultUri
from lakewright_spark.results.writer import ResultWriter
from lakewright_spark.run import child as child_module
from lakewright_spark.run.child import Child
from lakewright_spark.run.console import Console
from lakewright_spark.run.facts import ExecutionFacts

LINES = ["one", "two", "last words"]
RUN = """
import json, os, sys
from pathlib import Path
from lakewright_spark.run import child as child_module

child_module.GRACE_SECONDS = 1000
child = child_module.Child(Path(sys.argv[1]), [], os.environ, lambda line: print(line, flush=True))
child.wait(60)
child.end()
print(json.dumps({"code": child.wait(0)}))
"""
LEAVE_PROCESS = "import subprocess; subprocess.Popen(['sleep', '60']); raise SystemExit(3)"
"""A script that ends before a process that it started, as before Spark's JVM."""
WAIT = "import threading; print('waits'); threading.Event().wait(60)"
PR_SET_CHILD_SUBREAPER = 36


class SlowStream:
    """A result stream whose first commit blocks until it is released."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.committed = 0
        self.let_go = threading.Event()

    def append(self, row: tuple[str]) -> None:
        self.let_go.wait()
        self.rows.append(row[0])

    def close(self) -> None:
        self.committed = len(self.rows)

    def abandon(self) -> None:
        pass


class SlowWriter:
    def __init__(self) -> None:
        self.stream = SlowStream()

    def open(self, *_: Any, **__: Any) -> SlowStream:
        return self.stream


@pytest.fixture
def writer() -> SlowWriter:
    return SlowWriter()


@pytest.fixture
def console(writer: SlowWriter) -> Console:
    return Console(cast(ResultWriter, writer), cast(ResultUri, None))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the variables of an execution that needs no catalog."""
    config = CatalogConfig(
        tenant="acme",
        project_id="1",
        uri="http://127.0.0.1:1/catalog",
        warehouses=[CatalogWarehouse(name="lake", id="1")],
    )
    facts = ExecutionFacts(workflow=1, execution=2, warehouse="lake").to_environment(tmp_path)
    return os.environ | {"LAKEWRIGHT_CATALOG": config.to_json()} | facts


@pytest.fixture
def ended(tmp_path: Path, environment: dict[str, str], console: Console) -> Child:
    """Run a script that prints lines and ends while the first of them is being committed."""
    script = tmp_path / "script.py"
    script.write_text("".join(f"print({line!r})\n" for line in LINES))
    child = Child(script, [], environment, console.line)
    assert child.wait(60) == 0
    return child


def test_lines_printed_during_a_slow_commit_are_kept(writer: SlowWriter, console: Console, ended: Child) -> None:
    assert not ended.is_output_passed_on
    writer.stream.let_go.set()

    ended.end()

    assert console.close(is_complete=ended.is_output_passed_on) == []
    assert writer.stream.rows == LINES


def test_lines_lost_by_an_endless_commit_are_reported(
    writer: SlowWriter, console: Console, ended: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "OUTPUT_SECONDS", 0.1)

    ended.end()

    (sentence,) = console.close(is_complete=ended.is_output_passed_on)
    assert "the last lines are not kept" in sentence
    writer.stream.let_go.set()


@pytest.fixture
def reaps_nothing() -> Iterator[None]:
    """Make this process the parent of orphans, which remain zombies, as process 1 of a container may do."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    yield
    prctl(PR_SET_CHILD_SUBREAPER, 0)


@pytest.mark.usefixtures("reaps_nothing")
def test_run_does_not_wait_for_zombies(tmp_path: Path, environment: dict[str, str]) -> None:
    """Otherwise it would wait for the grace period, which is longer than the limit of a test here."""
    script = tmp_path / "script.py"
    script.write_text(LEAVE_PROCESS)

    run = subprocess.run([sys.executable, "-c", RUN, script], env=environment, stdout=subprocess.PIPE, check=True)

    assert json.loads(run.stdout) == {"code": 3}


def test_script_ends_with_a_killed_run(tmp_path: Path, environment: dict[str, str]) -> None:
    """The script has the run's standard error, which ends with the last process."""
    script = tmp_path / "script.py"
    script.write_text(WAIT)
    command = [sys.executable, "-c", RUN, script]

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "waits\n"
        run.kill()
        _, errors = run.communicate(timeout=20)

    assert errors == ""
