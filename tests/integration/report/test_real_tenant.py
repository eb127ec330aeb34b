"""The report and the page of a preview, made from a real tenant in the sandbox."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.command_server import run_command

pytestmark = pytest.mark.long

TENANT = "reported"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    assert run_command(["init", ".", "--name", "lake"], folder, os.environ).returncode == 0
    file = folder / "Pulumi.yaml"
    file.write_text(file.read_text().replace(".venv", str(Path(sys.prefix))))
    return folder


@pytest.fixture(scope="module")
def deployed(project: Path, sandbox: Sandbox) -> Iterator[Path]:
    """Return the project with a tenant, the page of the preview before its creation, and drift."""
    create = ("new", TENANT, "--owner", "data@acme.example", "--bucket", "report-acme", "--namespace", "sales.daily")
    run(project, sandbox, *create, "--deletion", "purge")
    run(project, sandbox, "stack", "init", TENANT)
    run(project, sandbox, "preview", TENANT, "--engine", "embedded", "--html", "preview.html")
    run(project, sandbox, "up", TENANT, "--yes", "--engine", "embedded")
    yield project
    run(project, sandbox, "destroy", TENANT, "--yes", "--engine", "embedded")


def run(project: Path, sandbox: Sandbox, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    variables = {"PULUMI_CONFIG_PASSPHRASE": "x", "LAKEWRIGHT_SANDBOX": str(sandbox.credentials_file.parent)}
    done = run_command(arguments, project, os.environ | variables)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def read_model(page: Path) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert match
    return json.loads(match[1])


def test_report_collects_the_tenant(deployed: Path, sandbox: Sandbox) -> None:
    done = run(deployed, sandbox, "report", "--out", "public")
    model = read_model(deployed / "public" / "index.html")
    (tenant,) = model["tenants"]

    assert done.stdout.strip() == str(deployed / "public" / "index.html")
    assert {source["kind"]: source["error"] for source in model["sources"]} == dict.fromkeys(
        ("list", "drift", "check", "verify", "usage", "runs", "status"), ""
    )
    assert (tenant["tenant"], tenant["owner"], tenant["level"]) == (TENANT, "data@acme.example", "ok")
    assert tenant["state"]["text"] == "update succeeded"
    assert tenant["drift"]["text"] == "none"
    assert tenant["usage"]["is_measured"]
    assert tenant["runs"]["problems"] == []
    assert tenant["declared"]["buckets"][0]["bucket"] == "report-acme"
    assert "sales.daily" in tenant["declared"]["warehouses"][0]["namespaces"]


def test_fleet_report_uses_the_files_of_other_jobs(deployed: Path, sandbox: Sandbox) -> None:
    drift = run(deployed, sandbox, "drift", TENANT, "--json").stdout
    (deployed / "nightly").mkdir()
    (deployed / "nightly" / "drift.json").write_text(drift)
    run(deployed, sandbox, "fleet", "report", "--out", "public", "--from", "nightly")
    model = read_model(deployed / "public" / "index.html")

    assert [source["kind"] for source in model["sources"] if source["at"]] == ["drift"]
    assert model["tenants"][0]["usage"] is None


def test_failed_commands_are_in_the_report(deployed: Path, sandbox: Sandbox) -> None:
    """`drift` prints its error as JSON, `fleet list` on standard error."""
    options = ("--stack", "nothing", "--collect", "list", "--collect", "drift")
    done = run(deployed, sandbox, "report", "--out", "broken", *options, code=1)
    model = read_model(deployed / "broken" / "index.html")

    errors = {source["kind"]: source["error"] for source in model["sources"] if source["error"]}
    assert errors.keys() == {"list", "drift"}
    assert all("matches none" in error for error in errors.values()), errors
    assert "error: lakewright drift --json: --stack 'nothing' matches none" in done.stderr


def test_failed_command_beside_an_older_file(tmp_path: Path) -> None:
    """The project has no stack, so `drift` fails. The page has the older result, and the report fails."""
    assert run_command(["init", ".", "--name", "empty"], tmp_path, os.environ).returncode == 0
    file = tmp_path / "Pulumi.yaml"
    file.write_text(file.read_text().replace(".venv", str(Path(sys.prefix))))
    entry = {"stack": "acme", "differences": [], "problems": []}
    document = {"version": 1, "command": "drift", "at": "2026-01-01T00:00:00Z", "stacks": [entry]}
    (tmp_path / "drift.json").write_text(json.dumps(document))
    options = ("--from", "drift.json", "--collect", "drift")
    done = run_command(["report", "--out", "public", *options], tmp_path, os.environ)
    model = read_model(tmp_path / "public" / "index.html")

    assert done.returncode == 1
    assert "error: lakewright drift --json: " in done.stderr
    assert [source["level"] for source in model["sources"] if source["kind"] == "drift"] == ["bad"]
    assert model["tenants"][0]["drift"]["as_of"] == "2026-01-01T00:00:00Z"


def test_preview_page_has_whole_policies(deployed: Path) -> None:
    changes = read_model(deployed / "preview.html")
    documents = {
        (step["type"], document["title"]): document["lines"]
        for step in changes["steps"]
        for document in step["documents"]
    }
    policies = [lines for (kind, title), lines in documents.items() if kind.startswith("aws:") and "olicy" in title]

    assert changes["changes"]["create"] == len(changes["steps"])
    assert len(policies) >= 2
    assert all(sign == "+" for lines in policies for sign, _ in lines)
    assert any('"Version": "2012-10-17"' in text for lines in policies for _, text in lines)
    assert all(not line.startswith("__") for lines in documents.values() for _, line in lines)
