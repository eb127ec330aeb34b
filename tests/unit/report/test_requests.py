"""The request for a report: a selection limits everything that files say, and collected lists are complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lakewright.fleet.selection import Selection
from lakewright.report import collection
from lakewright.report.requests import ReportRequest
from lakewright.report.sources import SourceKind
from lakewright_engine.project.project import PulumiProject


@pytest.fixture
def project(tmp_path: Path) -> PulumiProject:
    """Return a project with the stacks acme, globex and initech."""
    file = tmp_path / "Pulumi.yaml"
    file.write_text("name: lake\nruntime: python\n")
    for name in ("acme", "globex", "initech"):
        (tmp_path / f"Pulumi.{name}.yaml").write_text("config: {}\n")
    return PulumiProject(file, "lake", stack_config_dir=tmp_path)


@pytest.fixture
def drift_file(tmp_path: Path) -> Path:
    groups = [
        {"text": "role of initech changed by eve", "stacks": ["acme", "initech"]},
        {"text": "Warehouse changed by alice", "stacks": ["acme", "globex"]},
    ]
    stacks = [{"stack": name, "differences": [], "problems": []} for name in ("acme", "globex", "initech")]
    document = {"version": 1, "command": "drift", "at": "2026-12-31T00:00:00Z", "stacks": stacks, "groups": groups}
    file = tmp_path / "drift.json"
    file.write_text(json.dumps(document))
    return file


def build(project: PulumiProject, patterns: tuple[str, ...], file: Path) -> dict[str, Any]:
    return ReportRequest(project, Selection(patterns), [file]).build(print)


def test_selection_limits_stacks_and_causes(project: PulumiProject, drift_file: Path) -> None:
    model = build(project, ("acme",), drift_file)

    assert [tenant["stack"] for tenant in model["tenants"]] == ["acme"]
    assert model["causes"] == []


def test_cause_of_selected_stacks_remains(project: PulumiProject, drift_file: Path) -> None:
    model = build(project, ("acme", "globex"), drift_file)

    assert model["causes"] == [{"text": "Warehouse changed by alice", "stacks": ["acme", "globex"]}]


def test_command_that_fails_makes_a_collected_source(tmp_path: Path) -> None:
    """The folder has no project, so the command fails."""
    (source,) = collection.collect_sources([SourceKind.LIST], ["--all"], tmp_path, print)

    assert source.is_collected
    assert "Pulumi.yaml" in source.error
