"""Tenants for tests: each has its own project folder and state, on a sandbox or on the user's servers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from pyiceberg.catalog import Catalog, load_catalog

from tests.command_server import run_command
from tests.python_server import find_environment
from tests.real_servers import RealServers, leave_out

REPOSITORY = Path(__file__).parents[1]
PASSPHRASE = "correct horse battery staple"
ENCRYPTION_SALT = "v1:dAwsDjPaCGg=:v1:udJWph+Ts/HzZnvb:0CvdZmYPEXztnrLGYLPFExhSmLewZQ=="
"""A salt for the passphrase. Tenants share it, so that a worker derives the key of their secrets once."""


@dataclass
class Tenant:
    """One tenant: its spec, and the commands on its stack."""

    folder: Path
    sandbox: Sandbox
    spec: dict[str, Any]
    environ: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    """Output of all commands."""
    real: RealServers | None = None
    """The user's servers, under `make test-real`."""

    @property
    def name(self) -> str:
        return self.spec["name"]

    @property
    def bucket(self) -> str:
        return self.spec["storage"]["main"]["bucket"]

    def write(self) -> None:
        """Write the spec as the stack's file; keep its encryption salt."""
        if self.real:
            stores = self.spec.get("storage", {}).values()  # none where the spec extends a file with them
            if any(store["backend"] != "s3" or not store.keys() <= self.real.store.keys() for store in stores):
                leave_out("makes buckets, keys or roles on AWS")
        file = self.folder / "tenants" / f"Pulumi.{self.name}.yaml"
        document = yaml.safe_load(file.read_text()) if file.exists() else {"encryptionsalt": ENCRYPTION_SALT}
        document["config"] = {"lakewright:tenant": self.spec}
        file.write_text(yaml.safe_dump(document, sort_keys=False))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the stack and return its process, also after a failure."""
        env = {
            **os.environ,
            "PULUMI_BACKEND_URL": (self.folder / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            **self.environ,
        }
        done = run_command([*arguments, "--stack", self.name], self.folder, env)
        self.outputs += [done.stdout, done.stderr]
        return done

    def output(self, *arguments: str) -> str:
        """Return the output of a command that must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def error(self, *arguments: str) -> str:
        """Return the output of a command that must fail without a traceback."""
        done = self.run(*arguments)
        text = done.stdout + done.stderr
        assert done.returncode != 0, text
        assert "Traceback" not in text
        return text

    def list_resource_kinds(self) -> set[str]:
        """Return the kinds of resources in the stack's state."""
        state = json.loads(self.output("stack", "export"))
        return {resource["type"].rsplit(":", 1)[-1] for resource in state["deployment"].get("resources") or []}

    def verb(self, *arguments: str) -> dict[str, Any]:
        """Return the result of one of the four verbs on the embedded engine, which must succeed."""
        return json.loads(self.output(*arguments, "--engine", "embedded", "--json"))

    def up(self, *arguments: str) -> dict[str, Any]:
        return self.verb("up", "--yes", *arguments)

    def catalog_config(self) -> CatalogConfig:
        return CatalogConfig.from_json(self.output("config", "--format", "json"))

    def catalog(self, warehouse: str) -> Catalog:
        """Return a PyIceberg catalog with the generated configuration and no other setting."""
        return load_catalog(warehouse, **self.catalog_config().pyiceberg(warehouse))


MakeTenant = Callable[..., Tenant]


def list_changes(result: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return the changes in a run's result: operation, kind and name."""
    return {
        (step["op"], step["type"].rsplit(":", 1)[-1], step["name"])
        for step in result["steps"]
        if step["op"] not in {"same", "refresh", "read"} and step["type"] != "pulumi:pulumi:Stack"
    }


def create_project(folder: Path, environment: dict[str, Any]) -> None:
    """Make a project folder with the repository's program and an environment named `sandbox`."""
    for part in ("tenants", "environments", "state"):
        (folder / part).mkdir(parents=True)
    for file in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(REPOSITORY / file, folder)
    (folder / ".venv").symlink_to(find_environment())
    (folder / "environments" / "sandbox.yaml").write_text(yaml.safe_dump(environment))


def tenant_spec(name: str, store: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a tenant with a warehouse `executions` and a namespace `results`."""
    return {
        "version": 1,
        "environment": "sandbox",
        "name": name,
        "owner": "tests",
        "storage": {"main": store},
        "warehouses": [{"name": "executions", "namespaces": ["results"], "deletion": "purge"}],
    }


def new_name() -> str:
    """Return an unused name of a tenant."""
    return f"t{uuid4().hex[:10]}"
