"""Tenants of one test, each with its own project folder and state, on the worker's sandbox."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import httpx
import pytest
import yaml
from lakewright.aws.access import access_policy, trust_policy
from lakewright.names.object_names import ROLE_PATH
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.clock import Clock
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.runtime.credentials import IamAccessKey
from lakewright_sandbox.runtime.state import Sandbox

from tests.command_server import LAKEWRIGHT
from tests.named_tokens import TokensAsNames
from tests.real_servers import RealServers
from tests.tenant_project import (
    PASSPHRASE,
    MakeTenant,
    Tenant,
    create_project,
    list_changes,
    new_name,
    tenant_spec,
)

__all__ = ["LAKEWRIGHT", "PASSPHRASE", "MakeTenant", "Tenant", "list_changes"]


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
        name = f"{real.run}-{uuid4().hex[:6]}" if real else new_name()
        folder = tmp_path / name
        rendered = folder / "rendered"
        create_project(
            folder,
            real.environment(rendered)
            if real
            else {"sandbox": str(sandbox.dir), "kubernetes": {"render_to": str(rendered)}},
        )
        spec = tenant_spec(name, real.store if real else {"backend": "aws", "bucket": f"{name}-lakehouse"})
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


@contextmanager
def serve_grants(sandbox: Sandbox, folder: Path, clock: Clock | None = None) -> Generator[httpx.Client]:
    """Yield the operator's client of a server that will enforce grants and is not bootstrapped.

    Args:
        sandbox: The sandbox whose storage the server uses.
        folder: The folder of the server's database.
        clock: The server's clock.
    """
    settings = Settings(
        database=f"sqlite:///{folder / 'lakekeeper.db'}",
        aws_endpoint=sandbox.aws.endpoint,
        credentials_file=sandbox.credentials_file,
        aws_system_identity=True,
        authorizer="openfga",
        maintenance_queues=True,
    )
    with serve(TokensAsNames(create_app(settings, clock))) as endpoint:
        headers = {"authorization": "Bearer operator"}
        with httpx.Client(base_url=endpoint, headers=headers, timeout=60) as client:
            yield client


def bootstrap(server: httpx.Client) -> None:
    """Bootstrap a server with the client's user as its operator."""
    accepted = {"accept-terms-of-use": True, "is-operator": True}
    server.post("/management/v1/bootstrap", json=accepted).raise_for_status()


@pytest.fixture
def empty_server(sandbox: Sandbox, tmp_path: Path) -> Iterator[httpx.Client]:
    """The operator's client of a server that will enforce grants and is not bootstrapped, on the sandbox's storage."""
    with serve_grants(sandbox, tmp_path) as client:
        yield client


@pytest.fixture
def openfga(empty_server: httpx.Client) -> httpx.Client:
    """The operator's client of a server that enforces grants."""
    bootstrap(empty_server)
    return empty_server


def enter_project(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let code of this process find the project and the state of a tenant, as its commands do."""
    for name, value in {
        "PULUMI_BACKEND_URL": (tenant.folder / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        **tenant.environ,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tenant.folder)


def write_environment(tenant: Any, server: httpx.Client, **lakekeeper: Any) -> None:
    """Write the environment of a tenant on this server."""
    endpoint = str(server.base_url).rstrip("/")
    auth = {"kind": "token", "token": "env:STACK_TOKEN"}
    environment: dict[str, Any] = {
        "sandbox": str(tenant.sandbox.dir),
        "lakekeeper": {"endpoint": endpoint, "catalog_uri": f"{endpoint}/catalog", "auth": auth} | lakekeeper,
        "kubernetes": {"render_to": str(tenant.folder / "rendered")},
    }
    (tenant.folder / "environments" / "sandbox.yaml").write_text(yaml.safe_dump(environment))
    tenant.environ["STACK_TOKEN"] = "operator"
