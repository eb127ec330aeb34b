"""Groups of Keycloak and Entra, from servers that answer as theirs do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import pytest
from lakewright.directories.directory import (
    AmbiguousGroupError,
    DirectoryRefusedError,
    DirectoryUnavailableError,
    GroupDirectory,
    GroupNotFoundError,
    Person,
)
from lakewright.directories.entra import EntraSettings
from lakewright.directories.keycloak import KeycloakSettings
from lakewright.http import retry
from lakewright_sandbox.in_process import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SECRET = "s3cret-of-the-reader"
ANALYSTS = "0f4c62a1-3b1f-4c36-9d2f-6b0a5c1d2e3f"
TEAM = "7c1d2e3f-0f4c-4c36-9d2f-62a13b1f6b0a"


@dataclass
class DirectoryServer:
    """A directory. `refusals` are answered first, one each; `rejected` are tokens that have expired."""

    endpoint: str = ""
    refusals: list[Response] = field(default_factory=list[Response])
    rejected: set[str] = field(default_factory=set[str])
    issued: int = 0
    calls: list[str] = field(default_factory=list[str])
    groups: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    members: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def issue_token(self, request: Request) -> Response:
        form = parse_qs((await request.body()).decode())
        if form.get("client_secret") != [SECRET] or form.get("grant_type") != ["client_credentials"]:
            return JSONResponse({"error": "invalid_client", "error_description": f"not {SECRET}"}, 401)
        self.issued += 1
        return JSONResponse({"access_token": f"t{self.issued}", "expires_in": 300, "token_type": "Bearer"})

    def require_token(self, response: Callable[[Request], Response]) -> Callable[[Request], Any]:
        async def respond(request: Request) -> Response:
            self.calls.append(str(request.url).removeprefix(self.endpoint))
            if request.headers.get("authorization", "").removeprefix("Bearer ") in {"", *self.rejected}:
                return JSONResponse({"error": {"code": "InvalidAuthenticationToken", "message": "expired"}}, 401)
            return self.refusals.pop(0) if self.refusals else response(request)

        return respond


def keycloak_app(server: DirectoryServer) -> Starlette:
    def window(request: Request, items: list[dict[str, Any]]) -> Response:
        first, most = int(request.query_params["first"]), int(request.query_params["max"])
        return JSONResponse(items[first : first + most])

    def groups(request: Request) -> Response:
        assert request.query_params["exact"] == "true"
        return window(request, server.groups)

    def find_by_path(request: Request) -> Response:
        path = f"/{request.path_params['path']}"
        groups_at_path = [group for group in walk(server.groups) if group["path"] == path]
        return (
            JSONResponse(groups_at_path[0])
            if groups_at_path
            else JSONResponse({"error": "Group path does not exist"}, 404)
        )

    def members(request: Request) -> Response:
        return window(request, server.members)

    realm = "/admin/realms/platform"
    return Starlette(
        routes=[
            Route("/realms/platform/protocol/openid-connect/token", server.issue_token, methods=["POST"]),
            Route(f"{realm}/groups", server.require_token(groups)),
            Route(f"{realm}/group-by-path/{{path:path}}", server.require_token(find_by_path)),
            Route(f"{realm}/groups/{ANALYSTS}/members", server.require_token(members)),
        ]
    )


def walk(groups: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for group in groups:
        yield group
        yield from walk(group["subGroups"])


def entra_app(server: DirectoryServer) -> Starlette:
    def groups(request: Request) -> Response:
        display_name = (
            request.query_params["$filter"].removeprefix("displayName eq '").removesuffix("'").replace("''", "'")
        )
        matches = [group for group in server.groups if group["displayName"] == display_name]
        return JSONResponse({"@odata.context": "https://graph.microsoft.com/v1.0/$metadata#groups", "value": matches})

    def find_by_id(request: Request) -> Response:
        matches = [group for group in server.groups if group["id"] == request.path_params["id"]]
        missing = {"error": {"code": "Request_ResourceNotFound", "message": "does not exist"}}
        return JSONResponse(matches[0]) if matches else JSONResponse(missing, 404)

    def members(request: Request) -> Response:
        # Graph's own page size for the test is two.
        start = int(request.query_params.get("$skiptoken", "0"))
        more = server.members[start + 2 :]
        following = f"{server.endpoint}{request.url.path}?$select=id&$skiptoken={start + 2}"
        link = {"@odata.nextLink": following} if more else {}
        return JSONResponse({"value": server.members[start : start + 2]} | link)

    return Starlette(
        routes=[
            Route("/contoso.example/oauth2/v2.0/token", server.issue_token, methods=["POST"]),
            Route("/v1.0/groups", server.require_token(groups)),
            Route("/v1.0/groups/{id}", server.require_token(find_by_id)),
            Route(f"/v1.0/groups/{ANALYSTS}/transitiveMembers", server.require_token(members)),
        ]
    )


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make retries immediate."""
    monkeypatch.setattr(retry, "LONGEST_WAIT", 0.01)


@pytest.fixture
def keycloak() -> Iterator[DirectoryServer]:
    server = DirectoryServer()
    with serve(keycloak_app(server)) as server.endpoint:
        yield server


@pytest.fixture
def entra() -> Iterator[DirectoryServer]:
    server = DirectoryServer()
    with serve(entra_app(server)) as server.endpoint:
        yield server


def connect_keycloak(server: DirectoryServer, secret: str = SECRET) -> GroupDirectory:
    settings = {"kind": "keycloak", "url": server.endpoint, "realm": "platform"}
    client = {"client_id": "reader", "client_secret": "env:READER"}
    return KeycloakSettings.model_validate(settings | client).connect(lambda _reference: secret)


def connect_entra(server: DirectoryServer, secret: str = SECRET) -> GroupDirectory:
    settings = {"kind": "entra", "tenant_id": "contoso.example", "client_id": "reader", "client_secret": "env:READER"}
    places = {"login_url": server.endpoint, "graph_url": server.endpoint}
    return EntraSettings.model_validate(settings | places).connect(lambda _reference: secret)


def group(name: str, group_id: str, *below: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Return a group as Keycloak represents it."""
    return {"id": group_id, "name": name, "path": f"{above}/{name}", "subGroupCount": len(below), "subGroups": [*below]}


def user(subject: str, **more: Any) -> dict[str, Any]:
    """Return a member as Keycloak represents it."""
    return {"id": subject, "username": f"{subject}@acme", "enabled": True, "emailVerified": False, **more}


def member(subject: str, **more: Any) -> dict[str, Any]:
    """Return a member as Graph represents it."""
    names = {"displayName": f"Name of {subject}", "userPrincipalName": f"{subject}@contoso.example"}
    return {"@odata.type": "#microsoft.graph.user", "id": subject, "accountEnabled": True, **names, **more}


def test_keycloak_members_come_in_pages(keycloak: DirectoryServer) -> None:
    keycloak.groups = [group("analysts", ANALYSTS)]
    keycloak.members = [user(f"u{number:03}", firstName="Ann", lastName=str(number)) for number in range(230)]

    people = connect_keycloak(keycloak).list_members("analysts")

    assert [person.subject for person in people] == [f"u{number:03}" for number in range(230)]
    assert people[7] == Person("u007", "Ann 7")
    assert sum("/members" in call for call in keycloak.calls) == 3


def test_keycloak_leaves_out_disabled_accounts(keycloak: DirectoryServer) -> None:
    keycloak.groups = [group("analysts", ANALYSTS)]
    keycloak.members = [user("ann"), user("ben", enabled=False)]

    assert connect_keycloak(keycloak).list_members("analysts") == [Person("ann", "ann@acme")]


def test_keycloak_finds_a_group_by_name_in_the_tree(keycloak: DirectoryServer) -> None:
    keycloak.groups = [group("teams", TEAM, group("analysts", ANALYSTS, above="/teams"))]
    keycloak.members = [user("ann")]

    assert connect_keycloak(keycloak).list_members("analysts") == [Person("ann", "ann@acme")]
    assert connect_keycloak(keycloak).list_members("/teams/analysts") == [Person("ann", "ann@acme")]


def test_keycloak_refuses_an_ambiguous_name(keycloak: DirectoryServer) -> None:
    keycloak.groups = [group("analysts", ANALYSTS), group("teams", "x", group("analysts", TEAM, above="/teams"))]

    with pytest.raises(AmbiguousGroupError, match=r"2 groups named `analysts`: `/analysts`, `/teams/analysts`"):
        connect_keycloak(keycloak).list_members("analysts")


@pytest.mark.parametrize("name", ["analyst", "/analysts/none", "/../../users", "/a/./b"])
def test_keycloak_reports_a_missing_group(keycloak: DirectoryServer, name: str) -> None:
    keycloak.groups = [group("analysts", ANALYSTS)]

    with pytest.raises(GroupNotFoundError, match="has no group"):
        connect_keycloak(keycloak).list_members(name)
    assert not [call for call in keycloak.calls if ".." in call or "users" in call]


def test_entra_members_come_in_pages(entra: DirectoryServer) -> None:
    entra.groups = [{"id": ANALYSTS, "displayName": "analysts"}]
    entra.members = [member(f"u{number}") for number in range(5)]

    assert [person.subject for person in connect_entra(entra).list_members("analysts")] == [
        "u0",
        "u1",
        "u2",
        "u3",
        "u4",
    ]
    assert connect_entra(entra).list_members(ANALYSTS)[0] == Person("u0", "Name of u0")


def test_entra_counts_active_people_only(entra: DirectoryServer) -> None:
    entra.groups = [{"id": ANALYSTS, "displayName": "analysts"}]
    nested = {"@odata.type": "#microsoft.graph.group", "id": TEAM, "displayName": "nested"}
    # Without the right to read users, Graph reports type and id alone.
    unreadable = member("cid", displayName=None, userPrincipalName=None, accountEnabled=None)
    entra.members = [member("ann"), nested, member("ben", accountEnabled=False), unreadable, member("ann")]

    assert connect_entra(entra).list_members("analysts") == [Person("ann", "Name of ann"), Person("cid", "cid")]


def test_entra_quotes_names(entra: DirectoryServer) -> None:
    entra.groups = [{"id": ANALYSTS, "displayName": "Ann's team"}]

    assert connect_entra(entra).list_members("Ann's team") == []


def test_entra_refuses_an_ambiguous_name(entra: DirectoryServer) -> None:
    entra.groups = [{"id": ANALYSTS, "displayName": "analysts"}, {"id": TEAM, "displayName": "analysts"}]

    with pytest.raises(AmbiguousGroupError, match=f"`{ANALYSTS}`, `{TEAM}`. Name the group by its object id"):
        connect_entra(entra).list_members("analysts")


@pytest.mark.parametrize("name", ["analysts", TEAM])
def test_entra_reports_a_missing_group(entra: DirectoryServer, name: str) -> None:
    with pytest.raises(GroupNotFoundError, match="has no group"):
        connect_entra(entra).list_members(name)


def test_entra_sends_its_token_to_no_other_server(entra: DirectoryServer, keycloak: DirectoryServer) -> None:
    entra.groups = [{"id": ANALYSTS, "displayName": "analysts"}]
    entra.refusals = [
        JSONResponse({"value": [{"id": ANALYSTS}]}),
        JSONResponse({"value": [], "@odata.nextLink": f"{keycloak.endpoint}/v1.0/groups"}),
    ]

    with pytest.raises(DirectoryUnavailableError, match="sent to no other server"):
        connect_entra(entra).list_members("analysts")
    assert keycloak.calls == []


def refuse_for_rate_limit() -> Response:
    body = {"error": {"code": "TooManyRequests", "message": "slow down"}}
    return JSONResponse(body, 429, headers={"retry-after": "17"})


def test_expired_token_and_rate_limit_pass(entra: DirectoryServer, keycloak: DirectoryServer) -> None:
    entra.groups = [{"id": ANALYSTS, "displayName": "analysts"}]
    keycloak.groups = [group("analysts", ANALYSTS)]
    for server, connect in ((entra, connect_entra), (keycloak, connect_keycloak)):
        server.rejected, server.refusals = {"t1"}, [refuse_for_rate_limit(), JSONResponse({}, 503)]

        assert connect(server).list_members("analysts") == []
        assert server.issued == 2


def test_lasting_rate_limit_is_reported(entra: DirectoryServer) -> None:
    entra.refusals = [refuse_for_rate_limit() for _ in range(9)]

    with pytest.raises(DirectoryUnavailableError, match=r"responded with 429 \(TooManyRequests\).*Try again later"):
        connect_entra(entra).list_members("analysts")


def test_wrong_secret_is_reported_without_it(entra: DirectoryServer, keycloak: DirectoryServer) -> None:
    for server, connect in ((entra, connect_entra), (keycloak, connect_keycloak)):
        with pytest.raises(DirectoryRefusedError, match="401 invalid_client") as refused:
            connect(server, "another").list_members("analysts")
        assert SECRET not in str(refused.value)
        assert "another" not in str(refused.value)


def test_missing_rights_are_reported(entra: DirectoryServer) -> None:
    entra.refusals = [JSONResponse({"error": {"code": "Authorization_RequestDenied", "message": "x"}}, 403)]

    with pytest.raises(DirectoryRefusedError, match=r"403 to client `reader` \(Authorization_RequestDenied\)"):
        connect_entra(entra).list_members("analysts")


def test_answer_that_is_no_json_is_reported(keycloak: DirectoryServer) -> None:
    keycloak.refusals = [Response("<html>sign in</html>")]

    with pytest.raises(DirectoryUnavailableError, match="something other than JSON"):
        connect_keycloak(keycloak).list_members("analysts")


def test_directory_without_tls_is_refused() -> None:
    server = DirectoryServer(endpoint="http://idp.example")

    with pytest.raises(DirectoryRefusedError, match="expected `https://`"):
        connect_keycloak(server)
