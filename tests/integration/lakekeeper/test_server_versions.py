"""Differences between server versions: a test for each row of the table of differences, on every version."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from lakewright_sandbox import services
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

V1 = "/management/v1"
VERSIONS = ("0.11", "0.12", "0.13", "0.14")
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


@dataclass
class Old:
    """A server that plays a version."""

    version: str
    http: httpx.Client
    aws: Any
    app: FastAPI

    def is_at_least(self, version: str) -> bool:
        return [int(part) for part in self.version.split(".")] >= [int(part) for part in version.split(".")]

    def keys(self, prefix: str = "aws-") -> dict[str, str]:
        keys = {"access-key-id": self.aws.access_key_id, "secret-access-key": self.aws.secret_access_key}
        return {"type": "s3", "credential-type": "access-key"} | {f"{prefix}{key}": keys[key] for key in keys}

    def profile(self, **changes: Any) -> dict[str, Any]:
        location = {"type": "s3", "bucket": "tenants", "region": "us-east-1", "endpoint": self.aws.endpoint}
        access = {"flavor": "s3-compat", "path-style-access": True, "sts-enabled": True}
        return location | access | {"key-prefix": uuid.uuid4().hex} | changes

    def create(self, **changes: Any) -> httpx.Response:
        body = {"warehouse-name": uuid.uuid4().hex, "storage-profile": self.profile()}
        return self.http.post(f"{V1}/warehouse", json=body | {"storage-credential": self.keys()} | changes)

    def warehouse(self, **changes: Any) -> dict[str, Any]:
        response = self.create(**changes)
        assert response.status_code == 201, response.text
        return response.json()

    def unknown(self, method: str, path: str, **request: Any) -> bool:
        """Return whether the server has no such call: 404 with an empty body."""
        response = self.http.request(method, path, **request)
        return (response.status_code, response.content) == (404, b"")


@pytest.fixture(scope="module")
def servers(aws: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Old]]:
    with ExitStack() as stack:
        started: dict[str, Old] = {}
        for version in VERSIONS:
            database = tmp_path_factory.mktemp("version") / "lakekeeper.db"
            app = create_app(
                Settings(
                    database=f"sqlite:///{database}",
                    version=version,
                    aws_endpoint=aws.endpoint,
                    skip_storage_validation=True,
                )
            )
            http = stack.enter_context(httpx.Client(base_url=stack.enter_context(serve(app)), timeout=30))
            http.post(f"{V1}/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
            started[version] = Old(version, http, aws, app)
        yield started


@pytest.fixture(params=VERSIONS)
def old(request: Any, servers: dict[str, Old]) -> Old:
    return servers[request.param]


def test_row_default_project_calls_are_removed(old: Old) -> None:
    assert old.unknown("GET", f"{V1}/default-project")
    assert old.unknown("POST", f"{V1}/default-project/rename", json={"new-name": "x"})
    assert old.http.get(f"{V1}/project").json()["project-name"] == "Default Project"


def test_row_create_warehouse_returns_the_whole_warehouse(old: Old) -> None:
    warehouse = old.warehouse()
    assert warehouse == old.http.get(f"{V1}/warehouse/{warehouse['id']}").json()


def test_row_changes_return_the_warehouse(old: Old) -> None:
    warehouse = old.warehouse()
    path = f"{V1}/warehouse/{warehouse['id']}"
    changes = {
        "rename": {"new-name": uuid.uuid4().hex},
        "storage": {"storage-profile": warehouse["storage-profile"], "storage-credential": old.keys()},
        "storage-credential": {"new-storage-credential": old.keys()},
        "delete-profile": {"delete-profile": {"type": "soft", "expiration-seconds": 60}},
    }
    for call, body in changes.items():
        assert old.http.post(f"{path}/{call}", json=body).json() == old.http.get(path).json()


def test_row_warehouse_id_key_and_its_neighbours(old: Old) -> None:
    warehouse = old.warehouse(**{"default-format-version": 2, "allowed-format-versions": [1, 2]})
    assert warehouse["id"] == warehouse["warehouse-id"]
    assert "updated-at" in warehouse
    assert ("storage-credential-type" in warehouse) == old.is_at_least("0.12")
    for key in ("managed-by", "allowed-format-versions", "default-format-version"):
        assert (key in warehouse) == old.is_at_least("0.13")


def test_row_undrop_path_has_a_dash(old: Old) -> None:
    path = f"{V1}/warehouse/{old.warehouse()['id']}"
    assert old.http.post(f"{path}/deleted-tabulars/undrop", json={"targets": []}).status_code == 204
    assert old.unknown("POST", f"{path}/deleted_tabulars/undrop", json={"targets": []})


def test_row_s3_key_names(old: Old) -> None:
    assert old.create().status_code == 201
    plain = old.create(**{"storage-credential": old.keys(prefix="")})
    assert plain.status_code == (201 if old.is_at_least("0.12") else 422)
    if not old.is_at_least("0.12"):
        assert plain.headers["content-type"].startswith("text/plain")
        assert "missing field `aws-access-key-id`" in plain.text


def test_row_s3_key_names_of_cloudflare_have_never_had_a_prefix(old: Old) -> None:
    cloudflare = {"credential-type": "cloudflare-r2", "token": "t", "account-id": "a"}
    assert old.create(**{"storage-credential": old.keys(prefix="") | cloudflare}).status_code == 201


def test_row_s3_fields(old: Old) -> None:
    """A version silently drops the fields that it does not know, and does not return them."""
    layout = {"type": "tabular-only", "tabular": "{uuid}"}
    profile = old.warehouse(
        **{"storage-profile": old.profile(**{"sts-endpoint": "http://sts.test", "storage-layout": layout})}
    )["storage-profile"]
    assert profile.get("sts-endpoint") == ("http://sts.test/" if old.is_at_least("0.12") else None)
    assert profile.get("storage-layout") == (layout if old.is_at_least("0.12") else None)
    assert ("sts-endpoint" in profile, "storage-layout" in profile) == (old.is_at_least("0.12"),) * 2
    assert profile["remote-signing-enabled"] is True
    assert "legacy-md5-behavior" in profile


def test_row_region_update(old: Old) -> None:
    warehouse = old.warehouse()
    moved = {
        "storage-profile": warehouse["storage-profile"] | {"region": "eu-west-1"},
        "storage-credential": old.keys(),
    }
    response = old.http.post(f"{V1}/warehouse/{warehouse['id']}/storage", json=moved)
    if old.is_at_least("0.12"):
        assert response.json()["storage-profile"]["region"] == "eu-west-1"
    else:
        assert (response.status_code, response.json()["error"]["type"]) == (400, "UpdateError")


def new_table(old: Old, **profile: Any) -> dict[str, Any]:
    warehouse = old.warehouse(**{"storage-profile": old.profile(**profile)})
    root = f"/catalog/v1/{warehouse['id']}/namespaces"
    old.http.post(root, json={"namespace": ["n"]}).raise_for_status()
    table = old.http.post(f"{root}/n/tables", json={"name": "t", "schema": SCHEMA}).raise_for_status().json()
    namespace = old.http.get(f"{root}/n").json()["properties"]
    profile = warehouse["storage-profile"]
    return {"loaded": table, "namespace": namespace, "base": f"s3://{profile['bucket']}/{profile['key-prefix']}"}


def test_row_default_delegation_is_vending(old: Old) -> None:
    config = new_table(old)["loaded"]["config"]
    assert "s3.session-token" in config
    assert "s3.signer" not in config


def test_row_etags_of_tables(old: Old) -> None:
    """Until 0.12, the metadata decides; 0.13 looks at the known credentials, too; 0.14 has an ETag for each request."""
    warehouse = old.warehouse()
    root = f"/catalog/v1/{warehouse['id']}/namespaces"
    old.http.post(root, json={"namespace": ["n"]}).raise_for_status()
    old.http.post(f"{root}/n/tables", json={"name": "t", "schema": SCHEMA}).raise_for_status()
    change = {"action": "set-properties", "updates": {"k": "v"}}
    committed = old.http.post(f"{root}/n/tables/t", json={"requirements": [], "updates": [change]}).headers["etag"]

    def load(access: str, tag: str = "") -> httpx.Response:
        headers = {"X-Iceberg-Access-Delegation": access, "If-None-Match": tag}
        return old.http.get(f"{root}/n/tables/t", headers=headers)

    vended, managed = (load(access).headers["etag"] for access in ("vended-credentials", "client-managed"))
    tags = (vended, managed, committed)
    statuses = {
        access: [load(access, tag).status_code for tag in tags] for access in ("vended-credentials", "client-managed")
    }
    if old.is_at_least("0.14"):
        assert statuses == {"vended-credentials": [304, 200, 200], "client-managed": [200, 304, 200]}
    elif old.is_at_least("0.13"):
        assert statuses == {"vended-credentials": [304, 200, 200], "client-managed": [304, 304, 304]}
    else:
        assert statuses == {"vended-credentials": [304] * 3, "client-managed": [304] * 3}


def test_row_default_delegation_signer_keys(old: Old) -> None:
    config = new_table(old, **{"sts-enabled": False})["loaded"]["config"]
    assert "s3.signer.uri" in config
    assert ("signer.uri" in config) == old.is_at_least("0.13")


def test_row_task_queue_names(old: Old) -> None:
    path = f"{V1}/warehouse/{old.warehouse()['id']}/task-queue"
    name = "soft_deletion" if old.is_at_least("0.14") else "tabular_expiration"
    assert old.http.get(f"{V1}/info").json()["queues"] == [name, "tabular_purge", "task_log_cleanup"]
    assert old.http.get(f"{path}/tabular_expiration/config").json()["queue-config"] == {"queue-name": name}
    assert old.http.post(f"{path}/tabular_expiration/config", json={"queue-config": {}}).status_code == 204
    newer = old.http.post(f"{path}/soft_deletion/config", json={"queue-config": {}})
    assert newer.status_code == (204 if old.is_at_least("0.14") else 400)
    if not old.is_at_least("0.14"):
        assert newer.json()["error"]["type"] == "QueueNotFound"


def test_row_actions_are_objects(old: Old) -> None:
    actions = old.http.get(f"{V1}/warehouse/{old.warehouse()['id']}/actions").json()["allowed-actions"]
    assert {"action": "use"} in actions


def test_row_not_found_type_of_warehouses(old: Old) -> None:
    kind = "NoSuchWarehouseException" if old.is_at_least("0.12") else "WarehouseNotFound"
    missing = uuid.uuid4()
    for path in (f"{V1}/warehouse/{missing}", f"/catalog/v1/{missing}/namespaces", "/catalog/v1/config?warehouse=none"):
        response = old.http.get(path)
        assert (response.status_code, response.json()["error"]["type"]) == (404, kind)


def test_row_name_clash_type(old: Old) -> None:
    response = old.create(**{"warehouse-name": old.warehouse()["name"]})
    assert (response.status_code, response.json()["error"]["type"]) == (409, "WarehouseAlreadyExists")


def test_row_idempotency(old: Old) -> None:
    warehouse = old.warehouse()
    config = old.http.get("/catalog/v1/config", params={"warehouse": warehouse["name"]}).json()
    key = "idempotency-key-lifetime"
    assert (key in config["overrides"], key in config) == (old.version in {"0.12", "0.13"}, old.is_at_least("0.14"))
    path, headers = f"/catalog/v1/{warehouse['id']}/namespaces", {"idempotency-key": str(uuid.uuid4())}
    responses = [old.http.post(path, json={"namespace": ["n"]}, headers=headers).status_code for _ in range(2)]
    assert responses == [200, 200 if old.is_at_least("0.12") else 409]


def test_row_health_of_an_unhealthy_server(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.exc import OperationalError

    def raise_error() -> None:
        raise OperationalError("SELECT 1", {}, Exception("gone"))

    monkeypatch.setattr(old.app.state.lakekeeper.database, "read", raise_error)
    response = old.http.get("/health")
    assert (response.status_code, response.json()["health"]) == (503 if old.is_at_least("0.12") else 200, "error")
    assert not services.reports_ok(response)


def test_row_info_keys(old: Old) -> None:
    info = old.http.get(f"{V1}/info").json()
    assert info["version"] == {"0.11": "0.11.6", "0.12": "0.12.4", "0.13": "0.13.3", "0.14": "0.13.1"}[old.version]
    assert info.get("lakekeeper-version") == (info["version"] if old.is_at_least("0.12") else None)
    assert info["license-status"]["valid"] is True


def test_row_default_layout(old: Old) -> None:
    created = new_table(old)
    table = f"/{created['loaded']['metadata']['table-uuid']}"
    namespace = (
        created["base"] if old.is_at_least("0.13") else f"{created['base']}/{created['namespace']['namespace_id']}"
    )
    assert created["namespace"]["location"] == namespace
    assert created["loaded"]["metadata"]["location"] == namespace + table


def test_row_dry_runs_and_namespace_move(old: Old) -> None:
    warehouse = old.warehouse()["id"]
    calls = {
        f"{V1}/warehouse-creation-validation": {"warehouse-name": "x", "storage-profile": old.profile()},
        f"{V1}/warehouse/{warehouse}/storage/validate-access": {},
        f"{V1}/warehouse/{warehouse}/namespace/{uuid.uuid4()}/move": {"destination": ["x"]},
    }
    for path, body in calls.items():
        assert old.unknown("POST", path, json=body) == (not old.is_at_least("0.14"))


def test_management_lists_refuse_empty_tokens(old: Old) -> None:
    deleted = f"{V1}/warehouse/{old.warehouse()['id']}/deleted-tabulars"
    for path in (deleted, f"{V1}/user", f"{V1}/role"):
        response = old.http.get(path, params={"pageToken": ""})
        if old.is_at_least("0.14"):
            assert response.status_code == 200
        else:
            assert (response.status_code, response.json()["error"]["type"]) == (400, "InvalidPaginationToken")
        assert old.http.get(path).status_code == 200


def test_catalog_lists_take_empty_tokens(old: Old) -> None:
    path = f"/catalog/v1/{old.warehouse()['id']}/namespaces"
    assert old.http.get(path, params={"pageToken": ""}).status_code == 200


def test_an_invalid_page_token_is_refused(old: Old) -> None:
    response = old.http.get(f"{V1}/user", params={"pageToken": "nonsense"})
    assert (response.status_code, response.json()["error"]["type"]) == (400, "InvalidPaginationToken")


@pytest.mark.parametrize("states", [["inactive"], ["active", "inactive"]])
def test_released_servers_refuse_warehouse_status(old: Old, states: list[str]) -> None:
    response = old.http.get(f"{V1}/warehouse", params={"warehouseStatus": states})
    kind = response.headers["content-type"].split(";")[0]
    assert (response.status_code, kind) == (
        (200, "application/json") if old.is_at_least("0.14") else (400, "text/plain")
    )
    assert old.http.get(f"{V1}/warehouse", params={"warehouseStatus[]": states}).status_code == 200


def test_a_deleted_user_keeps_the_id(old: Old) -> None:
    user = {"id": f"oidc~{uuid.uuid4().hex}", "name": "Ann", "user-type": "human"}
    path = f"{V1}/user/{user['id']}"
    assert old.http.post(f"{V1}/user", json=user).status_code == 201
    assert old.http.delete(path).status_code == 204
    assert old.http.get(path).status_code == 404
    assert old.http.delete(path).status_code == (404 if old.is_at_least("0.13") else 204)
    assert old.http.post(f"{V1}/user", json=user).json()["error"]["type"] == "UserAlreadyExists"
    assert old.http.post(f"{V1}/user", json=user | {"update-if-exists": True}).status_code == 200
    assert old.http.get(path).json()["name"] == "Ann"


def test_format_version_policy_and_managed_by_exist_since_0_13(old: Old) -> None:
    path = f"{V1}/warehouse/{old.warehouse()['id']}"
    assert old.unknown("POST", f"{path}/format-version-policy", json={"allowed-format-versions": [2]}) == (
        not old.is_at_least("0.13")
    )
    assert old.unknown("POST", f"{path}/managed-by", json={"managed-by": "self-managed"}) == (
        not old.is_at_least("0.13")
    )


def test_config_names_the_encryption_key_since_0_13(old: Old) -> None:
    arn = "arn:aws:kms:us-east-1:123456789012:key/x"
    name = old.warehouse(**{"storage-profile": old.profile(**{"aws-kms-key-arn": arn})})["name"]
    defaults = old.http.get("/catalog/v1/config", params={"warehouse": name}).json()["defaults"]
    assert defaults.get("s3.sse.key") == (arn if old.is_at_least("0.13") else None)


def test_the_process_takes_the_version_as_an_option(start_lakekeeper: Any) -> None:
    with start_lakekeeper("--version", "0.11", bootstrap=False) as client:
        assert client.get(f"{V1}/info").json()["version"] == "0.11.6"
