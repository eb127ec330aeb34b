"""Runs whose registry or console table fails: the script continues, and failures are reported at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import RegistryError, ScriptFailedError
from lakewright_spark.execution_registry.records import ExecutionStatus
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.pyiceberg_client.catalog import TimedRestCatalog
from lakewright_spark.result_uris import Execution
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.tables import PROPERTIES
from lakewright_spark.run import launch
from lakewright_spark.run.facts import ExecutionFacts
from lakewright_spark.run.launch import Launch
from pyiceberg.exceptions import CommitFailedException
from typing_extensions import override

WORKFLOW = 31

WAIT_FOR_FILE = """
import pathlib, sys, time
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
print("done")
"""

VERBOSE = "for number in range(20_000): print('line', number)"
"""More output than a pipe buffers: a run that stops reading it never ends."""


class FailingRegistry(ExecutionRegistry):
    """Refuses two signs of life and the first end of a run; creates `heartbeat_file` at the first success."""

    heartbeat_file: Path
    refusals = 0
    finishes = 0

    @override
    def record_heartbeat(self, *arguments: Any, **more: Any) -> None:
        if self.refusals < 2:
            self.refusals += 1
            raise RegistryError("registry of a test: it restarts")
        super().record_heartbeat(*arguments, **more)
        self.heartbeat_file.touch()

    @override
    def finish(self, *arguments: Any, **more: Any) -> None:
        self.finishes += 1
        if self.finishes == 1:
            raise RegistryError("registry of a test: it restarts")
        super().finish(*arguments, **more)


@dataclass
class Launched:
    """Runs scripts and records notes about them."""

    config: CatalogConfig
    folder: Path
    notes: list[str] = field(default_factory=list)

    def run(self, script: str, execution: int, *arguments: str, registry: ExecutionRegistry | None = None) -> None:
        path = self.folder / "script.py"
        path.write_text(script)
        facts = ExecutionFacts(workflow=WORKFLOW, execution=execution, warehouse="results")
        Launch(self.config, facts, path, arguments, registry, note=self.notes.append).run()

    def lines(self, execution: int) -> int:
        uri = Execution(WORKFLOW, execution, "results").console_messages("script")
        return ResultReader(self.config).count(uri)


@pytest.fixture
def launched(catalog_config: CatalogConfig, tmp_path: Path) -> Launched:
    return Launched(catalog_config, tmp_path)


@pytest.fixture
def registry(catalog_config: CatalogConfig, tmp_path: Path) -> Any:
    registry = FailingRegistry(catalog_config.tenant, f"sqlite:///{tmp_path}/executions.db")
    registry.heartbeat_file = tmp_path / "heartbeat"
    yield registry
    registry.close()


@pytest.mark.timeout(120)
def test_run_survives_failed_heartbeats(
    launched: Launched, registry: FailingRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "HEARTBEAT_SECONDS", 0.1)
    launched.run(WAIT_FOR_FILE, 1, str(registry.heartbeat_file), registry=registry)
    record = registry.find(WORKFLOW, 1)
    assert record is not None
    assert record.status is ExecutionStatus.COMPLETED
    assert launched.notes == ["2 signs of life are not in the registry: registry of a test: it restarts"]


def inject_conflicts(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let this number of commits to the table of console messages conflict."""
    commit, conflicts_so_far = TimedRestCatalog.commit_table, []

    def commit_table(self: Any, table: Any, *arguments: Any) -> Any:
        if table.name()[-1].endswith("consolemessages") and len(conflicts_so_far) < times:
            conflicts_so_far.append(table)
            raise CommitFailedException("branch main has changed")
        return commit(self, table, *arguments)

    monkeypatch.setattr(TimedRestCatalog, "commit_table", commit_table)
    monkeypatch.setitem(PROPERTIES, "commit.retry.num-retries", "2")


@pytest.mark.timeout(120)
def test_console_commit_is_retried_on_conflict(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    inject_conflicts(monkeypatch, times=2)
    launched.run(VERBOSE, 2)
    assert launched.notes == []
    assert launched.lines(2) == 20_000


@pytest.mark.timeout(120)
@pytest.mark.long
def test_permanent_conflicts_do_not_block_the_run(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    inject_conflicts(monkeypatch, times=10_000)
    launched.run(VERBOSE, 3)
    (note,) = launched.notes
    assert note.startswith("console messages: 20000 of 20000 lines are not kept: warehouse results of http")
    assert "repeated conflicts with other changes" in note


@pytest.mark.timeout(120)
def test_script_failure_is_reported_before_console_failure(
    launched: Launched, registry: FailingRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    inject_conflicts(monkeypatch, times=10_000)
    with pytest.raises(ScriptFailedError, match="ended with exit code 3"):
        launched.run("print('last words'); raise SystemExit(3)", 4, registry=registry)
    assert len(launched.notes) == 1
    record = registry.find(WORKFLOW, 4)
    assert record is not None
    assert record.status is ExecutionStatus.FAILED
