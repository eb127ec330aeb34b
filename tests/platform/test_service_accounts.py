"""Units authenticate at the platform's server with tokens of their ServiceAccounts, which a real cluster reviews."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.control_plane import ControlPlane, build_path
from tests.platform.deployed import SERVER, DeployedPlatform
from tests.platform.identity_provider import Issuer
from tests.platform.tenants import CatalogAccess, TenantFactory
from tests.tenant_project import Tenant

AUDIENCE = "lakekeeper"
UNIT = "workflows"
TOKEN_FILE = {"kind": "token-file", "path": "/var/run/secrets/lakekeeper/token"}
SCHEMA: dict[str, Any] = {"type": "struct", "schema-id": 0, "fields": []}

pytestmark = pytest.mark.timeout(900)


def apply_rendered_accounts(plane: ControlPlane, tenant: Tenant) -> None:
    """Apply the tenant's rendered Namespace and ServiceAccounts."""
    manifests = [yaml.safe_load(file.read_text()) for file in (tenant.folder / "rendered").rglob("*.yaml")]
    for kind in ("Namespace", "ServiceAccount"):
        for manifest in (manifest for manifest in manifests if manifest["kind"] == kind):
            plane.apply(manifest, fieldValidation="Strict").raise_for_status()


@dataclass(frozen=True)
class UnitAccess:
    """Requests of a unit's ServiceAccount through the gateway."""

    tenant: Tenant
    plane: ControlPlane
    access: CatalogAccess

    def read_uid(self, account: str = UNIT) -> str:
        """Return the uid of an account in the tenant's namespace."""
        path = f"/api/v1/namespaces/tenant-{self.tenant.name}/serviceaccounts/{account}"
        return self.plane.get(path)["metadata"]["uid"]

    def request_token(self, audience: str | None = AUDIENCE, account: str = UNIT) -> str:
        """Return a token of an account in the tenant's namespace."""
        return self.plane.request_token(f"tenant-{self.tenant.name}", account, audience)

    def read_config(self, token: str) -> int:
        """Return the status of an engine's first request."""
        return self.access.send("GET", "config", token=token, params={"warehouse": "executions"}).status_code


@pytest.fixture(scope="module")
def unit(tenants: TenantFactory, plane: ControlPlane, issuer: Issuer, trusted: Path) -> UnitAccess:
    """A unit whose rendered ServiceAccount was applied, and whose uid is in the spec, as the guide describes."""
    unit = {"name": UNIT, "runtime": "texera", "warehouses": "all"}
    tenant = tenants.create(TOKEN_FILE, computing_units=[unit])
    tenant.up()
    apply_rendered_accounts(plane, tenant)
    access = UnitAccess(tenant, plane, CatalogAccess(tenant, issuer, trusted))
    tenant.spec["computing_units"] = [unit | {"identity": {"service_account_uid": access.read_uid()}}]
    tenant.write()
    tenant.up()
    return access


def test_pods_of_the_server_have_its_account(platform: DeployedPlatform, unit: UnitAccess) -> None:
    for pod in platform.cluster.list_pods(SERVER):
        environment = pod.read_environment(pod.spec["containers"][0])
        assert environment["LAKEKEEPER__ENABLE_KUBERNETES_AUTHENTICATION"] == "true"
        assert environment["LAKEKEEPER__KUBERNETES_AUTHENTICATION_AUDIENCE"] == AUDIENCE
        assert pod.spec["serviceAccountName"] == "lakekeeper"


def test_token_of_a_unit_is_accepted(unit: UnitAccess) -> None:
    token = unit.request_token()

    assert unit.read_config(token) == 200
    path = f"{unit.access.find_prefix()}/namespaces/results/tables"
    unit.access.send("POST", path, token=token, json={"name": "of_the_unit", "schema": SCHEMA}).raise_for_status()
    assert unit.access.send("GET", f"{path}/of_the_unit", token=token).status_code == 200


@pytest.mark.parametrize("audience", ["other", None], ids=["other", "cluster"])
def test_token_for_another_audience_is_refused(unit: UnitAccess, audience: str | None) -> None:
    assert unit.read_config(unit.request_token(audience)) == 401


def test_account_without_a_grant_is_refused(unit: UnitAccess, access: CatalogAccess) -> None:
    """Another account of the namespace, and the unit at another tenant's warehouse."""
    metadata = {"name": "stranger", "namespace": f"tenant-{unit.tenant.name}"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    unit.plane.apply(account).raise_for_status()
    path = f"{access.find_prefix()}/namespaces"

    assert unit.read_config(unit.request_token(account="stranger")) in {403, 404}
    assert access.send("GET", path, token=unit.request_token()).status_code in {403, 404}


def test_token_of_a_deleted_account_is_refused(unit: UnitAccess) -> None:
    metadata = {"name": "short-lived", "namespace": f"tenant-{unit.tenant.name}"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    unit.plane.apply(account).raise_for_status()
    token = unit.request_token(account="short-lived")
    assert unit.read_config(token) in {403, 404}

    with unit.plane.http() as http:
        http.delete(build_path(account)).raise_for_status()

    wait_for_status(unit, token, {401})


def test_rendered_rights_let_the_server_review_tokens(platform: DeployedPlatform, unit: UnitAccess) -> None:
    (binding,) = (manifest for manifest in platform.render() if manifest["kind"] == "ClusterRoleBinding")
    with unit.plane.http() as http:
        http.delete(build_path(binding)).raise_for_status()
    token = unit.request_token()
    try:
        wait_for_status(unit, token, {401})
    finally:
        unit.plane.apply(binding).raise_for_status()
    wait_for_status(unit, token, {200})


@retry(retry=retry_if_result(lambda matches: not matches), wait=wait_fixed(0.5), stop=stop_after_delay(60))
def wait_for_status(unit: UnitAccess, token: str, statuses: set[int]) -> bool:
    """Wait until a request has one of the statuses: the API server keeps results of reviews for 10 seconds."""
    return unit.read_config(token) in statuses
