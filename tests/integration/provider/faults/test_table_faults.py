"""Every fault at every call of a table's creation, evolution, rename, refresh and deletion: nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import boto3
import pytest
from lakewright.lakekeeper.table.resource import TableProvider
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.faults.fault_server import (
    FAULTS,
    FULL,
    OPERATIONS,
    SHORT_FORM_FAULTS,
    FaultServer,
    Operator,
    find_message_faults,
)
from tests.integration.provider.resource import Props, Resource, permit_adoption

_names = (f"t{number}" for number in count())


@pytest.fixture(scope="module")
def warehouse_id(fault_server: FaultServer, sandbox: Sandbox) -> str:
    """A warehouse on the sandbox's S3, since tables write files, with two namespaces."""
    key, secret = sandbox.admin.access_key_id, sandbox.admin.secret_access_key.get_secret_value()
    client_options = {"endpoint_url": sandbox.aws.endpoint, "region_name": sandbox.aws.region}
    boto3.client("s3", aws_access_key_id=key, aws_secret_access_key=secret, **client_options).create_bucket(
        Bucket="faults"
    )
    profile = {"type": "s3", "bucket": "faults", "region": sandbox.aws.region, "endpoint": sandbox.aws.endpoint}
    profile |= {"flavor": "s3-compat", "path-style-access": True, "sts-enabled": False}
    credential = {"type": "s3", "credential-type": "access-key", "access-key-id": key, "secret-access-key": secret}
    headers = {"x-project-id": "tables"}
    fault_server.http.post("/management/v1/bootstrap", json={"accept-terms-of-use": True})
    fault_server.http.post("/management/v1/project", json={"project-name": "tables", "project-id": "tables"})
    body = {"warehouse-name": "main", "storage-profile": profile, "storage-credential": credential}
    response = fault_server.http.post("/management/v1/warehouse", json=body, headers=headers).raise_for_status()
    warehouse_id = response.json()["id"]
    for name in ("sales", "old"):
        fault_server.http.post(f"/catalog/v1/{warehouse_id}/namespaces", json={"namespace": [name]}).raise_for_status()
    return warehouse_id


@dataclass
class TableRun:
    """One table from creation to deletion."""

    operator: Operator
    warehouse_id: str

    def __post_init__(self) -> None:
        self.name = next(_names)
        self.resource = Resource(TableProvider())
        self.declaration: Props = {
            "server": self.operator.server,
            "warehouse_id": self.warehouse_id,
            "namespace": "sales",
            "name": self.name,
            "columns": [{"name": "id", "type": "int"}, {"name": "note", "type": "string"}],
            "properties": {"owner": "a", "gone": "b"},
            "protected": True,
            "deletion": "purge",
        }
        self.changed = self.declaration | {
            "namespace": "old",
            "name": f"{self.name}-renamed",
            "columns": [{"name": "id", "type": "long"}, {"name": "text", "type": "string", "renamed_from": "note"}],
            "partition_by": ["bucket(4, id)"],
            "properties": {"owner": "c"},
            "protected": False,
        }

    def prepare(self, operation: str) -> TableRun:
        if operation == "delete":
            self.declaration |= {"protected": False}
        if operation != "create":
            self.operator.run(self.create)
        self.operator.fault_server.calls()
        return self

    def create(self) -> None:
        self.resource.up(**self.declaration)

    def update(self) -> None:
        self.resource.up(**self.changed)

    def refresh(self) -> None:
        assert self.resource.refresh() == "same"

    def delete(self) -> None:
        self.resource.destroy()

    def check(self, operation: str) -> None:
        table_names = [name for name in self._list_names() if name.partition("-")[0] == self.name]
        if operation == "delete":
            assert table_names == []
            return
        assert table_names == [self.resource.inputs["name"]]
        self.operator.run(self.refresh)
        assert self.operator.run(lambda: self.resource.up(**self.resource.inputs)) == "same"

    def _list_names(self) -> list[str]:
        root = f"/catalog/v1/{self.warehouse_id}/namespaces"
        responses = [self.operator.fault_server.http.get(f"{root}/{name}/tables").json() for name in ("sales", "old")]
        return [identifier["name"] for response in responses for identifier in response["identifiers"]]


def _matrix() -> Iterator[Any]:
    for operation in OPERATIONS:
        for fault in FAULTS if FULL else SHORT_FORM_FAULTS:
            yield pytest.param(operation, fault, id=f"{operation}-{fault}".replace(" ", "-").replace(",", ""))


@pytest.mark.parametrize(("operation", "fault"), list(_matrix()))
def test_fault_at_every_call(operation: str, fault: str, operator: Operator, warehouse_id: str) -> None:
    clean = TableRun(operator, warehouse_id).prepare(operation)
    calls = operator.record_calls(getattr(clean, operation))
    clean.check(operation)
    assert calls
    for number in range(1, len(calls) + 1):
        for times in (1, None) if FULL else SHORT_FORM_FAULTS[fault]:
            _run_with_fault(
                TableRun(operator, warehouse_id), operation, FAULTS[fault] | {"nth": number, "count": times}
            )


def _run_with_fault(life: TableRun, operation: str, rule: Props) -> None:
    operator, run = life.operator, getattr(life.prepare(operation), operation)
    uuid = life.resource.id
    failure, failed_calls = operator.run_with_fault(run, rule)
    if failure:
        assert find_message_faults(failure, operator.server["endpoint"], failed_calls) == []
        if "needs `adopt`" in str(failure):
            life.declaration |= {"adopt": True}
            permit_adoption({"adopt": True, "project_id": "tables"})
        operator.run(run)
    assert uuid in {"", life.resource.id} or operation == "delete"
    life.check(operation)
