"""Drift of each property of a table that jobs can change: shown by a refresh, then restored or refused."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
import pytest
from lakewright.lakekeeper.provider.errors import EvolutionRefusedError
from lakewright.lakekeeper.table.resource import TableProvider
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.resource import Props, Resource, wire

COLUMNS: list[Props] = [
    {"name": "id", "type": "int", "required": True, "doc": "of the order"},
    {"name": "day", "type": "date"},
    {"name": "rate", "type": "double", "default": 1.5},
]
Fields = list[Props]


@pytest.fixture
def orders(warehouse: Resource, server: Props, storage: Props, http: httpx.Client) -> Props:
    http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["sales"]}).raise_for_status()
    return {
        "server": server,
        "warehouse_id": warehouse.id,
        "namespace": "sales",
        "name": "orders",
        "columns": COLUMNS,
        "identifier": ["id"],
        "partition_by": ["days(day)"],
        "sort_by": ["id"],
        "properties": {"owner": "sales"},
        "location": f"s3://{storage['bucket']}/{storage['key_prefix']}/orders",
        "format_version": 3,
    }


class CommittingUser:
    """Another user who commits to the table."""

    def __init__(self, http: httpx.Client, orders: Props) -> None:
        self._http, self._url = http, f"/catalog/v1/{orders['warehouse_id']}/namespaces/sales/tables/orders"

    def current_metadata(self) -> Props:
        """Return the declared parts of the metadata, without the ids that evolution increases."""
        metadata = self._http.get(self._url).raise_for_status().json()["metadata"]
        current = {
            "schemas": ("schema-id", "current-schema-id"),
            "partition-specs": ("spec-id", "default-spec-id"),
            "sort-orders": ("order-id", "default-sort-order-id"),
        }
        current_parts = {
            many: next(item for item in metadata[many] if item[key] == metadata[current_key]) | {key: 0}
            for many, (key, current_key) in current.items()
        }
        return current_parts | {
            key: metadata.get(key) for key in ("properties", "location", "format-version", "table-uuid")
        }

    def commit(self, *updates: Props) -> None:
        self._http.post(self._url, json={"requirements": [], "updates": updates}).raise_for_status()

    def register_elsewhere(self, sandbox: Sandbox) -> str:
        """Register the table's metadata at another location; return that location."""
        metadata = self._http.get(self._url).raise_for_status().json()["metadata"]
        location = f"{metadata['location']}-moved"
        metadata_url = urlsplit(f"{location}/metadata/00000-{uuid.uuid4()}.metadata.json")
        keys = {"aws_access_key_id": sandbox.admin.access_key_id}
        keys["aws_secret_access_key"] = sandbox.admin.secret_access_key.get_secret_value()
        s3 = boto3.client("s3", endpoint_url=sandbox.aws.endpoint, region_name=sandbox.aws.region, **keys)
        s3.put_object(
            Bucket=metadata_url.netloc,
            Key=metadata_url.path[1:],
            Body=json.dumps(metadata | {"location": location}).encode(),
        )
        body = {"name": "orders", "metadata-location": metadata_url.geturl(), "overwrite": True}
        self._http.post(f"{self._url.rsplit('/', 2)[0]}/register", json=body).raise_for_status()
        return location

    def change(self, change: Callable[[Fields], Fields], **schema_fields: Any) -> None:
        before = self.current_metadata()["schemas"]
        fields = change(json.loads(json.dumps(before["fields"])))
        schema = before | {"schema-id": 9, "fields": fields} | schema_fields
        self.commit({"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1})


def field(position: int, **changes: Any) -> Callable[[Fields], Fields]:
    return lambda fields: [field | changes if at == position else field for at, field in enumerate(fields)]


HEALED: dict[str, Callable[[CommittingUser], None]] = {
    "a description": lambda job: job.change(field(0, doc="of something else")),
    "a default": lambda job: job.change(field(2, **{"write-default": 2.5})),
    "a name": lambda job: job.change(field(1, name="when")),
    "the order": lambda job: job.change(lambda fields: fields[::-1]),
    "a column dropped": lambda job: job.change(lambda fields: fields[:2]),
    "a column made required": lambda job: job.change(field(1, required=True)),
    "the identifier": lambda job: job.change(lambda fields: fields, **{"identifier-field-ids": []}),
    "partitions": lambda job: job.commit(
        {"action": "add-spec", "spec": {"spec-id": 9, "fields": []}}, {"action": "set-default-spec", "spec-id": -1}
    ),
    "the sort order": lambda job: job.commit(
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ),
    "a property": lambda job: job.commit({"action": "set-properties", "updates": {"owner": "a job"}}),
    "a property removed": lambda job: job.commit({"action": "remove-properties", "removals": ["owner"]}),
}

REFUSED: dict[str, tuple[Callable[[CommittingUser], None], str]] = {
    "a column widened": (lambda job: job.change(field(0, type="long")), "`id`: long -> int would narrow it"),
    "a column made optional": (
        lambda job: job.change(field(0, required=False), **{"identifier-field-ids": []}),
        "`id` would become required",
    ),
    "a column added": (
        lambda job: job.change(lambda fields: [*fields, {"id": 9, "name": "x", "required": False, "type": "int"}]),
        "`x` is in the table and not declared",
    ),
    "a nested type": (
        lambda job: job.change(
            field(1, type={"type": "list", "element-id": 9, "element": "date", "element-required": False})
        ),
        "`day`: list<date> -> date is another type",
    ),
}


@pytest.mark.parametrize("drift", HEALED)
def test_drift_is_reported_and_restored(drift: str, orders: Props, http: httpx.Client) -> None:
    table, job = Resource(TableProvider()), CommittingUser(http, orders)
    table.up(**orders)
    before = job.current_metadata()
    HEALED[drift](job)
    assert job.current_metadata() != before

    assert table.refresh() == "update"
    assert table.preview(**orders) == "update"
    assert table.up(**orders) == "update"

    assert job.current_metadata() == before
    assert table.refresh() == "same"
    assert table.up(**orders) == "same"


@pytest.mark.parametrize("drift", REFUSED)
def test_drift_is_reported_and_refused_with_the_reason(drift: str, orders: Props, http: httpx.Client) -> None:
    table, job = Resource(TableProvider()), CommittingUser(http, orders)
    orders |= {"partition_by": []}
    table.up(**orders)
    act, reason = REFUSED[drift]
    act(job)
    before = job.current_metadata()

    assert table.refresh() == "update"
    (refusal,) = table.list_refusals(**orders)

    assert reason in refusal
    with pytest.raises(EvolutionRefusedError, match=re.escape(reason)):
        table.provider.update(table.id, wire(table.outs), wire(orders))
    table.refresh()
    assert table.list_refusals(**orders) == [refusal]
    assert job.current_metadata() == before


@pytest.mark.parametrize("drift", REFUSED)
def test_declared_drift_is_no_change(drift: str, orders: Props, http: httpx.Client) -> None:
    """The spec declares the live values, as `drift --accept` writes them."""
    table, job = Resource(TableProvider()), CommittingUser(http, orders)
    orders |= {"partition_by": []}
    table.up(**orders)
    REFUSED[drift][0](job)
    for _ in range(2):
        table.refresh()
    accepted = orders | {key: table.outs[key] for key in ("columns", "identifier")}

    assert table.list_refusals(**accepted) == []
    assert table.up(**accepted) == "same"
    assert table.refresh() == "same"


def test_accepted_drift_is_not_refused(orders: Props, http: httpx.Client) -> None:
    table, job = Resource(TableProvider()), CommittingUser(http, orders)
    table.up(**orders)
    REFUSED["a column added"][0](job)
    table.refresh()

    assert table.up(**orders | {"undeclared_columns": "keep"}) == "update"
    assert table.refresh() == "same"


def test_drift_that_a_job_undid_is_not_refused(orders: Props, http: httpx.Client) -> None:
    table, job = Resource(TableProvider()), CommittingUser(http, orders)
    table.up(**orders)
    REFUSED["a column added"][0](job)
    table.refresh()
    job.change(lambda fields: [item for item in fields if item["name"] != "x"])

    assert table.list_refusals(**orders) == []
    assert table.up(**orders) == "update"
    assert table.refresh() == "same"


def test_preview_refuses_a_table_moved_by_a_job(orders: Props, http: httpx.Client, sandbox: Sandbox) -> None:
    """No server takes `set-location`. A job moves a table by registering its metadata at another location."""
    table, job = Resource(TableProvider()), CommittingUser(http, orders)
    table.up(**orders)
    moved = job.register_elsewhere(sandbox)

    assert table.refresh() == "update"
    (refusal,) = table.list_refusals(**orders)
    assert f"the table is at {moved}, not at the declared {orders['location']}" in refusal
    assert job.current_metadata()["location"] == moved
    elsewhere = {key: value for key, value in orders.items() if key != "location"}
    assert table.up(**elsewhere) == "update"
    assert table.refresh() == "same"
