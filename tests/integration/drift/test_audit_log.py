"""The search for actors in the audit log of the sandbox, also for requests without the object in their path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import httpx
import pytest
from lakewright.drift.actors.lakekeeper_log import LakekeeperLogSource
from lakewright.drift.actors.source import DriftedObject
from lakewright.drift.model import Difference, DifferenceKind
from lakewright.drift.session import StackResource
from lakewright_engine.model.resources import ResourceState
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.ground import SCHEMA, run_authorizer_server

pytestmark = pytest.mark.stand_in("reads the log file of a separate server")

LAKEKEEPER = "pulumi-python:dynamic/lakekeeper:"
SERVERS = [("0.12", "openfga"), ("0.13", "openfga"), ("0.14", "openfga"), ("0.14", "allow-all")]


class LoggedServer:
    """A server with a project, a warehouse, a namespace and a table, and the file of its audit log."""

    def __init__(self, endpoint: str, sandbox: Sandbox, log: Path, version: str, authorizer: str) -> None:
        self.log, self.version, self.authorizer = log, version, authorizer
        self.project = uuid4().hex[:12]
        headers = {"authorization": "Bearer operator", "x-project-id": self.project}
        self.http = httpx.Client(base_url=endpoint, headers=headers, timeout=60)
        self.post("/management/v1/project", {"project-id": self.project, "project-name": "logged"})
        admin, bucket = sandbox.admin, f"logged-{self.project}"
        session = boto3.Session(admin.access_key_id, admin.secret_access_key.get_secret_value())
        session.client("s3", "us-east-1", endpoint_url=sandbox.aws.endpoint).create_bucket(Bucket=bucket)
        profile = {"type": "s3", "bucket": bucket, "region": sandbox.aws.region, "endpoint": sandbox.aws.endpoint}
        profile |= {"flavor": "s3-compat", "path-style-access": True, "sts-enabled": False}
        key = {"type": "s3", "credential-type": "access-key", "aws-access-key-id": admin.access_key_id}
        key |= {"aws-secret-access-key": admin.secret_access_key.get_secret_value()}
        body = {"warehouse-name": "main", "storage-profile": profile, "storage-credential": key}
        self.warehouse = self.post("/management/v1/warehouse", body)["warehouse-id"]
        self.catalog = f"/catalog/v1/{self.warehouse}"
        for namespace in (["sales"], ["sales", "eu"]):
            self.post(f"{self.catalog}/namespaces", {"namespace": namespace})
        self.post(f"{self.catalog}/namespaces/sales%1Feu/tables", {"name": "orders", "schema": SCHEMA})
        self.post("/management/v1/user", {"id": "oidc~ann", "name": "ann", "user-type": "human"})
        log.write_text("")

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = self.http.post(path, json=body)
        assert response.is_success, f"{path}: {response.text}"
        return response.json() if response.content else {}

    def find_actors(self, kind: str, path: str, object_id: str = "x", target_id: str = "", **inputs: Any) -> set[str]:
        """Return the actors of a change of a resource's property."""
        type_ = f"{LAKEKEEPER}{kind}"
        state = ResourceState(f"urn:pulumi:acme::lake::{type_}::a", type_, custom=True, id=object_id, inputs=inputs)
        resource = StackResource("acme", "acme", "prod", state, updated="2026-01-01T00:00:00Z")
        difference = Difference("acme", "acme", state.urn, type_, "a", path, 1, 2, DifferenceKind.CHANGED)
        drifted = DriftedObject(difference, resource, target_id)
        return {actor.describe() for _, actor in LakekeeperLogSource(self.log).actors([drifted])}

    def table_id(self) -> str:
        pages = self.http.get(f"{self.catalog}/namespaces/sales%1Feu/tables", params={"returnUuids": "true"}).json()
        return str(pages["table-uuids"][0])


@pytest.fixture(scope="module", params=SERVERS, ids="-".join)
def server(request: Any, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoggedServer]:
    version, authorizer = request.param
    folder = tmp_path_factory.mktemp("logged")
    settings = {"version": version, "skip_storage_validation": True, "audit_log": folder / "audit.log"}
    with run_authorizer_server(authorizer, sandbox, folder, **settings) as running:
        yield LoggedServer(running.endpoint, sandbox, folder / "audit.log", version, authorizer)


def test_renamed_project_has_an_actor(server: LoggedServer) -> None:
    server.post("/management/v1/project/rename", {"new-name": "other"})

    assert server.find_actors("Project", "name", server.project) == {"allowed for oidc~operator"}
    assert server.find_actors("Project", "name", "another") == set()


def test_changed_queue_has_an_actor(server: LoggedServer) -> None:
    """Servers before 0.14 call the queue of soft deletion `tabular_expiration`."""
    queue = "soft_deletion" if server.version == "0.14" else "tabular_expiration"
    path = f"/management/v1/warehouse/{server.warehouse}/task-queue/{queue}/config"
    server.post(path, {"queue-config": {}})

    actors = server.find_actors("TaskQueueConfig", "config", warehouse_id=server.warehouse, queue="soft_deletion")
    assert actors == {"allowed for oidc~operator"}


def test_granted_table_has_an_actor(server: LoggedServer) -> None:
    table = server.table_id()
    if server.authorizer == "openfga":
        path = f"/management/v1/permissions/warehouse/{server.warehouse}/table/{table}/assignments"
        server.post(path, {"writes": [{"type": "select", "user": "oidc~ann"}]})
    else:
        path = f"/management/v1/warehouse/{server.warehouse}/table/{table}/grants"
        server.post(path, {"writes": [{"privilege": "read_data", "principal": {"user": "oidc~ann"}}]})
    on = {"type": "table", "warehouse_id": server.warehouse, "namespace": "sales.eu", "name": "orders"}

    assert server.find_actors("Grants", "entries", target_id=table, on=on) == {"allowed for oidc~operator"}
    assert server.find_actors("Grants", "entries", target_id=str(uuid4()), on=on) == set()


def test_granted_project_has_an_actor(server: LoggedServer) -> None:
    if server.authorizer == "openfga":
        body: dict[str, Any] = {"writes": [{"type": "describe", "user": "oidc~ann"}]}
        server.post("/management/v1/permissions/project/assignments", body)
    else:
        body = {"writes": [{"privilege": "get_metadata", "principal": {"user": "oidc~ann"}}]}
        server.post("/management/v1/project/grants", body)
    on = {"type": "project", "project_id": server.project}

    assert server.find_actors("Grants", "entries", on=on) == {"allowed for oidc~operator"}


def test_tables_of_a_transaction_and_a_rename_have_actors(server: LoggedServer) -> None:
    """The bodies name the tables, and not the paths."""
    orders = {"namespace": ["sales", "eu"], "name": "orders"}
    updates = [{"action": "set-properties", "updates": {"owner": "mallory"}}]
    change = {"identifier": orders, "requirements": [], "updates": updates}
    server.post(f"{server.catalog}/transactions/commit", {"table-changes": [change]})
    table = {"warehouse_id": server.warehouse, "namespace": "sales.eu", "name": "orders"}

    assert server.find_actors("Table", "properties", **table) == {"allowed for oidc~operator"}
    assert server.find_actors("Table", "properties", **table | {"name": "others"}) == set()
    assert server.find_actors("Table", "name", **table) == set()

    moved = {"namespace": ["sales", "eu"], "name": "sold"}
    server.post(f"{server.catalog}/tables/rename", {"source": orders, "destination": moved})
    assert server.find_actors("Table", "name", **table) == {"allowed for oidc~operator"}
    server.post(f"{server.catalog}/tables/rename", {"source": moved, "destination": orders})


def test_transaction_of_two_tables_names_both(server: LoggedServer) -> None:
    server.post(f"{server.catalog}/namespaces/sales%1Feu/tables", {"name": "items", "schema": SCHEMA})
    updates = [{"action": "set-properties", "updates": {"owner": "mallory"}}]
    names = [{"namespace": ["sales", "eu"], "name": name} for name in ("orders", "items")]
    changes = [{"identifier": name, "requirements": [], "updates": updates} for name in names]
    server.post(f"{server.catalog}/transactions/commit", {"table-changes": changes})

    [event] = [line for line in map(json.loads, server.log.read_text().splitlines()) if "entities" in line]
    assert [entity["table"] for entity in event["entities"]] == ["orders", "items"]
    assert [action["action_name"] for action in event["actions"]] == ["commit", "commit"]
    table = {"warehouse_id": server.warehouse, "namespace": "sales.eu", "name": "items"}
    assert server.find_actors("Table", "properties", **table) == {"allowed for oidc~operator"}
