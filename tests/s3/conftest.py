"""Tenants on a real S3 store: a sandbox whose store is MinIO, with STS. `make test-s3` runs these tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
import yaml
from botocore.config import Config
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime.state import Sandbox, StoreState
from lakewright_spark.catalog import CatalogConfig
from pyiceberg.catalog import Catalog, load_catalog

REPOSITORY = Path(__file__).parents[2]
LAKEWRIGHT = Path(sys.executable).with_name("lakewright")
STORE = os.environ.get("TEST_S3", "minio")
"""`minio`, or the address of a running store, as for `lakewright sandbox up --s3`."""


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Start one sandbox with a real store for all tests."""
    directory = tmp_path_factory.mktemp("sandbox")
    yield lifecycle.bring_up(directory, lifecycle.SandboxOptions(s3=STORE)).sandbox
    lifecycle.down(directory)


@pytest.fixture
def store(sandbox: Sandbox) -> StoreState:
    """The real store."""
    assert sandbox.store is not None
    return sandbox.store


def read_secret(reference: str) -> str:
    return Path(reference.removeprefix("file:")).read_text()


@pytest.fixture
def s3(store: StoreState) -> Callable[..., Any]:
    """A function that returns S3 clients of the store, with its administrator's key or the given one."""

    def client(**keys: str | None) -> Any:
        admin = {
            "aws_access_key_id": read_secret(store.access_key_id),
            "aws_secret_access_key": read_secret(store.secret_access_key),
        }
        config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
        return boto3.client(
            "s3", endpoint_url=store.endpoint, region_name=store.region, config=config, **(keys or admin)
        )

    return client


@dataclass
class StoreTenant:
    """One tenant on the store: its spec, and the commands on its stack."""

    folder: Path
    sandbox: Sandbox
    spec: dict[str, Any]
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.spec["name"]

    @property
    def storage(self) -> dict[str, Any]:
        return self.spec["storage"]["main"]

    @property
    def bucket(self) -> str:
        return self.storage["bucket"]

    def write(self) -> None:
        """Write the spec as the stack's file; keep its encryption salt."""
        file = self.folder / "tenants" / f"Pulumi.{self.name}.yaml"
        document = yaml.safe_load(file.read_text()) if file.exists() else {}
        document["config"] = {"lakewright:tenant": self.spec}
        file.write_text(yaml.safe_dump(document, sort_keys=False))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the stack and return its process, also after a failure."""
        env = {
            **os.environ,
            "PULUMI_BACKEND_URL": (self.folder / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "correct horse battery staple",
            **self.environ,
        }
        command = [LAKEWRIGHT, *words, "--stack", self.name]
        return subprocess.run(command, cwd=self.folder, env=env, check=False, capture_output=True, text=True)

    def output(self, *words: str) -> str:
        """Return the output of a command that must succeed."""
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def error(self, *words: str) -> str:
        """Return the output of a command that must fail without a traceback."""
        done = self.run(*words)
        text = done.stdout + done.stderr
        assert done.returncode != 0, text
        assert "Traceback" not in text
        return text

    def verb(self, *words: str) -> dict[str, Any]:
        """Return the result of one of the four verbs on the embedded engine, which must succeed."""
        return json.loads(self.output(*words, "--engine", "embedded", "--json"))

    def up(self, *words: str) -> dict[str, Any]:
        return self.verb("up", "--yes", *words)

    def destroy(self) -> dict[str, Any]:
        return self.verb("destroy", "--yes")

    def recorded_kinds(self) -> set[str]:
        """Return the kinds of resources in the stack's state."""
        state = json.loads(self.output("stack", "export"))
        return {resource["type"].rsplit(":", 1)[-1] for resource in state["deployment"].get("resources") or []}

    def catalog_config(self) -> CatalogConfig:
        return CatalogConfig.from_json(self.output("config", "--format", "json"))

    def catalog(self, warehouse: str = "executions") -> Catalog:
        """Return a PyIceberg catalog with the generated configuration and no other setting."""
        return load_catalog(warehouse, **self.catalog_config().pyiceberg(warehouse))


MakeStoreTenant = Callable[..., StoreTenant]


@pytest.fixture
def make_tenant(tmp_path: Path, sandbox: Sandbox, store: StoreState) -> MakeStoreTenant:
    """Make a tenant whose stack makes its bucket in the store, or with other fields of its storage."""

    def make(storage: dict[str, Any] | None = None, **changes: Any) -> StoreTenant:
        name = f"t{uuid4().hex[:10]}"
        folder = tmp_path / name
        for part in ("tenants", "environments", "state"):
            (folder / part).mkdir(parents=True)
        for file in ("Pulumi.yaml", "__main__.py"):
            shutil.copy(REPOSITORY / file, folder)
        (folder / ".venv").symlink_to(sys.prefix)
        environment = f"sandbox: {sandbox.dir}\nkubernetes: {{render_to: {folder / 'rendered'}}}\n"
        (folder / "environments" / "sandbox.yaml").write_text(environment)
        credential = {"access_key_id": store.access_key_id, "secret_access_key": store.secret_access_key}
        place = {"backend": "s3", "store": "minio", "endpoint": store.endpoint, "region": store.region}
        main = place | {"bucket": f"{name}-lake", "credential": credential, "create": True} | (storage or {})
        spec: dict[str, Any] = {
            "version": 1,
            "environment": "sandbox",
            "name": name,
            "owner": "tests",
            "storage": {"main": main},
            "warehouses": [{"name": "executions", "namespaces": ["results"], "deletion": "purge"}],
        }
        tenant = StoreTenant(folder, sandbox, spec | changes)
        tenant.write()
        tenant.output("stack", "init")
        return tenant

    return make


def changes_of(result: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the changes in a run's result: operation and kind."""
    return {
        (step["op"], step["type"].rsplit(":", 1)[-1])
        for step in result["steps"]
        if step["op"] not in {"same", "refresh", "read"} and step["type"] != "pulumi:pulumi:Stack"
    }
