"""The fleet's commands on real tenants of a sandbox."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from lakewright_sandbox.runtime.state import Sandbox

from tests.command_server import run_command
from tests.integration.fleet.conftest import statuses
from tests.tenant_project import PASSPHRASE, create_project, new_name, tenant_spec

pytestmark = pytest.mark.xdist_group("fleet")


@pytest.mark.stand_in("surveys all objects of a server")
def test_tenants_are_deployed_listed_and_measured(tmp_path: Path, sandbox: Sandbox) -> None:
    folder = tmp_path / "project"
    create_project(folder, {"sandbox": str(sandbox.dir), "kubernetes": {"render_to": str(folder / "rendered")}})
    names = sorted([new_name(), new_name()])
    for name in names:
        spec = tenant_spec(name, {"backend": "aws", "bucket": f"{name}-lakehouse"})
        spec["tables"] = [{"name": "executions.results.orders", "columns": [{"name": "id", "type": "long"}]}]
        file = folder / "tenants" / f"Pulumi.{name}.yaml"
        file.write_text(yaml.safe_dump({"config": {"lakewright:tenant": spec}}))
    environ = {
        **os.environ,
        "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "LAKEWRIGHT_WARM": "0",
    }

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(arguments, folder, environ)

    assert call("stack", "init", names[0]).returncode == 0
    updated = call("fleet", "up", "--yes", "--stack", names[0], "--engine", "embedded", "--json")
    report = json.loads(call("fleet", "list", "--json").stdout)
    unmanaged = json.loads(call("fleet", "list", "--unmanaged", "--json").stdout)
    used = call("fleet", "usage", "--json")

    assert statuses(json.loads(updated.stdout)) == {names[0]: "changed"}, updated.stdout + updated.stderr
    states = {entry["stack"]: (entry["has_state"], entry["last_result"]) for entry in report["stacks"]}
    assert states == {names[0]: (True, "succeeded"), names[1]: (False, "")}
    assert unmanaged["coverage"]["kinds"]["warehouse"]["managed"] == 1
    usage = json.loads(used.stdout)
    assert used.returncode == 0, used.stdout + used.stderr
    assert usage["stacks"][0]["usage"]["total"]["tables"] == 1
    assert [(entry["deployed"], entry["problem"]) for entry in usage["stacks"]] == [(True, ""), (False, "")]
    assert [owner["owner"] for owner in usage["owners"]] == [names[0]]
