"""Tenants with units, members and grants, on a sandbox of their own that enforces OpenFGA's rules."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.ground import EMBEDDED, ColdStage, Ground
from demo.stage import BIN, REPOSITORY

NAMES = ("acme", "globex")
COLUMNS = [{"name": "id", "type": "long"}]

Json = dict[str, Any]


@dataclass(frozen=True)
class GrantedTenants:
    """A project whose stacks are deployed tenants."""

    stage: ColdStage
    folder: Path
    ground: Ground

    def environment(self) -> dict[str, str]:
        """Return the variables of commands on these stacks."""
        return self.stage.settings() | {"PULUMI_BACKEND_URL": (self.folder / "state").as_uri()}

    def run(self, *arguments: str, **more: str) -> None:
        """Run a command of `lakewright` in the project."""
        command = [str(BIN / "lakewright"), *arguments, "-C", str(self.folder)]
        self.ground.run(command, self.environment() | more)


@contextmanager
def deploy_tenants(ground: Ground) -> Iterator[GrantedTenants]:
    """Start a sandbox that enforces grants, and deploy the tenants; stop it at the end."""
    with tempfile.TemporaryDirectory(prefix="granted-", dir=ground.stage.folder) as name:
        stage, folder = ColdStage(Path(name)), Path(name) / "project"
        stage.output("lakewright", "sandbox", "up", "--dir", str(stage.sandbox), "--authz", "openfga")
        try:
            _create_project(folder, stage.sandbox)
            tenants = GrantedTenants(stage, folder, ground)
            for tenant in NAMES:
                text = yaml.safe_dump({"config": {"lakewright:tenant": _spec(tenant)}})
                (folder / "tenants" / f"Pulumi.{tenant}.yaml").write_text(text)
            for tenant in NAMES:
                tenants.run("stack", "init", "--stack", tenant)
                tenants.run("up", "--stack", tenant, "--yes", *EMBEDDED)
            yield tenants
        finally:
            stage.output("lakewright", "sandbox", "down", "--dir", str(stage.sandbox))


def _create_project(folder: Path, sandbox: Path) -> None:
    for part in ("tenants", "environments", "state"):
        (folder / part).mkdir(parents=True)
    for file in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(REPOSITORY / file, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    environment = {"sandbox": str(sandbox), "kubernetes": {"render_to": str(folder / "rendered")}}
    (folder / "environments" / "sandbox.yaml").write_text(yaml.safe_dump(environment))


def _spec(name: str) -> Json:
    return {
        "version": 1,
        "environment": "sandbox",
        "name": name,
        "owner": "bench",
        "storage": {"main": {"backend": "aws", "bucket": f"{name}-granted"}},
        "warehouses": [
            {"name": "executions", "namespaces": ["results", "ops", "sales"], "deletion": "purge"},
            {"name": "raw", "namespaces": ["events"], "deletion": "purge"},
            {"name": "signed", "delegation": "remote-signing", "deletion": "purge"},
        ],
        "computing_units": [
            {"name": "unit", "runtime": "spark", "warehouses": "all"},
            {"name": "batch", "runtime": "spark", "warehouse": "raw"},
        ],
        "tables": [{"name": f"executions.results.t{number}", "columns": COLUMNS} for number in range(4)],
        "grants": [
            {"to": "role:analysts", "privilege": "select", "on": {"warehouse": "executions"}},
            {
                "to": "role:engineers",
                "privilege": "modify",
                "on": {"warehouse": "executions", "namespace": "results"},
            },
            {"to": "role:auditors", "privilege": "describe", "on": {"warehouse": "executions", "table": "results.t1"}},
            {"to": "role:analysts", "privilege": "describe", "on": {"project": True}},
            {"to": "user:oidc~ben", "privilege": "create", "on": {"warehouse": "raw"}},
        ],
        "role_members": {
            "analysts": {"users": ["oidc~ann", "oidc~ben"]},
            "engineers": {"users": ["oidc~cat"]},
        },
    }
