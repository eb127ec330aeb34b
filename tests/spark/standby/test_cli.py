"""The commands of a standby, with configurations in files."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from lakewright_spark.cli import app
from lakewright_spark.errors import StandbyError
from rest_views import set_comment
from typer.testing import CliRunner, Result

from tests.spark.standby.conftest import Pair, build_rows


@pytest.fixture
def files(pair: Pair, tmp_path: Path) -> list[str]:
    """Return the options that name both configurations."""
    return write_configs(pair, tmp_path)


def write_configs(pair: Pair, tmp_path: Path) -> list[str]:
    (tmp_path / "main.json").write_text(pair.source.to_json())
    (tmp_path / "standby.json").write_text(pair.standby.to_json())
    return ["--from", str(tmp_path / "main.json"), "--to", str(tmp_path / "standby.json")]


def run(command: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["standby", command, *options])


def test_commands_of_a_standby(pair: Pair, files: list[str]) -> None:
    table = pair.add_table("sales.orders")
    pair.add_table("sales.returns")
    missing = run("status", *files, "--json")
    assert {row["name"]: row["state"] for row in json.loads(missing.stdout)["tables"]} == {
        "sales.orders": "missing",
        "sales.returns": "missing",
    }
    copied = run("copy", *files, "--table", "sales.o*")
    assert copied.exit_code == 0, copied.output
    assert "1 current" in copied.stdout
    assert run("copy", *files).exit_code == 0
    assert run("status", *files, "--max-lag", "1h").exit_code == 0
    table.append(build_rows(1))
    late = run("status", *files, "--max-lag", "1s", "--json")
    (behind, current) = json.loads(late.stdout)["tables"]
    assert (behind["state"], behind["snapshots"], current["state"]) == ("behind", 1, "current")
    assert 0 < behind["lag"] < timedelta(hours=1).total_seconds()
    promoted = run("promote", *files, "--json")
    assert {row["state"] for row in json.loads(promoted.stdout)["tables"]} == {"promoted"}
    refused = run("copy", *files)
    assert str(refused.exception).endswith("expected tables to copy, found none"), "promoted tables have another name"


def test_views_are_counted_apart(rest_pair: Pair, tmp_path: Path) -> None:
    files = write_configs(rest_pair, tmp_path)
    copied = run("copy", *files)
    assert copied.exit_code == 0, copied.output
    assert copied.stdout.splitlines()[-2:] == ["no tables", "views: 1 current"]
    rows = json.loads(run("status", *files, "--json").stdout)["tables"]
    assert [(row["name"], row["state"], row["is_view"]) for row in rows] == [("sales.large_orders", "current", True)]
    set_comment(rest_pair.copied_views, "by a user")
    written = run("status", *files)
    assert str(written.exception).startswith("1 of 1 tables and views need attention: sales.large_orders")


@pytest.mark.parametrize("pair", ["from-database"], indirect=True)
def test_bundle_of_a_lost_source_is_not_read(pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.add_table("sales.orders")
    pair.copy()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "")  # restored afterwards
    pair.source = pair.source.model_copy(update={"ca_bundle": "/lost/ca.pem"})

    promoted = run("promote", *write_configs(pair, tmp_path), "--source-lost")

    assert promoted.exit_code == 0, promoted.output
    assert os.environ["REQUESTS_CA_BUNDLE"] == "", "requests to the standby trust what they trusted before"


@pytest.mark.parametrize("pair", ["from-database"], indirect=True)
def test_mistakes_are_refused(pair: Pair, files: list[str]) -> None:
    same = run("status", *files[:2], "--to", files[1])
    assert str(same.exception) == "--from and --to: expected two warehouses, found the same warehouse twice"
    nothing = run("promote", *files)
    assert str(nothing.exception).endswith("found none")
    pair.catalog.create_namespace_if_not_exists("sales")
    pair.catalog.create_table("sales.orders", build_rows(1).schema, properties={"write.data.path": "s3://else/where"})
    failed = run("copy", *files)
    assert isinstance(failed.exception, StandbyError)
    assert "files outside of its location (write.data.path)" in str(failed.exception)
    assert failed.exception.exit_code == 17
