"""Tenants of one test, each with its own project folder and state, on the worker's sandbox."""

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
import httpx
import pytest
import yaml
from lakewright.aws.access import access_policy, trust_policy
from lakewright.names.object_names import ROLE_PATH
from lakewright_sandbox.runtime.credentials import IamAccessKey
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from pyiceberg.catalog import Catalog, load_catalog

from ...real_servers import RealServers, leave_out

REPOSITORY = Path(__file__).parents[3]
PASSPHRASE = "correct horse battery staple"
LAKEWRIGHT = Path(sys.executable).with_name("lakewright")


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
            stores = self.spec["storage"].values()
            if any(store["backend"] != "s3" or not store.keys() <= self.real.store.keys() for store in stores):
                leave_out("makes buckets, keys or roles on AWS")
        file = self.folder / "tenants" / f"Pulumi.{self.name}.yaml"
        document = yaml.safe_load(file.read_text()) if file.exists() else {}
        document["config"] = {"lakewright:tenant": self.spec}
        file.write_text(yaml.safe_dump(document, sort_keys=False))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the stack and return its process, also after a failure."""
        env = {
            **os.environ,
            "PULUMI_BACKEND_URL": (self.folder / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            **self.environ,
        }
        done = subprocess.run(
            [LAKEWRIGHT, *words, "--stack", self.name],
            cwd=self.folder,
            env=env,
            check=False,
            capture_output=True,
            text=True,
        )
        self.outputs += [done.stdout, done.stderr]
        return done

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

    def recorded_kinds(self) -> set[str]:
        """Return the kinds of resources in the stack's state."""
        state = json.loads(self.output("stack", "export"))
        return {resource["type"].rsplit(":", 1)[-1] for resource in state["deployment"].get("resources") or []}

    def verb(self, *words: str) -> dict[str, Any]:
        """Return the result of one of the four verbs on the embedded engine, which must succeed."""
        return json.loads(self.output(*words, "--engine", "embedded", "--json"))

    def up(self, *words: str) -> dict[str, Any]:
        return self.verb("up", "--yes", *words)

    def catalog_config(self) -> CatalogConfig:
        return CatalogConfig.from_json(self.output("config", "--format", "json"))

    def catalog(self, warehouse: str) -> Catalog:
        """Return a PyIceberg catalog with the generated configuration and no other setting."""
        return load_catalog(warehouse, **self.catalog_config().pyiceberg(warehouse))


MakeTenant = Callable[..., Tenant]


def changes_of(result: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return the changes in a run's result: operation, kind and name."""
    return {
        (step["op"], step["type"].rsplit(":", 1)[-1], step["name"])
        for step in result["steps"]
        if step["op"] not in {"same", "refresh", "read"} and step["type"] != "pulumi:pulumi:Stack"
    }


def make_bucket_and_role(tenant: Tenant, aws: Callable[..., Any], external_id: str) -> str:
    """Make a bucket of the tenant and a role for it that requires an external id; return the role's name."""
    bucket = f"{tenant.name}-own"
    aws("s3").create_bucket(Bucket=bucket)
    iam = aws("iam")
    trust = json.dumps(trust_policy(tenant.sandbox.aws.catalog_principal_arn, external_id))
    arn = iam.create_role(RoleName=f"{tenant.name}-own", Path=ROLE_PATH, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    rights = json.dumps(access_policy(bucket, f"{tenant.name}/executions", region=tenant.sandbox.aws.region))
    iam.put_role_policy(RoleName=f"{tenant.name}-own", PolicyName="lakewright", PolicyDocument=rights)
    tenant.spec["storage"] = {
        "main": {
            "backend": "existing",
            "bucket": bucket,
            "region": tenant.sandbox.aws.region,
            "role_arn": arn,
            "external_id": external_id,
        }
    }
    tenant.write()
    return f"{tenant.name}-own"


@pytest.fixture
def make_tenant(tmp_path: Path, sandbox: Sandbox, real: RealServers | None) -> MakeTenant:
    """Make a tenant with a warehouse `executions` and a namespace `results`, or with the given spec."""

    def make(**changes: Any) -> Tenant:
        name = f"{real.run}-{uuid4().hex[:6]}" if real else f"t{uuid4().hex[:10]}"
        folder = tmp_path / name
        for part in ("tenants", "environments", "state"):
            (folder / part).mkdir(parents=True)
        for file in ("Pulumi.yaml", "__main__.py"):
            shutil.copy(REPOSITORY / file, folder)
        (folder / ".venv").symlink_to(sys.prefix)
        (folder / "environments" / "sandbox.yaml").write_text(
            yaml.safe_dump(real.environment(folder / "rendered"))
            if real
            else f"sandbox: {sandbox.dir}\nkubernetes: {{render_to: {folder / 'rendered'}}}\n"
        )
        spec: dict[str, Any] = {
            "version": 1,
            "environment": "sandbox",
            "name": name,
            "owner": "tests",
            "storage": {"main": real.store if real else {"backend": "aws", "bucket": f"{name}-lakehouse"}},
            "warehouses": [{"name": "executions", "namespaces": ["results"], "deletion": "purge"}],
        }
        tenant = Tenant(folder, sandbox, spec | changes, real=real)
        tenant.write()
        tenant.output("stack", "init")
        return tenant

    return make


@pytest.fixture
def attached_providers(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return settings under which the CLI finds the sandbox's providers."""
    with _provider("aws") as aws, _provider("kubernetes") as kubernetes:
        yield {
            "PULUMI_DEBUG_PROVIDERS": f"aws:{_port(aws)},kubernetes:{_port(kubernetes)}",
            "PULUMI_HOME": str(tmp_path / "pulumi-home"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        aws.terminate()
        kubernetes.terminate()


def _provider(name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lakewright_sandbox.providers", name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _port(provider: subprocess.Popen[str]) -> str:
    assert provider.stdout is not None
    return provider.stdout.readline().strip()


@pytest.fixture
def lakekeeper(sandbox: Sandbox, real: RealServers | None) -> Any:
    """HTTP client of the sandbox's Lakekeeper."""
    with real.http() if real else httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60) as client:
        yield client


def aws_client(sandbox: Sandbox, service: str, key: IamAccessKey | dict[str, str] | None = None) -> Any:
    """Return an AWS client of the sandbox, with the admin's or the given keys and without retries."""
    match key:
        case None:
            pair = {
                "aws_access_key_id": sandbox.admin.access_key_id,
                "aws_secret_access_key": sandbox.admin.secret_access_key.get_secret_value(),
            }
        case dict():
            pair = key
        case _:
            pair = {
                "aws_access_key_id": key.access_key_id,
                "aws_secret_access_key": key.secret_access_key.get_secret_value(),
            }
    config = boto3.session.Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    return boto3.client(
        service, endpoint_url=sandbox.aws.endpoint, region_name=sandbox.aws.region, config=config, **pair
    )


@pytest.fixture
def aws(sandbox: Sandbox, real: RealServers | None) -> Callable[..., Any]:
    """A function that returns AWS clients of the sandbox: `aws("s3")`, or `aws("s3", keys)`."""
    if real:
        return real.aws

    def client(service: str, key: IamAccessKey | dict[str, str] | None = None) -> Any:
        return aws_client(sandbox, service, key)

    return client
