"""Groups of a directory as members of a tenant's roles: joining and leaving are drift."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.runtime.state import Sandbox
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.integration.tenant.conftest import MakeTenant, Tenant, list_changes
from tests.integration.tenant.ownership.conftest import administrator, find_role_id

pytestmark = [pytest.mark.timeout(300), pytest.mark.stand_in("its server enforces grants")]

SECRET = "s3cret-of-the-reader"


@pytest.fixture
def sandbox(openfga_sandbox: Sandbox) -> Sandbox:
    return openfga_sandbox


@dataclass
class Realm:
    """A Keycloak realm with the group `analysts`."""

    endpoint: str = ""
    people: set[str] = field(default_factory=set[str])

    def app(self) -> Starlette:
        realm = "/admin/realms/platform"
        return Starlette(
            routes=[
                Route("/realms/platform/protocol/openid-connect/token", self._issue_token, methods=["POST"]),
                Route(f"{realm}/groups", self._groups),
                Route(f"{realm}/groups/g1/members", self._members),
            ]
        )

    async def _issue_token(self, _request: Request) -> Response:
        return JSONResponse({"access_token": "t", "expires_in": 300})

    async def _groups(self, request: Request) -> Response:
        is_listed = request.query_params["first"] == "0" and request.query_params["search"] == "analysts"
        return JSONResponse(
            [{"id": "g1", "name": "analysts", "path": "/analysts", "subGroups": []}] if is_listed else []
        )

    async def _members(self, _request: Request) -> Response:
        return JSONResponse([{"id": person, "username": person, "enabled": True} for person in sorted(self.people)])


@pytest.fixture
def realm() -> Iterator[Realm]:
    realm = Realm()
    with serve(realm.app()) as realm.endpoint:
        yield realm


def list_members(tenant: Tenant, role: str) -> set[str]:
    response = administrator(tenant).get(f"/management/v1/role/{find_role_id(tenant, role)}/members").raise_for_status()
    return {member["id"] for member in response.json()["members"]}


@pytest.mark.long
def test_joining_and_leaving_a_group_is_drift(make_tenant: MakeTenant, realm: Realm) -> None:
    role_members: dict[str, Any] = {"executions-reader": {"group": "analysts", "users": ["oidc~zoe"]}}
    tenant = make_tenant(role_members=role_members)
    tenant.environ["READER"] = SECRET
    file = tenant.folder / "environments" / "sandbox.yaml"
    directory = {"kind": "keycloak", "url": realm.endpoint, "realm": "platform", "client_id": "reader"}
    document = yaml.safe_load(file.read_text()) | {"directory": directory | {"client_secret": "env:READER"}}
    file.write_text(yaml.safe_dump(document))
    zoe = {"id": "oidc~zoe", "name": "Zoe", "user-type": "human"}
    # The sandbox may be new. It responds with 400 if another test bootstrapped it.
    administrator(tenant).post("/management/v1/bootstrap", json={"accept-terms-of-use": True})
    administrator(tenant).post("/management/v1/user", json=zoe).raise_for_status()
    realm.people = {"ann", "ben"}

    tenant.up()
    assert list_members(tenant, "executions-reader") == {"oidc~ann", "oidc~ben", "oidc~zoe"}
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()

    realm.people = {"ben", "cid"}
    output = tenant.output("preview", "--refresh", "--diff", "--engine", "embedded")
    assert f"RoleMembers  {tenant.name}-executions-reader" in output
    assert "oidc~ann" in output
    assert "oidc~cid" in output
    tenant.up("--refresh")
    assert list_members(tenant, "executions-reader") == {"oidc~ben", "oidc~cid", "oidc~zoe"}

    tenant.spec["role_members"] = {"executions-reader": {"group": "analyst"}}
    tenant.write()
    refusal = tenant.error("up", "--yes", "--engine", "embedded")
    assert "role_members.executions-reader.group: Keycloak realm `platform` has no group `analyst`" in refusal

    tenant.spec["role_members"] = role_members
    tenant.write()
    tenant.verb("destroy", "--yes")
    remaining_users = {user["id"] for user in administrator(tenant).get("/management/v1/user").json()["users"]}
    assert {"oidc~ben", "oidc~cid", "oidc~zoe"} <= remaining_users, "people may be members of other projects"
    state = "".join(file.read_text() for file in (tenant.folder / "state").rglob("*") if file.is_file())
    assert not any(SECRET in text for text in (*tenant.outputs, state))
