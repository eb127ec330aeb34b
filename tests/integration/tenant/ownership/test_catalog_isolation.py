"""Two tenants on a catalog that enforces grants: the identity of one reaches nothing of the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from lakewright.credentials.references import resolve
from lakewright.environment.environment import Environment
from lakewright.environment.unit_identity import ClientCredentials, identity_of
from lakewright.spec import TenantSpec
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime.state import Sandbox

from ..conftest import MakeTenant, Tenant, changes_of

pytestmark = [pytest.mark.timeout(300), pytest.mark.stand_in("its identity provider has a client per tenant")]

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "n", "required": False, "type": "long"}]}
WAREHOUSES = [
    {"name": "one", "namespaces": ["results"], "deletion": "purge"},
    {"name": "two", "namespaces": ["results"], "deletion": "purge"},
]
UNITS = [{"name": "cu", "runtime": "spark", "warehouses": ["one"]}]
DENIED = {401, 403, 404}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox of this module, which requires tokens and enforces grants."""
    directory = tmp_path_factory.mktemp("guarded")
    yield lifecycle.up(directory, auth="oauth2", authz="openfga")
    lifecycle.down(directory, purge=True)


@pytest.fixture
def sandbox(guarded: Sandbox) -> Sandbox:
    return guarded


@dataclass(frozen=True)
class Caller:
    """A client of the catalog with the token of a unit or job."""

    http: httpx.Client
    project: str

    def config(self, warehouse: str) -> httpx.Response:
        return self.http.get("/catalog/v1/config", params={"warehouse": warehouse}, headers=self._headers)

    def table(self, prefix: str, path: str = "", method: str = "GET", **more: Any) -> httpx.Response:
        url = f"/catalog/v1/{prefix}/namespaces/results/tables{path}"
        return self.http.request(method, url, headers=self._headers, **more)

    @property
    def _headers(self) -> dict[str, str]:
        return {"x-project-id": self.project, "x-iceberg-access-delegation": "vended-credentials"}

    def outcomes(self, prefix: str, warehouse: str) -> dict[str, int]:
        """Return the status of each call on the table `t` of a warehouse."""
        signed = {"region": "us-east-1", "method": "GET", "uri": "https://b.s3.amazonaws.com/k", "headers": {}}
        return {
            "config": self.config(warehouse).status_code,
            "load": self.table(prefix, "/t").status_code,
            "credentials": self.table(prefix, "/t/credentials").status_code,
            "sign": self.http.post(
                f"/catalog/v1/{prefix}/namespaces/results/tables/t/sign", json=signed, headers=self._headers
            ).status_code,
            "list": self.table(prefix).status_code,
            "create": self.table(prefix, method="POST", json={"name": "other", "schema": SCHEMA}).status_code,
            "drop": self.table(prefix, "/t", method="DELETE").status_code,
        }


def caller_of(tenant: Tenant, unit: str = "cu", project: str | None = None) -> Caller:
    """Return a client with a token of a unit, requested as from outside the cluster."""
    environment = Environment.load(tenant.folder / "environments" / "sandbox.yaml")
    token = identity_of(TenantSpec.model_validate(tenant.spec), environment, unit).token
    assert isinstance(token, ClientCredentials)
    assert token.client_secret is not None
    secret = resolve(token.client_secret)
    form = {"grant_type": "client_credentials", "client_id": token.client_id, "client_secret": secret}
    issued = httpx.post(token.token_url, data=form).raise_for_status().json()["access_token"]
    headers = {"authorization": f"Bearer {issued}"}
    http = httpx.Client(base_url=tenant.sandbox.lakekeeper.endpoint, headers=headers, timeout=60)
    return Caller(http, project or tenant.name)


def administrator(tenant: Tenant) -> httpx.Client:
    """Return a client with the rights of the stack."""
    tokens = tenant.sandbox.tokens
    assert tokens is not None
    secret = tokens.client_secret_file.read_text()
    form = {"grant_type": "client_credentials", "client_id": tokens.client_id, "client_secret": secret}
    issued = httpx.post(tokens.token_url, data=form).raise_for_status().json()["access_token"]
    headers = {"authorization": f"Bearer {issued}", "x-project-id": tenant.name}
    return httpx.Client(base_url=tenant.sandbox.lakekeeper.endpoint, headers=headers, timeout=60)


def make_table(tenant: Tenant, warehouse_id: str) -> None:
    """Make the table `t` with the rights of the stack, so that the unit owns nothing."""
    Caller(administrator(tenant), tenant.name).table(
        warehouse_id, method="POST", json={"name": "t", "schema": SCHEMA}
    ).raise_for_status()


def take_from_role(tenant: Tenant, role: str) -> None:
    """Remove the unit of a tenant from a role, outside the stack."""
    admin = administrator(tenant)
    (role_id,) = [found["id"] for found in admin.get("/management/v1/role").json()["roles"] if found["name"] == role]
    admin.delete(f"/management/v1/role/{role_id}/members/user/oidc~jobs-{tenant.name}").raise_for_status()


def test_units_reach_their_own_warehouses_only(make_tenant: MakeTenant) -> None:
    a, b = (make_tenant(warehouses=WAREHOUSES, computing_units=UNITS) for _ in range(2))
    ids = [tenant.up()["outputs"]["warehouse_ids"] for tenant in (a, b)]
    for tenant, known in zip((a, b), ids, strict=True):
        for warehouse in known.values():
            make_table(tenant, warehouse)
    cu_a = caller_of(a)

    elsewhere = {
        "the other tenant": caller_of(a, project=b.name).outcomes(ids[1]["one"], "one"),
        "the other tenant, from its own project": cu_a.outcomes(ids[1]["one"], f"{b.name}/one"),
        "a warehouse of its tenant that the unit does not see": cu_a.outcomes(ids[0]["two"], "two"),
    }
    assert {
        what: status for what, found in elsewhere.items() for status in found.values() if status not in DENIED
    } == {}

    own = cu_a.outcomes(ids[0]["one"], "one")
    assert {name: own[name] for name in own if name != "sign"} == {
        **dict.fromkeys(("config", "load", "credentials", "list", "create"), 200),
        "drop": 204,
    }
    management = [
        cu_a.http.delete(f"/management/v1/warehouse/{ids[0]['one']}"),
        cu_a.http.post(f"/management/v1/warehouse/{ids[0]['one']}/rename", json={"new-name": "mine"}),
        cu_a.http.get("/management/v1/user"),
    ]
    assert {answer.status_code for answer in management} <= DENIED

    # Without its grants, a unit does not reach its own warehouse either.
    make_table(a, ids[0]["one"])
    cu_a.table(ids[0]["one"], "/other", method="DELETE").raise_for_status()
    take_from_role(a, "one-writer")
    assert {name: status for name, status in cu_a.outcomes(ids[0]["one"], "one").items() if status not in DENIED} == {}
    drift = changes_of(a.verb("preview", "--refresh"))
    assert drift == {("update", "RoleMembers", f"{a.name}-one-writer")}
    a.up("--refresh")
    assert cu_a.config("one").status_code == 200

    for tenant in (a, b):
        tenant.verb("destroy", "--yes")
    users = administrator(a).get("/management/v1/user").json()["users"]
    assert not [user for user in users if user["id"] in {f"oidc~jobs-{a.name}", f"oidc~jobs-{b.name}"}]
