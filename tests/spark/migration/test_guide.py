"""The commands of the guide work as written."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
import typer
from jdbc_catalog import jdbc_catalog_config
from lakewright_spark.cli import app
from lakewright_spark.errors import MigrationError
from lakewright_spark.execution_registry.texera import TexeraExecutions
from lakewright_spark.results.reader import ResultReader
from migration_catalogs import OLD, Catalogs, build_catalogs, count_rows
from projects import Project
from texera_database import TexeraDatabase, write_results

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "migration.md"


def read_commands() -> list[list[str]]:
    lines = re.findall(r"^\$ lakewright-spark (.*)$", GUIDE.read_text(), re.MULTILINE)
    return [[os.path.expandvars(word) for word in shlex.split(line)] for line in lines]


def run(arguments: list[str]) -> None:
    typer.main.get_command(app).main(arguments, prog_name="lakewright-spark", standalone_mode=False)


def write_configs(catalogs: Catalogs, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "old.json").write_text(catalogs.source.to_json())
    (folder / "new.json").write_text(catalogs.target.to_json())
    monkeypatch.chdir(folder)


def test_commands_of_the_guide(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    catalogs.add_table("sales.orders")
    write_configs(catalogs, tmp_path, monkeypatch)
    outputs: list[str] = []
    for command in (command for command in read_commands() if not {"--texera", "--grants"} & set(command)):
        run(command)
        outputs.append(capsys.readouterr().out)
    steps = ["planned", "verified", "cut over", "undone", "verified", "cut over", "finished"]
    assert [re.findall(r"^1 (.*?);", output, re.MULTILINE) for output in outputs] == [[step] for step in steps]
    assert re.search(r"sales.orders +results +register +planned +6 ", outputs[0])
    assert "loss:" not in outputs[0]
    stop = re.compile(r"^writers of a table were stopped for at most \d+\.\d s \(sales\.orders\)$", re.MULTILINE)
    assert [bool(stop.search(output)) for output in outputs] == [step in {"cut over", "finished"} for step in steps]
    assert count_rows(catalogs.open_target(), "sales.orders") == 6


@pytest.mark.long
def test_texera_commands_of_the_guide(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_project = Project(project.server, project.sandbox, project.real)
    target = own_project.config(own_project.warehouse("user-3-main"))
    source = jdbc_catalog_config(
        project.sandbox, f"sqlite:///{tmp_path}/old.db", monkeypatch, own_project.location("shared")
    )
    catalogs = Catalogs(source, target, tmp_path / "migration.db", project.sandbox, target_warehouse=None)
    texera = TexeraDatabase(f"sqlite:///{tmp_path}/texera.db")
    results = write_results(source, OLD, texera.add_execution(1, user=3))
    monkeypatch.setenv("TEXERA_DATABASE", texera.url)
    write_configs(catalogs, tmp_path, monkeypatch)
    commands = [command for command in read_commands() if "--texera" in command]
    assert len(commands) == 3
    for command in commands:
        run(command)
    assert "3 finished" in capsys.readouterr().out
    executions = TexeraExecutions(texera.url)
    reader = ResultReader(target, executions=executions)
    assert all(reader.read_all(uri) == rows for uri, rows in results.items())
    executions.close()


def test_refused_command_lines(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    write_configs(catalogs, tmp_path, monkeypatch)
    options = ["migrate", "--from", "old.json", "--to", "new.json"]
    with pytest.raises(typer.BadParameter, match="at most one of --plan, --cut-over, --undo and --finish"):
        run([*options, "--undo", "--finish"])
    with pytest.raises(typer.BadParameter, match="expected no --to-warehouse"):
        run([*options, "--texera", "sqlite:///x", "--to-warehouse", "results"])
    with pytest.raises(typer.BadParameter, match="expected no --grants"):
        run([*options, "--texera", "sqlite:///x", "--plan", "--grants"])
    with pytest.raises(typer.BadParameter, match="--grants: expected --plan or --cut-over"):
        run([*options, "--grants"])
    with pytest.raises(MigrationError, match="expected two warehouses"):
        run(["migrate", "--from", "new.json", "--to", "new.json"])
    with pytest.raises(MigrationError, match="expected tables to migrate, found none"):
        run(options)
    (tmp_path / "other.json").write_text((tmp_path / "old.json").read_text().replace("old.db", "other.db"))
    with pytest.raises(MigrationError, match="Give another --ledger"):
        run(["migrate", "--from", "other.json", "--to", "new.json"])
    (tmp_path / "text.db").write_text("no database at all, but long enough to be one of the files that are refused")
    with pytest.raises(MigrationError, match=r"ledger text.db cannot be used"):
        run([*options, "--ledger", "text.db"])
