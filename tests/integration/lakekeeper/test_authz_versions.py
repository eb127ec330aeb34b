"""Users, roles and grants on older servers: unknown calls, missing fields and relations."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

V1 = "/management/v1"
SOME = str(uuid.uuid4())


@pytest.fixture(scope="module", params=["0.11", "0.13"])
def old(request: Any, start_openfga: Any) -> tuple[str, httpx.Client]:
    return request.param, start_openfga(version=request.param)("root")


def test_grants_are_unknown(old: tuple[str, httpx.Client]) -> None:
    _, root = old
    for path in (
        "server/grants",
        "grants",
        f"warehouse/{SOME}/grants",
        f"warehouse/{SOME}/grants/grantable-privileges",
    ):
        response = root.get(f"{V1}/{path}")
        assert (response.status_code, response.content) == (404, b"")


def test_members_came_with_0_13_and_before_there_were_assignees(old: tuple[str, httpx.Client]) -> None:
    version, root = old
    role = root.post(f"{V1}/role", json={"name": "r"}).json()["id"]
    response = root.get(f"{V1}/role/{role}/members")
    assert response.status_code == (404 if version == "0.11" else 200)
    assert (response.content == b"") == (version == "0.11")
    assert root.get(f"{V1}/user/oidc~root/roles").status_code == response.status_code
    path = f"{V1}/permissions/role/{role}/assignments"
    assert root.post(path, json={"writes": [{"type": "assignee", "user": "oidc~a"}]}).status_code == 204


def test_a_role_s_identifiers_came_with_0_12(old: tuple[str, httpx.Client]) -> None:
    version, root = old
    role = root.post(f"{V1}/role", json={"name": "plain"}).json()
    fields = {"id", "name", "description", "project-id", "source-id", "created-at", "updated-at"}
    assert role.keys() == fields | ({"ident", "provider-id"} if version == "0.13" else set())
    assert role["source-id"] == (None if version == "0.11" else role["id"])
    alone = root.post(f"{V1}/role", json={"name": "sourced", "source-id": "42"})
    assert alone.status_code == (201 if version == "0.11" else 400)


def test_whoami_reports_instance_admins_since_0_13(old: tuple[str, httpx.Client]) -> None:
    version, root = old
    assert ("is-instance-admin" in root.get(f"{V1}/whoami").json()) == (version == "0.13")


def test_relations_and_actions_for_tags_came_with_0_14(old: tuple[str, httpx.Client]) -> None:
    _, root = old
    tag_creator = {"writes": [{"type": "tag_creator", "user": "oidc~a"}]}
    assert root.post(f"{V1}/permissions/project/assignments", json=tag_creator).status_code == 422
    actions = {one["action"] for one in root.get(f"{V1}/project/actions").json()["allowed-actions"]}
    assert "create_warehouse" in actions
    assert not actions & {"create_tag", "list_tags", "read_grants"}
    assert "grant_tag_creator" not in root.get(f"{V1}/permissions/project/access").json()["allowed-actions"]
