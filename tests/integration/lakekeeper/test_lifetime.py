"""Restarts, soft deletion and its expiry, and purges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.clock import Clock
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import NEWEST

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def app(clock: Clock, aws: Any, tmp_path: Path) -> FastAPI:
    """A server within the test. The test may advance its clock, and runs its worker."""
    settings = Settings(
        version=NEWEST,
        database=f"sqlite:///{tmp_path / 'lakekeeper.db'}",
        aws_endpoint=aws.endpoint,
        credentials_file=aws.credentials_file,
        aws_system_identity=True,
        task_poll_seconds=3600,
    )
    return create_app(settings, clock)


@pytest.fixture
def client(app: FastAPI) -> Iterator[Any]:
    with TestClient(app) as client:
        client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
        yield client


def create_table(client: Any, warehouse: str) -> dict[str, Any]:
    client.post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": ["n"]}).raise_for_status()
    response = client.post(f"/catalog/v1/{warehouse}/namespaces/n/tables", json={"name": "t", "schema": SCHEMA})
    assert response.status_code == 200, response.text
    return response.json()


def count_files(table: dict[str, Any], aws: Any) -> int:
    bucket, _, key = table["metadata"]["location"].removeprefix("s3://").partition("/")
    return aws.client("s3").list_objects_v2(Bucket=bucket, Prefix=key)["KeyCount"]


def run_due(app: FastAPI) -> int:
    return app.state.worker.run_due()


def test_a_soft_deleted_table_expires(client: Any, app: FastAPI, clock: Clock, make_warehouse: Any, aws: Any) -> None:
    warehouse = make_warehouse(client, "expiring", soft_delete_seconds=3600)
    management = f"/management/v1/warehouse/{warehouse}"
    table = create_table(client, warehouse)
    client.delete(f"/catalog/v1/{warehouse}/namespaces/n/tables/t", params={"purgeRequested": "true"})
    assert run_due(app) == 0
    assert client.delete(management).json()["error"]["type"] == "WarehouseHasUnfinishedTasks"
    clock.advance(3601)
    assert run_due(app) == 2  # the expiry, and the purge that it requested
    assert client.get(f"{management}/deleted-tabulars").json()["tabulars"] == []
    assert count_files(table, aws) == 0
    assert client.delete(f"/catalog/v1/{warehouse}/namespaces/n").status_code == 204
    assert client.delete(management).status_code == 204


def test_an_undropped_table_does_not_expire(client: Any, app: FastAPI, clock: Clock, make_warehouse: Any) -> None:
    warehouse = make_warehouse(client, "undropped", soft_delete_seconds=60)
    table = create_table(client, warehouse)
    path = f"/catalog/v1/{warehouse}/namespaces/n/tables/t"
    client.delete(path).raise_for_status()
    targets = {"targets": [{"type": "table", "id": table["metadata"]["table-uuid"]}]}
    undrop = f"/management/v1/warehouse/{warehouse}/deleted-tabulars/undrop"
    assert client.post(undrop, json=targets).status_code == 204
    clock.advance(61)
    assert run_due(app) == 0
    assert client.get(path).json()["metadata"] == table["metadata"]


def test_a_name_that_was_taken_again_cannot_be_undropped(client: Any, make_warehouse: Any) -> None:
    warehouse = make_warehouse(client, "retaken", soft_delete_seconds=60)
    dropped = create_table(client, warehouse)["metadata"]["table-uuid"]
    tables = f"/catalog/v1/{warehouse}/namespaces/n/tables"
    client.delete(f"{tables}/t").raise_for_status()
    client.post(tables, json={"name": "T", "schema": SCHEMA}).raise_for_status()
    undrop = f"/management/v1/warehouse/{warehouse}/deleted-tabulars/undrop"
    response = client.post(undrop, json={"targets": [{"type": "table", "id": dropped}]})
    assert (response.status_code, response.json()["error"]["type"]) == (409, "AlreadyExistsException")


@pytest.mark.parametrize("action", ["cancel", "run-now"])
def test_a_scheduled_deletion_can_be_controlled(
    client: Any, app: FastAPI, make_warehouse: Any, aws: Any, action: str
) -> None:
    warehouse = make_warehouse(client, "controlled", soft_delete_seconds=3600)
    table = create_table(client, warehouse)
    client.delete(f"/catalog/v1/{warehouse}/namespaces/n/tables/t").raise_for_status()
    tasks = f"/management/v1/warehouse/{warehouse}/task"
    task = client.post(f"{tasks}/list", json={"queue-name": ["soft_deletion"]}).json()["tasks"][0]
    control = {"action": {"action-type": action}, "task-ids": [task["task-id"]]}
    assert client.post(f"{tasks}/control", json=control).status_code == 204
    run_due(app)
    status = client.get(f"{tasks}/by-id/{task['task-id']}").json()["status"]
    remaining = client.get(f"/catalog/v1/{warehouse}/namespaces/n/tables").json()["identifiers"]
    if action == "cancel":
        assert (status, len(remaining)) == ("CANCELLED", 1)
    else:
        assert (status, remaining, count_files(table, aws)) == ("SUCCESS", [], 0)


def test_a_drop_without_purge_keeps_the_files(client: Any, app: FastAPI, make_warehouse: Any, aws: Any) -> None:
    warehouse = make_warehouse(client, "kept")
    table = create_table(client, warehouse)
    client.delete(f"/catalog/v1/{warehouse}/namespaces/n/tables/t", params={"purgeRequested": "false"})
    assert run_due(app) == 0
    assert count_files(table, aws) == 1


def test_recursive_drop_keeps_files_of_dropped_tables(client: Any, app: FastAPI, make_warehouse: Any, aws: Any) -> None:
    warehouse = make_warehouse(client, "recursive", soft_delete_seconds=3600)
    dropped_table = create_table(client, warehouse)
    namespace = f"/catalog/v1/{warehouse}/namespaces/n"
    client.delete(f"{namespace}/tables/t").raise_for_status()
    live_table = client.post(f"{namespace}/tables", json={"name": "live", "schema": SCHEMA}).json()

    client.delete(namespace, params={"recursive": "true", "force": "true", "purge": "true"}).raise_for_status()
    run_due(app)

    assert (count_files(live_table, aws), count_files(dropped_table, aws)) == (0, 1)


def test_a_failed_purge_is_retried(client: Any, app: FastAPI, clock: Clock, make_warehouse: Any, aws: Any) -> None:
    warehouse = make_warehouse(client, "failing")
    table = create_table(client, warehouse)
    s3 = aws.client("s3")
    deny = (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Principal": "*", '
        f'"Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::{table["metadata"]["location"][5:]}/*"}}]}}'
    )
    s3.put_bucket_policy(Bucket="tenants", Policy=deny)
    try:
        client.delete(f"/catalog/v1/{warehouse}/namespaces/n/tables/t", params={"purgeRequested": "true"})
        assert run_due(app) == 1
        assert count_files(table, aws) == 1
    finally:
        s3.delete_bucket_policy(Bucket="tenants")
    tasks = client.post(f"/management/v1/warehouse/{warehouse}/task/list", json={}).json()["tasks"]
    assert (tasks[0]["status"], tasks[0]["attempt"]) == ("SCHEDULED", 1)
    clock.advance(60)
    assert run_due(app) == 1
    assert count_files(table, aws) == 0


def test_tables_are_counted_by_the_hour(client: Any, app: FastAPI, clock: Clock, make_warehouse: Any) -> None:
    warehouse = make_warehouse(client, "counted")
    create_table(client, warehouse)
    for _ in range(2):
        clock.advance(3600)
        run_due(app)
    url = f"/management/v1/warehouse/{warehouse}/statistics"
    first = client.get(url, params={"page_size": 2}).json()
    assert [entry["number-of-tables"] for entry in first["stats"]] == [1, 1]
    second_page = client.get(url, params={"page_token": first["next-page-token"]}).json()
    assert [entry["number-of-tables"] for entry in second_page["stats"]] == [
        0
    ]  # counted when the warehouse was created


def test_only_instance_admins_change_a_managed_warehouse(client: Any, managed: str) -> None:
    for response in (client.delete(managed), client.post(f"{managed}/rename", json={"new-name": "x"})):
        assert (response.status_code, response.json()["error"]["type"]) == (403, "WarehouseManaged")


def test_everything_is_kept_over_a_restart(start_lakekeeper: Any, make_warehouse: Any, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'kept.db'}"
    before = start_lakekeeper(database=database)
    warehouse = make_warehouse(before, "restarted")
    table = create_table(before, warehouse)
    info = before.get("/management/v1/info").json()
    start_lakekeeper.stop(before)
    after = start_lakekeeper(database=database, bootstrap=False)
    assert after.get("/management/v1/info").json() == info
    loaded = after.get(f"/catalog/v1/{warehouse}/namespaces/n/tables/t").json()
    assert loaded["metadata"] == table["metadata"]
    update = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}
    assert after.post(f"/catalog/v1/{warehouse}/namespaces/n/tables/t", json=update).status_code == 200


def test_postgres_serves_as_well(postgres: str, start_lakekeeper: Any, make_warehouse: Any) -> None:
    client = start_lakekeeper(database=postgres)
    warehouse = make_warehouse(client, "on-postgres")
    create_table(client, warehouse)
    path = f"/catalog/v1/{warehouse}/namespaces/n"
    update = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}
    assert client.post(f"{path}/tables/t", json=update).json()["metadata"]["properties"] == {"k": "v"}
    duplicate = client.post(f"{path}/tables", json={"name": "T", "schema": SCHEMA})
    assert duplicate.status_code == 409
    assert client.delete(path, params={"recursive": "true"}).status_code == 204
    start_lakekeeper.stop(client)  # before its database is deleted
