"""`lakewright upgrade`: a project of an earlier version becomes one of this version, and nothing else changes."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.command_server import run_command

SPEC = """\
# yaml-language-server: $schema=../docs/schema/tenant.schema.json
config:
  lakewright:config:tenant:  # the spec
    version: 1
    environment: sandbox
    name: acme
    owner: acme
    storage: {main: {backend: aws, bucket: acme-lake}}
    warehouses: [{name: raw}]
"""


def run_lakewright(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(arguments, folder, dict(os.environ))


@pytest.fixture
def older_project(tmp_path: Path) -> Path:
    """Return a project of 0.1 as the examples of that version made it."""
    assert run_lakewright(tmp_path, "init", ".", "--cloud", "sandbox", "--ci", "github").returncode == 0
    (tmp_path / "__main__.py").write_text("from lakewright.program import declare_tenant\n\ndeclare_tenant()\n")
    (tmp_path / "requirements.txt").write_text("# ours\nlakewright[aws]==0.0.9  # pinned\nhttpx==0.28.1\n")
    (tmp_path / "tenants" / "Pulumi.acme.yaml").write_text(SPEC)
    (tmp_path / "schema" / "tenant.schema.json").unlink()
    workflow = tmp_path / ".github" / "workflows" / "drift.yml"
    command = "python -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt"
    workflow.write_text(workflow.read_text().replace(command, "make setup"))
    return tmp_path


def test_upgrade_shows_the_differences_and_writes_them(older_project: Path) -> None:
    before = {path: path.read_bytes() for path in older_project.rglob("*") if path.is_file()}
    checked = run_lakewright(older_project, "upgrade", "--check")
    unasked = run_lakewright(older_project, "upgrade")
    assert before == {path: path.read_bytes() for path in older_project.rglob("*") if path.is_file()}
    written = run_lakewright(older_project, "upgrade", "--yes")
    second_check = run_lakewright(older_project, "upgrade", "--check")

    assert (checked.returncode, unasked.returncode, written.returncode, second_check.returncode) == (1, 2, 0, 0)
    for line in (
        "-from lakewright.program import declare_tenant",
        "+from lakewright import declare_tenant",
        "-lakewright[aws]==0.0.9  # pinned",
        f"+lakewright[aws]=={version('lakewright')}  # pinned",
        "-  lakewright:config:tenant:  # the spec",
        "+  lakewright:tenant:  # the spec",
        "schema/tenant.schema.json: new",
    ):
        assert line in checked.stdout, line
    assert "5 files differ" in unasked.stderr
    assert "has the files of this version" in second_check.stdout
    assert "httpx==0.28.1" in (older_project / "requirements.txt").read_text()
    assert "make setup" not in (older_project / ".github" / "workflows" / "drift.yml").read_text()
    assert run_lakewright(older_project, "spec", "validate").returncode == 0


def test_upgrade_keeps_requirements_that_a_user_added(tmp_path: Path) -> None:
    assert run_lakewright(tmp_path, "init", ".", "--cloud", "sandbox").returncode == 0
    file = tmp_path / "requirements.txt"
    written = file.read_text()
    added = "--extra-index-url https://pypi.example/simple\nour-policies==1.2  # reviewed\nhttpx\n"
    file.write_text(written.replace(f"=={version('lakewright')}", "==0.0.9") + added)

    assert run_lakewright(tmp_path, "upgrade", "--yes").returncode == 0

    assert file.read_text() == written + added


def test_upgrade_replaces_generated_pins_by_constraints(tmp_path: Path) -> None:
    assert run_lakewright(tmp_path, "init", ".", "--cloud", "sandbox").returncode == 0
    file = tmp_path / "requirements.txt"
    written = file.read_text()
    pins = "anyio==4.0.0\npulumi==3.1.0\nhttpx\n"
    file.write_text(written.replace("-c constraints.txt\n", "") + pins + "our-policies==1.2\n")

    assert run_lakewright(tmp_path, "upgrade", "--yes").returncode == 0

    assert file.read_text() == f"{written}httpx\nour-policies==1.2\n"


def test_new_project_needs_no_upgrade(tmp_path: Path) -> None:
    assert run_lakewright(tmp_path, "init", ".", "--cloud", "sandbox").returncode == 0

    assert run_lakewright(tmp_path, "upgrade", "--check").returncode == 0


def test_options_that_contradict_are_refused(tmp_path: Path) -> None:
    done = run_lakewright(tmp_path, "upgrade", "--check", "--yes")

    assert done.returncode == 2
    assert "give one of them" in done.stderr
