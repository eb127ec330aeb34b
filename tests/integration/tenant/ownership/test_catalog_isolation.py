"""Two tenants on a catalog that enforces grants: the identity of one tenant reaches no object of the other tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from lakewright.credentials.references import ClientToken, resolve
from lakewright.environment.environment import Environment
from lakewright.environment.unit_identity import find_identity
from lakewright.spec import TenantSpec
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.tenant.conftest import MakeTenant, Tenant, list_changes
from tests.integration.tenant.ownership.conftest import administrator, find_role_id

pytestmark = [pytest.mark.timeout(300), pytest.mark.stand_in("its identity provider has a client per tenant")]

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "n", "required": False, "type": "long"}]}
WAREHOUSES = [
    {"name": "one", "namespaces": ["results"], "deletion": "purge"},
    {"name": "signed", "namespaces": ["results"], "deletion": "purge", "delegation": "remote-signing"},
    {"name": "two", "namespaces": ["results"], "deletion": "purge"},
]
UNITS = [{"name": "cu", "runtime": "spark", "warehouses": ["one", "signed"]}]
DENIED = {401, 403, 404}


@pytest.fixture
def sandbox(openfga_sandbox: Sandbox) -> Sandbox:
    return openfga_sandbox


@dataclass(frozen=True)
class CatalogCaller:
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

    def outcomes(self, lake: UnitWarehouses, warehouse: str) -> dict[str, int]:
        """Return the status of each call on the table `t` of a warehouse."""
        prefix = lake.warehouses[warehouse]
        return {
            "config": self.config(
                warehouse if self.project == lake.tenant else f"{lake.tenant}/{warehouse}"
            ).status_code,
            "load": self.table(prefix, "/t").status_code,
            "credentials": self.table(prefix, "/t/credentials").status_code,
            "list": self.table(prefix).status_code,
            "create": self.table(prefix, method="POST", json={"name": "other", "schema": SCHEMA}).status_code,
            "drop": self.table(prefix, "/t", method="DELETE").status_code,
            "drop what it made": self.table(prefix, "/other", method="DELETE").status_code,
            "sign": self.sign(lake),
        }

    def sign(self, lake: UnitWarehouses) -> int:
        """Return the status of signing a read of the table `t` of the warehouse `signed`."""
        table, location = lake.signed_table
        request = {"region": "us-east-1", "method": "GET", "uri": f"{lake.s3}/{location}/data/x", "headers": {}}
        url = f"/catalog/v1/signer/{lake.warehouses['signed']}/tabular-id/{table}/v1/aws/s3/sign"
        return self.http.post(url, json=request, headers=self._headers).status_code


ALLOWED = dict.fromkeys(("config", "load", "credentials", "list", "create", "sign"), 200) | dict.fromkeys(
    ("drop", "drop what it made"), 204
)


@dataclass(frozen=True)
class UnitWarehouses:
    """The warehouses of a tenant, with a table `t` in each, which the unit does not own."""

    tenant: str
    s3: str
    warehouses: dict[str, str]
    signed_table: tuple[str, str]
    """Id and location of the table `t` of the warehouse `signed`."""


def deploy_lake(tenant: Tenant) -> UnitWarehouses:
    """Deploy a tenant and create its tables."""
    warehouses = tenant.up()["outputs"]["warehouse_ids"]
    tables = {name: make_table(tenant, warehouse)["metadata"] for name, warehouse in warehouses.items()}
    signed = (tables["signed"]["table-uuid"], tables["signed"]["location"].removeprefix("s3://"))
    return UnitWarehouses(tenant.name, tenant.sandbox.aws.endpoint, warehouses, signed)


def authenticate_unit(tenant: Tenant, unit: str = "cu", project: str | None = None) -> CatalogCaller:
    """Return a client with a token of a unit, requested as from outside the cluster."""
    environment = Environment.load(tenant.folder / "environments" / "sandbox.yaml")
    token = find_identity(TenantSpec.model_validate(tenant.spec), environment, unit).token
    assert isinstance(token, ClientToken)
    assert token.client_secret is not None
    secret = resolve(token.client_secret)
    form = {"grant_type": "client_credentials", "client_id": token.client_id, "client_secret": secret}
    issued = httpx.post(token.token_url, data=form).raise_for_status().json()["access_token"]
    headers = {"authorization": f"Bearer {issued}"}
    http = httpx.Client(base_url=tenant.sandbox.lakekeeper.endpoint, headers=headers, timeout=60)
    return CatalogCaller(http, project or tenant.name)


def make_table(tenant: Tenant, warehouse_id: str) -> dict[str, Any]:
    """Create the table `t` with the rights of the stack, so that the unit owns no object."""
    caller, body = CatalogCaller(administrator(tenant), tenant.name), {"name": "t", "schema": SCHEMA}
    return caller.table(warehouse_id, method="POST", json=body).raise_for_status().json()


def list_accepted_calls(outcomes: dict[str, int]) -> dict[str, int]:
    return {call: status for call, status in outcomes.items() if status not in DENIED}


def take_from_role(tenant: Tenant, role: str) -> None:
    """Remove the unit of a tenant from a role, outside the stack."""
    url = f"/management/v1/role/{find_role_id(tenant, role)}/members/user/oidc~jobs-{tenant.name}"
    administrator(tenant).delete(url).raise_for_status()


@pytest.mark.long
def test_units_reach_their_own_warehouses_only(make_tenant: MakeTenant) -> None:
    a, b = (make_tenant(warehouses=WAREHOUSES, computing_units=UNITS) for _ in range(2))
    ours, theirs = deploy_lake(a), deploy_lake(b)
    unit = authenticate_unit(a)

    for caller in (unit, authenticate_unit(a, project=b.name)):
        assert list_accepted_calls(caller.outcomes(theirs, "one")) == {}
    unseen = unit.outcomes(ours, "two")
    assert list_accepted_calls(unseen) == {"sign": 200}, "the unit sees the warehouse `signed`"
    assert unit.outcomes(ours, "one") == ALLOWED
    assert authenticate_unit(b).outcomes(theirs, "one") == ALLOWED, (
        "the other tenant's table exists and its own unit may use it"
    )

    warehouse = f"/management/v1/warehouse/{ours.warehouses['one']}"
    management = [
        unit.http.delete(warehouse),
        unit.http.post(f"{warehouse}/rename", json={"new-name": "mine"}),
        unit.http.post(f"{warehouse}/protection", json={"protected": True}),
        unit.http.get("/management/v1/user"),
    ]
    assert {response.status_code for response in management} == {403}

    make_table(a, ours.warehouses["one"])
    for role in ("one-writer", "signed-writer"):
        take_from_role(a, role)
    assert list_accepted_calls(unit.outcomes(ours, "one")) == {}, "without its grants, a unit reaches nothing"
    drift = list_changes(a.verb("preview", "--refresh"))
    assert drift == {("update", "RoleMembers", f"{a.name}-{name}-writer") for name in ("one", "signed")}
    a.up("--refresh")
    assert unit.outcomes(ours, "one") == ALLOWED

    for tenant in (a, b):
        tenant.verb("destroy", "--yes")
    users = administrator(a).get("/management/v1/user").json()["users"]
    assert not [user for user in users if user["id"] in {f"oidc~jobs-{a.name}", f"oidc~jobs-{b.name}"}]
