"""Units as their ServiceAccounts of a real cluster, at a catalog that reviews their tokens and enforces grants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from kubernetes import client as kubernetes_client  # pyright: ignore[reportMissingTypeStubs]
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_sandbox.tokens.app import IdentityProvider
from lakewright_sandbox.tokens.clients import OAuthClient
from lakewright_sandbox.tokens.keys import SigningKey

from tests.control_plane import ControlPlane
from tests.tenant_project import MakeTenant, Tenant

AUDIENCE = "lakekeeper"
CLIENT = OAuthClient("stack", "s3cret-of-the-stack")
WAREHOUSES = [{"name": name, "namespaces": ["results"], "deletion": "purge"} for name in ("one", "two")]
UNITS = [{"name": "cu", "runtime": "texera", "warehouses": ["one"]}]


@pytest.fixture(scope="module")
def catalog(
    sandbox: Sandbox, cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """Settings of a Lakekeeper that enforces grants. The stack has a client, and pods the tokens of their accounts."""
    folder = tmp_path_factory.mktemp("catalog")
    with serve(IdentityProvider({"stack": CLIENT}, SigningKey()).app()) as issuer:
        settings = Settings(
            database=f"sqlite:///{folder / 'lakekeeper.db'}",
            aws_endpoint=sandbox.aws.endpoint,
            credentials_file=sandbox.credentials_file,
            aws_system_identity=True,
            authorizer="openfga",
            openid_provider_uri=issuer,
            openid_audiences=(AUDIENCE,),
            kubeconfig=cluster.kubeconfig,
            kubernetes_audiences=(AUDIENCE,),
        )
        with serve(create_app(settings)) as endpoint:
            auth = {"kind": "client-credentials", "token_url": f"{issuer}/token", "client_id": "stack"}
            yield {
                "endpoint": endpoint,
                "catalog_uri": f"{endpoint}/catalog",
                "auth": auth | {"client_secret": "env:STACK_SECRET"},
                "jobs_auth": {"kind": "token-file", "path": "/var/run/secrets/lakekeeper/token"},
                "jobs_subject": None,
            }


@pytest.fixture(scope="module")
def tenant(make_tenant: MakeTenant, catalog: dict[str, Any]) -> Tenant:
    """A tenant with one unit, which sees one of its two warehouses."""
    tenant = make_tenant(warehouses=WAREHOUSES, computing_units=UNITS)
    tenant.environ["STACK_SECRET"] = CLIENT.secret
    file: Path = tenant.folder / "environments" / "sandbox.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"lakekeeper": catalog}))
    tenant.up()
    return tenant


class ServiceAccountOfUnit:
    """The ServiceAccount of the tenant's unit."""

    def __init__(self, cluster: ControlPlane, tenant: Tenant, catalog: dict[str, Any]) -> None:
        self._core: Any = kubernetes_client.CoreV1Api(cluster.api_client())
        self._tenant, self._endpoint = tenant, catalog["endpoint"]
        self._place = ("cu", f"tenant-{tenant.name}")

    def uid(self) -> str:
        return str(self._core.read_namespaced_service_account(*self._place).metadata.uid)

    def delete(self) -> None:
        self._core.delete_namespaced_service_account(*self._place)

    def request_token(self, audience: str = AUDIENCE) -> str:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        spec = {"audiences": [audience], "expirationSeconds": 600}
        response = self._core.create_namespaced_service_account_token(*self._place, body | {"spec": spec})
        return str(response.status.token)

    def config(self, warehouse: str, token: str) -> int:
        headers = {"authorization": f"Bearer {token}", "x-project-id": self._tenant.name}
        url = f"{self._endpoint}/catalog/v1/config"
        return httpx.get(url, params={"warehouse": warehouse}, headers=headers, timeout=60).status_code


@pytest.fixture
def account(cluster: ControlPlane, tenant: Tenant, catalog: dict[str, Any]) -> ServiceAccountOfUnit:
    return ServiceAccountOfUnit(cluster, tenant, catalog)


def list_users(tenant: Tenant) -> set[str]:
    state = json.loads(tenant.output("stack", "export"))
    resources = state["deployment"]["resources"]
    return {resource["id"] for resource in resources if resource["type"].endswith("lakekeeper:User")}


def test_unit_is_known_by_the_uid_of_its_account(tenant: Tenant, account: ServiceAccountOfUnit) -> None:
    assert list_users(tenant) == {f"kubernetes~{account.uid()}"}
    token = account.request_token()
    assert [account.config(warehouse, token) for warehouse in ("one", "two")] == [200, 404]
    assert account.config("one", account.request_token("other")) == 401
    assert {step["op"] for step in tenant.verb("preview", "--refresh", "--expect-no-changes")["steps"]} <= {
        "same",
        "refresh",
    }


def test_recreated_account_gets_a_new_user(tenant: Tenant, account: ServiceAccountOfUnit) -> None:
    before, token = account.uid(), account.request_token()

    account.delete()
    assert account.config("one", token) == 401
    tenant.up("--refresh")

    assert account.uid() != before
    assert list_users(tenant) == {f"kubernetes~{account.uid()}"}
    assert account.config("one", account.request_token()) == 200
