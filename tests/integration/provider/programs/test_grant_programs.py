"""Grants in programs, on both engines: conflicting resources are refused before any creation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_server import run_command

PROGRAM = """
import os, pulumi
from lakewright.lakekeeper import Grant, Grants, Role, RoleMembers

server = {"endpoint": "http://127.0.0.1:9"}
role = Role("analysts", server=server, project_id="acme", name="analysts")
known = {"type": "project", "project_id": "acme"}
unknown = {"type": "role", "project_id": "acme", "role_id": role.role_id}
ann = {"privilege": "describe", "user": "oidc~ann"}
match os.environ["CASE"]:
    case "known":
        Grants("all-of-acme", server=server, on=known, grants=[ann])
        Grant("for-ann", server=server, on=known, **ann)
    case "unknown":
        Grant("for-ann", server=server, on=unknown, privilege="ownership", user="oidc~ann")
        Grants("all-of-acme", server=server, on=dict(unknown), grants=[])
    case "members":
        RoleMembers("all-of-acme", server=server, project_id="acme", role_id=role.role_id, users=["oidc~bob"])
        Grant("for-ann", server=server, on=unknown, privilege="assignee", user="oidc~ann")
    case "apart":
        RoleMembers("all-of-acme", server=server, project_id="acme", role_id=role.role_id, users=["oidc~bob"])
        Grants("owners", server=server, on=unknown, grants=[])
        Grant("for-ann", server=server, on=known, **ann)
        Grant("for-bob", server=server, on=known, privilege="describe", user="oidc~bob")
"""


CASES = {"known": ("Grants", "grants"), "unknown": ("Grants", "grants"), "members": ("RoleMembers", "members")}
"""The resource that owns all grants, and its object, by the target that a first preview knows."""


@pytest.mark.parametrize("engine", ["embedded", pytest.param("pulumi", marks=pytest.mark.pulumi_cli)])
def test_preview_refuses_conflicting_grants(tmp_path: Path, engine: str) -> None:
    (tmp_path / "__main__.py").write_text(PROGRAM)
    runtime = {"name": "python", "options": {"virtualenv": sys.prefix}}
    (tmp_path / "Pulumi.yaml").write_text(json.dumps({"name": "grants", "runtime": runtime}))
    (tmp_path / "state").mkdir()
    lakewright(tmp_path, "stack", "init").check_returncode()

    for case, (owner, kind) in CASES.items():
        completed = lakewright(tmp_path, "preview", "--engine", engine, case=case)
        message = " ".join((completed.stdout + completed.stderr).split())
        assert completed.returncode != 0
        assert (
            f"{owner} `all-of-acme` owns all {kind} there, and would take away what Grant `for-ann` gives. Declare it"
            " in `all-of-acme`, or give everything there by `Grant` alone"
        ) in message
        assert "lakewright/lakekeeper" not in message  # No traceback of the provider.

    beside = lakewright(tmp_path, "preview", "--engine", engine, case="apart")
    assert beside.returncode == 0, beside.stdout + beside.stderr


def lakewright(folder: Path, *arguments: str, case: str = "") -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PULUMI_BACKEND_URL": f"file://{folder}/state",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "CASE": case,
    }
    return run_command([*arguments, "--stack", "test"], folder, environment)
