"""Options and output of `lakewright-spark maintain` and `runs`."""

from __future__ import annotations

import dataclasses
import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import Result
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.cli import app
from lakewright_spark.errors import LakewrightSparkError
from lakewright_spark.policies.model import JOBS, MaintenanceSwitches, TablePolicies
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier
from typer.testing import CliRunner


@pytest.fixture
def config(catalog_config: CatalogConfig, tmp_path: Path) -> Path:
    path = tmp_path / "catalog.json"
    path.write_text(catalog_config.to_json())
    return path


def invoke(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--config", str(config)])


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--table", "(orders"], 2, "regular expression"),
        (["--namespace", "*"], 2, "regular expression"),
        (["--job", "vacuum"], 2, "snapshot-expiration"),
        (["--parallel", "0"], 2, "greater than or equal to 1"),
        (["--deadline", "soon"], 2, "expected a duration"),
        (["--warehouse", "nowhere"], 4, "has no warehouse 'nowhere' in this configuration; it has: results"),
        (["--conf", "spark"], 2, "KEY=VALUE"),
    ],
)
def test_invalid_options(config: Path, options: list[str], code: int, message: str) -> None:
    done = invoke(config, "maintain", *options)
    if isinstance(done.exception, LakewrightSparkError):
        assert (done.exception.exit_code, message in str(done.exception)) == (code, True)
    else:
        assert done.exit_code == code
        assert message in " ".join(done.output.replace("│", " ").split())


def test_nothing_due_starts_no_jvm(config: Path) -> None:
    done = invoke(config, "maintain", "--namespace", "there_is_none_such")
    assert (done.exit_code, done.stdout) == (0, "0 tables: nothing is due\n")
    report = json.loads(invoke(config, "maintain", "--namespace", "none", "--json", "--dry-run").stdout)
    assert (report["tables"], report["runs"], report["dry_run"]) == (0, [], True)


def test_plan_gives_reasons_without_a_jvm(
    config: Path, catalog_config: CatalogConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # a folder without Java
    catalog = open_catalog(catalog_config, "results")
    namespace = f"planned_{uuid.uuid4().hex[:6]}"
    catalog.create_namespace(namespace)
    rows = pa.table({"n": [1]})
    catalog.create_table(f"{namespace}.small", rows.schema).append(rows)
    off = TablePolicies(maintenance=MaintenanceSwitches(disabled_jobs=("statistics",))).properties()
    catalog.create_table(f"{namespace}.switched", rows.schema, properties=off)
    before = {name: catalog.load_table(name).metadata_location for name in catalog.list_tables(namespace)}

    done = invoke(config, "maintain", "--plan", "--namespace", namespace)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == f"results.{namespace}.small"
    assert "  not due  retention: no retention policy" in lines
    assert "  due      orphan-files: no earlier run" in lines
    assert "  not due  compaction: 1 data files with few deletes; at least 5 are compacted" in lines
    assert "  not due  rewrite-manifests: 1 data and delete files are in fewer than 10 manifests" in lines
    assert lines[-1].startswith("2 tables, ")
    report = json.loads(invoke(config, "maintain", "--plan", "--namespace", namespace, "--json").stdout)
    (switched,) = [table for table in report["tables"] if table["table"].endswith(".switched")]
    assert {"job": "statistics", "verdict": "held", "reason": "statistics is switched off"} in switched["jobs"]
    assert [job["job"] for job in switched["jobs"]] == list(JOBS)
    assert {name: catalog.load_table(name).metadata_location for name in catalog.list_tables(namespace)} == before


def test_explain_prints_the_tables_in_their_turn(config: Path, catalog_config: CatalogConfig) -> None:
    """The table with more files to save comes first. No job has run in the warehouse since, and none is late."""
    catalog = open_catalog(catalog_config, "results")
    namespace = f"explained_{uuid.uuid4().hex[:6]}"
    catalog.create_namespace(namespace)
    rows = pa.table({"n": [1]})
    for name, commits in (("few", 5), ("many", 8)):
        table = catalog.create_table(f"{namespace}.{name}", rows.schema)
        for _ in range(commits):
            table.append(rows)

    arguments = ("maintain", "--explain", "--namespace", namespace, "--job", "compaction", "--max-wait", "1d")
    report = json.loads(invoke(config, *arguments, "--json").stdout)
    names = [f"results.{namespace}.{name}" for name in ("many", "few")]
    assert [(table["table"], table["predicted"]["files"]) for table in report["tables"]] == [
        (names[0], 7),
        (names[1], 4),
    ]
    first = report["tables"][0]
    (job,) = first["jobs"]
    assert (job["job"], job["verdict"], job["predicted"]) == ("compaction", "due", first["predicted"])
    assert first["files_per_gb_hour"] > report["tables"][1]["files_per_gb_hour"] > 0
    assert first["health"] == {"points": 100, "file_sizes": 40, "equality_deletes": 40, "position_deletes": 20}
    assert (first["weight"], first["gain_per_gb_hour"]) == (1, first["files_per_gb_hour"]), "a tiny healthy table"
    assert report["held"] == []
    done = invoke(config, *arguments)
    assert done.exit_code == 0, done.output
    assert done.stdout.index(".many") < done.stdout.index(".few")


def test_catalog_is_down(config: Path, catalog_config: CatalogConfig) -> None:
    config.write_text(catalog_config.model_copy(update={"uri": "http://127.0.0.1:9/catalog"}).to_json())
    done = invoke(config, "maintain")
    assert isinstance(done.exception, LakewrightSparkError)
    assert done.exception.exit_code == 6


def test_runs_list_and_show(config: Path, catalog_config: CatalogConfig) -> None:
    catalog = open_catalog(catalog_config, "results")
    now = datetime.now(UTC)
    table = TableIdentifier("results", ("a.b",), f"t_{uuid.uuid4().hex[:6]}")
    queued = RunRecord(runner="h/1/a", table=table, table_uuid="u", job="compaction", reason="new", queued_at=now)
    began = dataclasses.replace(queued, state=RunState.RUNNING, started_at=now)
    ended = dataclasses.replace(
        began,
        state=RunState.FAILED,
        reason="no space",
        finished_at=now + timedelta(seconds=2),
        metrics={"rewritten": 3},
    )
    other = dataclasses.replace(queued, id=uuid.uuid4().hex, job="statistics")
    for number, rows in enumerate([[queued, other], [began], [ended]]):
        job_runs.append(catalog, rows, now - timedelta(seconds=number))  # with a clock that is set back
    name = str(table).partition(".")[2]
    runs = json.loads(invoke(config, "runs", "list", "--table", name, "--json").stdout)
    assert {(run["job"], run["state"]) for run in runs} == {("compaction", "FAILED"), ("statistics", "QUEUED")}
    listing = invoke(config, "runs", "list", "--table", name, "--state", "failed", "--job", "compaction").stdout
    assert ended.id[:8] in listing
    assert other.id[:8] not in listing
    run = json.loads(invoke(config, "runs", "show", ended.id[:12], "--json").stdout)
    assert (run["table"], run["seconds"], run["metrics"]) == (str(table), 2, {"rewritten": 3})
    assert "no space" in invoke(config, "runs", "show", ended.id).stdout
    assert invoke(config, "runs", "list", "--state", "lost").exit_code == 2
    missing = invoke(config, "runs", "show", "0" * 32)
    assert isinstance(missing.exception, LakewrightSparkError)
    assert missing.exception.exit_code == 5
