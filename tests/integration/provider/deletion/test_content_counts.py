"""What a plan records of the contents of the objects that it deletes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.deletions.content_counts import ContentCounter
from lakewright.lakekeeper.table.resource import TableProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.plans.deleted_contents import DeletedContents
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.runtime.state import Sandbox

from ..resource import Props, Resource, wire

Count = Callable[..., list[DeletedContents]]
SOFT = {"type": "soft", "expiration_seconds": 86400}
COLUMNS = [{"name": "n", "type": "long"}]


@pytest.fixture
def count(tmp_path: Path) -> Count:
    """Return a function that counts the contents of resources as their state has them."""
    (tmp_path / "Pulumi.yaml").write_text("name: lakewright\nruntime: python\n")
    counter = ContentCounter(PulumiProject.load(tmp_path), "dev")

    def run(*resources: Resource) -> list[DeletedContents]:
        return counter.count([to_state(resource) for resource in resources])

    return run


def to_state(resource: Resource) -> ResourceState:
    kind = type(resource.provider).__name__.removesuffix("Provider")
    type_ = f"pulumi-python:dynamic/lakekeeper:{kind}"
    urn = f"urn:pulumi:dev::lakewright::{type_}::{kind.lower()}"
    return ResourceState(urn, type_, True, id=resource.id, outputs=wire(resource.outs))  # noqa: FBT003


@pytest.fixture
def own_bucket(sandbox: Sandbox, bucket: str, keys: Props) -> Props:
    return {
        "bucket": bucket,
        "region": sandbox.aws.region,
        "endpoint": sandbox.aws.endpoint,
        "path_style": True,
        "access_key_id": keys["access_key_id"],
        "secret_access_key": keys["secret_access_key"],
    }


@pytest.mark.stand_in("looks into the bucket of the sandbox")
def test_warehouse_counts_tables_and_versions_under_its_prefix(
    count: Count,
    warehouse: Resource,
    declared: Props,
    *,
    own_bucket: Props,
    make_table: Any,
    http: httpx.Client,
    aws: Any,
    bucket: str,
) -> None:
    purged = {**declared, "deletion": "purge", "own_bucket": own_bucket, "delete_profile": SOFT}
    warehouse.up(**purged)
    [empty] = count(warehouse)
    make_table(warehouse.id, "sales", "orders")
    make_table(warehouse.id, "sales", "old")
    http.delete(f"/catalog/v1/{warehouse.id}/namespaces/sales/tables/old").raise_for_status()
    aws("s3").put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    [before] = count(warehouse)
    aws("s3").put_object(Bucket=bucket, Key="main/x.parquet", Body=b"x" * 1000)
    aws("s3").delete_object(Bucket=bucket, Key="main/x.parquet")
    aws("s3").put_object(Bucket=bucket, Key="mainly/y.parquet", Body=b"outside the prefix")
    [after] = count(warehouse)

    assert empty.is_empty, empty
    assert before.counts == {"table": 1, "soft-deleted table": 1}
    assert before.bytes > 0
    assert after.bytes == before.bytes + 1000
    assert not after.is_partial
    assert count(warehouse) == [after]


def test_overwritten_data_of_the_same_size_differs(
    count: Count, warehouse: Resource, declared: Props, *, own_bucket: Props, aws: Any, bucket: str, key_prefix: str
) -> None:
    warehouse.up(**declared, deletion="purge", own_bucket=own_bucket)
    aws("s3").put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first = aws("s3").put_object(Bucket=bucket, Key=f"{key_prefix}/x", Body=b"1")["VersionId"]
    [before] = count(warehouse)
    aws("s3").delete_object(Bucket=bucket, Key=f"{key_prefix}/x", VersionId=first)
    aws("s3").put_object(Bucket=bucket, Key=f"{key_prefix}/x", Body=b"2")
    [after] = count(warehouse)
    assert (before.summary, after.summary) == ("1 B", "1 B")
    assert before != after


def test_only_purged_objects_are_counted_and_each_table_once(
    count: Count, warehouse: Resource, declared: Props, server: Props, make_table: Any
) -> None:
    make_table(warehouse.id, "sales", "orders")
    namespace, table = Resource(NamespaceProvider()), Resource(TableProvider())
    place = {"server": server, "warehouse_id": warehouse.id}
    namespace.up(**place, name="raw", deletion="purge")
    table.up(**place, namespace="raw", name="events", columns=COLUMNS, deletion="purge")

    protected = count(warehouse, namespace, table)
    alone = count(table)
    warehouse.up(**declared, deletion="purge")
    purged = count(warehouse, namespace, table)

    assert [(counted.name, counted.summary) for counted in protected] == [("Namespace 'namespace'", "1 table, 0 B")]
    assert [(counted.name, counted.summary) for counted in alone] == [("Table 'table'", "1 table, 0 B")]
    assert [(counted.name, counted.summary) for counted in purged] == [("Warehouse 'warehouse'", "2 tables, 0 B")]


def test_contents_that_cannot_be_counted_are_unknown(
    count: Count, warehouse: Resource, declared: Props, *, own_bucket: Props, http: httpx.Client, monkeypatch: Any
) -> None:
    warehouse.up(**declared, deletion="purge", own_bucket=own_bucket)
    monkeypatch.setenv("STORAGE_SECRET", "wrong")
    [unlisted] = count(warehouse)
    http.post(f"/management/v1/warehouse/{warehouse.id}/deactivate").raise_for_status()
    [hidden] = count(warehouse)
    warehouse.outs["server"] = {**warehouse.outs["server"], "endpoint": "http://127.0.0.1:9"}
    [unreachable] = count(warehouse)

    assert "CannotCountError" in unlisted.unknown
    assert "is inactive" in hidden.unknown
    assert "UnreachableError" in unreachable.unknown
    assert unlisted.to_message().startswith("warning: Warehouse 'warehouse': what it contains is deleted and could not")
