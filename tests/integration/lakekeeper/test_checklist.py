"""Rules of Lakekeeper that the sandbox must follow, and that the recordings do not cover."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx
import pytest
from fastapi import FastAPI
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.protocol.clock import Clock
from lakewright_sandbox.lakekeeper.protocol.settings import NIL_PROJECT
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.integration.lakekeeper.rules import (
    KEY,
    MANAGEMENT,
    PROFILE,
    app,
    bootstrap,
    client,
    clock,
    create,
    create_table,
    create_warehouse,
    get_refusal,
    get_warehouse,
    keys_under,
    light,
    module_light,
    run_all,
    run_light_server,
    warehouse,
)

__all__ = ["app", "client", "clock", "light", "module_light", "warehouse"]


def test_bootstrap_runs_once_and_creates_the_default_project(tmp_path: Path) -> None:
    with run_light_server(tmp_path) as new:
        assert get_refusal(create(new)) == (404, "ProjectNotFound")
        assert new.get("/management/v1/project-list").json() == {"projects": []}
        bootstrap(new)
        (project,) = new.get("/management/v1/project-list").json()["projects"]
        assert project["project-id"] == NIL_PROJECT
        response = new.post("/management/v1/bootstrap", json={"accept-terms-of-use": True})
        assert get_refusal(response) == (400, "CatalogAlreadyBootstrapped")


@pytest.mark.parametrize(
    ("profile", "blocked"),
    [
        ({}, True),
        ({"key_prefix": "main/within"}, True),
        ({"key_prefix": None}, True),
        ({"key_prefix": "main-too"}, False),
        ({"bucket": "other"}, False),
        ({"region": "eu-west-1"}, False),
        ({"endpoint": "http://s3.test"}, False),
    ],
    ids=str,
)
def test_locations_overlap_within_bucket_region_and_endpoint(
    light: Any, warehouse: str, profile: Any, *, blocked: bool
) -> None:
    light.post(f"{MANAGEMENT}/{warehouse}/deactivate").raise_for_status()
    response = create(light, "second", **profile)
    if blocked:
        assert get_refusal(response) == (400, "CreateWarehouseStorageProfileOverlap")
        other = f"p{uuid.uuid4().hex}"
        light.post("/management/v1/project", json={"project-id": other, "project-name": "other"}).raise_for_status()
        response = create(light, "second", {"x-project-id": other}, **profile)
    assert response.status_code == 201


def test_names_ignore_case_and_renames_to_taken_names_are_503(light: Any, warehouse: str) -> None:
    assert get_refusal(create(light, "MAIN", key_prefix="other")) == (409, "WarehouseAlreadyExists")
    other = create_warehouse(light, "other", key_prefix="other")
    light.post(f"{MANAGEMENT}/{warehouse}/deactivate").raise_for_status()
    response = light.post(f"{MANAGEMENT}/{other}/rename", json={"new-name": "Main"})
    assert get_refusal(response) == (503, "CatalogBackendError")
    assert light.post(f"{MANAGEMENT}/{other}/rename", json={"new-name": "OTHER"}).json()["name"] == "OTHER"


CALLS_ON_ACTIVE_WAREHOUSES: dict[str, tuple[str, str, Any]] = {
    "rename": ("POST", "rename", {"new-name": "x"}),
    "storage": ("POST", "storage", {"storage-profile": PROFILE}),
    "credential": ("POST", "storage-credential", {}),
    "delete profile": ("POST", "delete-profile", {"delete-profile": {"type": "hard"}}),
    "deleted tabulars": ("GET", "deleted-tabulars", None),
    "undrop": ("POST", "deleted-tabulars/undrop", {"targets": []}),
    "queue": ("GET", "task-queue/tabular_purge/config", None),
    "search": ("POST", "search-tabular", {"search": "x"}),
}
CALLS_ON_ANY_WAREHOUSE: dict[str, tuple[str, str, Any]] = {
    "read": ("GET", "", None),
    "deactivate": ("POST", "/deactivate", {}),
    "protection": ("POST", "/protection", {"protected": False}),
    "format versions": ("POST", "/format-version-policy", {"allowed-format-versions": [2]}),
    "statistics": ("GET", "/statistics", None),
    "activate": ("POST", "/activate", {}),
    "delete": ("DELETE", "", None),
}


@pytest.mark.parametrize("call", CALLS_ON_ACTIVE_WAREHOUSES)
def test_calls_that_need_an_active_warehouse_are_refused(call: str, light: Any, warehouse: str) -> None:
    method, path, body = CALLS_ON_ACTIVE_WAREHOUSES[call]
    light.post(f"{MANAGEMENT}/{warehouse}/deactivate").raise_for_status()
    light.get(f"{MANAGEMENT}/{warehouse}").raise_for_status()  # updates the cached status
    response = light.request(method, f"{MANAGEMENT}/{warehouse}/{path}", json=body)
    assert get_refusal(response) == (404, "NoSuchWarehouseException")


@pytest.mark.parametrize("body", [None, {"protected": True}], ids=["read", "set"])
@pytest.mark.parametrize("kind", ["namespace", "table"])
def test_protection_in_an_inactive_warehouse_is_missing(client: Any, make_warehouse: Any, kind: str, body: Any) -> None:
    warehouse = make_warehouse(client, f"inactive-{uuid.uuid4().hex[:8]}")
    create_table(client, warehouse)
    namespace = client.get(f"/catalog/v1/{warehouse}/namespaces/n").json()
    table = client.get(f"/catalog/v1/{warehouse}/namespaces/n/tables/t").json()
    ids = {"namespace": namespace["properties"]["namespace_id"], "table": table["metadata"]["table-uuid"]}
    path = f"{MANAGEMENT}/{warehouse}/{kind}/{ids[kind]}/protection"
    assert client.get(path).json()["protected"] is False

    client.post(f"{MANAGEMENT}/{warehouse}/deactivate").raise_for_status()
    client.get(f"{MANAGEMENT}/{warehouse}").raise_for_status()  # updates the cached status

    response = client.post(path, json=body) if body else client.get(path)
    assert get_refusal(response) == (404, "NoSuchWarehouseException")


@pytest.mark.parametrize(
    ("config", "is_valid"),
    [
        ({"cleanup-period": "P1D", "retention-period": "P90D"}, True),
        ({"cleanup-period": None, "retention-period": "P2W"}, True),
        ({"cleanup-period": "PT1H30M45.5S", "retention-period": None, "unknown": 1}, True),
        ({"cleanup-period": "P1D"}, False),
        ({"cleanup-period": "1 day", "retention-period": None}, False),
        ({"cleanup-period": "P1M", "retention-period": None}, False),
        ({"cleanup-period": 86400, "retention-period": None}, False),
    ],
    ids=str,
)
def test_periods_of_the_log_cleanup_are_durations(light: Any, config: dict[str, Any], *, is_valid: bool) -> None:
    response = light.post("/management/v1/project/task-queue/task_log_cleanup/config", json={"queue-config": config})
    if is_valid:
        assert response.status_code == 204
    else:
        assert get_refusal(response) == (400, "InvalidQueueConfig")


@pytest.mark.parametrize("call", CALLS_ON_ANY_WAREHOUSE)
def test_calls_that_accept_an_inactive_warehouse(call: str, light: Any, warehouse: str) -> None:
    method, path, body = CALLS_ON_ANY_WAREHOUSE[call]
    light.post(f"{MANAGEMENT}/{warehouse}/deactivate").raise_for_status()
    assert light.request(method, f"{MANAGEMENT}/{warehouse}{path}", json=body).status_code in {200, 204}


def test_unset_fields_are_null(light: Any, warehouse: str) -> None:
    live_warehouse = get_warehouse(light, warehouse)
    optional = ("assume-role-arn", "endpoint", "sts-role-arn", "sts-endpoint", "aws-kms-key-arn", "storage-layout")
    assert {key: live_warehouse["storage-profile"][key] for key in optional} == dict.fromkeys(optional)
    assert (live_warehouse["updated-at"], "default-format-version" in live_warehouse) == (None, False)


@pytest.mark.parametrize("missing", ["sts-enabled", "region", "bucket"])
def test_a_profile_that_lacks_something_is_refused_in_plain_text(light: Any, missing: str) -> None:
    profile = {key: value for key, value in PROFILE.items() if key != missing}
    response = light.post(MANAGEMENT, json={"warehouse-name": "x", "storage-profile": profile})
    assert (response.status_code, response.headers["content-type"].partition(";")[0]) == (422, "text/plain")
    assert missing in response.text


def test_a_drop_without_purge_parameter_purges(
    client: Any, app: FastAPI, clock: Clock, make_warehouse: Any, aws: Any
) -> None:
    warehouse = make_warehouse(client, "says-nothing")
    table = create_table(client, warehouse)
    client.delete(f"/catalog/v1/{warehouse}/namespaces/n/tables/t").raise_for_status()
    clock.advance(60)
    run_all(app)
    assert keys_under(aws, table) == []


def test_a_soft_deleted_table_blocks_dropping_its_namespace(client: Any, make_warehouse: Any) -> None:
    warehouse = make_warehouse(client, "kept-by-soft", soft_delete_seconds=60)
    create_table(client, warehouse)
    path = f"/catalog/v1/{warehouse}/namespaces/n"
    client.delete(f"{path}/tables/t").raise_for_status()
    assert client.get(f"{path}/tables").json()["identifiers"] == []
    assert get_refusal(client.delete(path)) == (409, "NamespaceNotEmptyException")
    assert get_refusal(client.delete(path, params={"recursive": "true"})) == (400, "NamespaceDeleteNotAllowed")


def test_vended_credentials_that_reach_too_far_are_refused(client: Any, make_warehouse: Any, aws: Any) -> None:
    """A token service ignores the policy of its requests, as in some stores."""

    async def drop_policy(request: Request) -> Response:
        form = [(key, value) for key, value in parse_qsl((await request.body()).decode()) if key != "Policy"]
        headers = {"content-type": "application/x-www-form-urlencoded"}
        headers["authorization"] = request.headers["authorization"]
        async with httpx.AsyncClient() as http:
            response = await http.post(aws.endpoint, content=urlencode(form), headers=headers)
        return Response(response.content, response.status_code, media_type=response.headers["content-type"])

    with serve(Starlette(routes=[Route("/", drop_policy, methods=["POST"])])) as sts_endpoint:
        key = KEY | {"access-key-id": aws.access_key_id, "secret-access-key": aws.secret_access_key}
        profile = PROFILE | {"bucket": "tenants", "key-prefix": "too-far", "sts-enabled": True}
        profile |= {"endpoint": aws.endpoint, "path-style-access": True, "sts-endpoint": sts_endpoint}
        body = {"warehouse-name": "too-far", "storage-profile": profile, "storage-credential": key}
        response = client.post(MANAGEMENT, json=body)
    assert get_refusal(response) == (412, "ShortTermCredentialError"), response.text
    assert "too-far" not in [
        listed_warehouse["name"] for listed_warehouse in client.get(MANAGEMENT).json()["warehouses"]
    ]
