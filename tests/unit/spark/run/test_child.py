"""The last lines of a script are kept while commits are slow, or reported as lost."""

from __future__ import annotations

import os
import threading
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
def ended(tmp_path: Path, console: Console) -> Child:
    """Run a script that prints lines and ends while the first of them is being committed."""
    script = tmp_path / "script.py"
    script.write_text("".join(f"print({line!r})\n" for line in LINES))
    config = CatalogConfig(
        tenant="acme",
        project_id="1",
        uri="http://127.0.0.1:1/catalog",
        warehouses=[CatalogWarehouse(name="lake", id="1")],
    )
    facts = ExecutionFacts(workflow=1, execution=2, warehouse="lake").to_environment(tmp_path)
    child = Child(script, [], os.environ | {"LAKEWRIGHT_CATALOG": config.to_json()} | facts, console.line)
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
