"""Grants without a server: paths, privileges by version, and claims of the resources of one run."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from lakewright.http.retry import RetryPolicy
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, NoSuchPathError, NotAuthenticatedError
from lakewright.lakekeeper.api.connection.privileges import GrantEntry, Object
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.api.connection.versions import parse_server
from lakewright.lakekeeper.api.management import grants, permissions
from lakewright.lakekeeper.provider.ownership_conflicts import Claim, Claims

ANN = GrantEntry("select", "user", "oidc~ann")
WAREHOUSE = Object("warehouse", warehouse_id="w", project_id="p")

OBJECTS = [
    Object("server"),
    Object("project", project_id="p"),
    WAREHOUSE,
    Object("namespace", "n", "p", "w"),
    Object("table", "t", "p", "w"),
    Object("view", "v", "p", "w"),
    Object("generic-table", "g", "p", "w"),
    Object("tag", "d", "p"),
    Object("role", "r", "p"),
]


@pytest.mark.parametrize(
    ("on", "expected"),
    tuple(
        zip(
            OBJECTS,
            [
                *("server", "project", "warehouse/w", "namespace/n", "warehouse/w/table/t", "warehouse/w/view/v"),
                *("warehouse/w/generic-table/g", "tag/d", "role/r"),
            ],
            strict=True,
        )
    ),
    ids=lambda value: value.kind if isinstance(value, Object) else None,
)
def test_path_of_an_objects_tuples(on: Object, expected: str) -> None:
    assert permissions.path(on) == f"/management/v1/permissions/{expected}"


@pytest.mark.parametrize(
    ("on", "expected"),
    tuple(
        zip(
            OBJECTS[:-1],
            [
                "server",
                "project",
                "warehouse/w",
                "warehouse/w/namespace/n",
                "warehouse/w/table/t",
                "warehouse/w/view/v",
                "warehouse/w/generic-table/g",
                "tag-definition/d",
            ],
            strict=True,
        )
    ),
    ids=lambda value: value.kind if isinstance(value, Object) else None,
)
def test_path_of_an_objects_grants(on: Object, expected: str) -> None:
    assert grants.path(on) == f"/management/v1/{expected}/grants"


@pytest.mark.parametrize(
    ("kind", "word", "since"),
    [
        ("project", "tag_creator", "0.14.0"),
        ("warehouse", "manage_tags", "0.14.0"),
        ("namespace", "manage_tags", "0.14.0"),
        ("table", "manage_tags", "0.14.0"),
        ("view", "manage_tags", "0.14.0"),
        ("generic-table", "manage_tags", "0.14.0"),
        ("view", "select", "0.12.0"),
        ("table", "select", "0.11.0"),
        ("server", "operator", "0.11.0"),
        ("role", "assignee", "0.11.0"),
    ],
)
def test_relations_are_known_from_their_version_on(kind: Any, word: str, since: str) -> None:
    versions = ["0.11.0", "0.12.0", "0.13.0", "0.14.0"]
    supporting_versions = [
        version for version in versions if word in parse_server("x", {"version": version}).relations(kind)
    ]
    assert supporting_versions == versions[versions.index(since) :]


def client(responses: list[tuple[int, Any]], requests: list[Any]) -> Client:
    """Return a client of a server with OpenFGA that gives these responses in order."""
    info = {"version": "0.13.3", "authz-backend": "openfga"}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/info"):
            return httpx.Response(200, json=info)
        requests.append((request.method, json.loads(request.content or b"null")))
        status, body = responses.pop(0)
        return httpx.Response(status, json=body)

    server = ServerRef(endpoint="http://lake.test")
    return Client(server, str, retry=RetryPolicy(first_wait=0), transport=httpx.MockTransport(answer))


def error(kind: str, status: int) -> tuple[int, Any]:
    return status, {"error": {"message": "no", "type": kind, "code": status, "stack": []}}


def assignments_response(*some: GrantEntry) -> tuple[int, Any]:
    return 200, {"assignments": [{"type": item.privilege, item.kind: item.principal} for item in some]}


def test_rejected_batch_is_read_and_sent_without_duplicates() -> None:
    requests: list[Any] = []
    bob = GrantEntry("describe", "role", "r")
    responses = [assignments_response(), error("TupleAlreadyExistsError", 409), assignments_response(ANN), (204, None)]
    done = grants.converge(client(responses, requests), WAREHOUSE, lambda _: ({ANN, bob}, set()))
    assert done == {ANN, bob}
    assert [body for method, body in requests if method == "POST"] == [
        {"writes": [{"type": "describe", "role": "r"}, {"type": "select", "user": "oidc~ann"}], "deletes": []},
        {"writes": [{"type": "describe", "role": "r"}], "deletes": []},
    ]


def test_equal_grants_send_nothing() -> None:
    requests: list[Any] = []
    grants.converge(
        client([assignments_response(ANN)], requests),
        WAREHOUSE,
        lambda _: ({ANN}, {GrantEntry("modify", "user", "oidc~x")}),
    )
    assert [method for method, _ in requests] == ["GET"]


def test_repeated_grants_and_revokes_are_successes() -> None:
    grants.add(client([error("TupleAlreadyExistsError", 409)], []), WAREHOUSE, ANN)
    grants.remove(client([error("TupleNotFoundError", 404)], []), WAREHOUSE, ANN)


def test_gateway_404_is_not_absence_under_openfga() -> None:
    """Under another authorizer it means a server without grants. OpenFGA always has their paths."""
    for call in (lambda on: grants.list_grants(on, WAREHOUSE), lambda on: grants.remove(on, WAREHOUSE, ANN)):
        with pytest.raises(NoSuchPathError, match=r"/warehouse/w/assignments at http://lake\.test responded with 404"):
            call(client([(404, "not here")], []))


def test_missing_grant_right_differs_from_missing_token() -> None:
    with pytest.raises(ForbiddenError, match="manage_grants"):
        grants.add(
            client([error("Unauthorized", 401), (404, None)] * 2, []),
            Object("server"),
            GrantEntry("admin", "user", "a~b"),
        )
    with pytest.raises(NotAuthenticatedError):
        grants.add(client([error("AuthenticationFailed", 401)] * 2, []), WAREHOUSE, ANN)


def test_claims_of_one_run() -> None:
    claims, first_warehouse, second_warehouse = (
        Claims(),
        ("http://lake.test", "warehouse/w"),
        ("http://lake.test", "warehouse/v"),
    )
    owner, first = Claim("Grants", "all", frozenset({ANN})), Claim("Grant", "first", frozenset({ANN}))
    assert claims.add(first_warehouse, first) is None
    assert claims.add(first_warehouse, Claim("Grant", "second")) is None
    assert "take away what Grant `first` gives" in str(claims.add(first_warehouse, owner))
    assert claims.add(second_warehouse, owner) is None
    assert claims.entries_of_others(second_warehouse, first) == {ANN}
    assert claims.entries_of_others(second_warehouse, owner) == frozenset()
    claims = Claims()
    assert claims.add(first_warehouse, owner) is None
