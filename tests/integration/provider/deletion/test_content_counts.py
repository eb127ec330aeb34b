"""The contents of objects to delete, as a plan records them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.deletions.content_counts import ContentCounter
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.lakekeeper.table.resource import TableProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.plans.deleted_contents import DeletedContents
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.resource import Props, Resource, wire

Count = Callable[..., list[DeletedContents]]
SOFT = {"type": "soft", "expiration_seconds": 86400}
COLUMNS = [{"name": "n", "type": "long"}]


@pytest.fixture
def count(tmp_path: Path) -> Count:
    """Return a function that counts the contents of resources, which it reads from their state."""
    (tmp_path / "Pulumi.yaml").write_text("name: lakewright\nruntime: python\n")
    counter = ContentCounter(PulumiProject.load(tmp_path), "dev", refuse_bucket)

    def run(*resources: Resource) -> list[DeletedContents]:
        return counter.count([to_state(resource) for resource in resources])

    return run


def to_state(resource: Resource) -> ResourceState:
    kind = type(resource.provider).__name__.removesuffix("Provider")
    type_ = f"pulumi-python:dynamic/lakekeeper:{kind}"
    urn = f"urn:pulumi:dev::lakewright::{type_}::{kind.lower()}"
    return ResourceState(urn, type_, True, id=resource.id, outputs=wire(resource.outs))  # noqa: FBT003


def refuse_bucket(name: str, _region: str | None) -> OwnBucket:
    raise CannotCountError(f"bucket {name} is not expected here")


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
    warehouse_props: Props,
    *,
    own_bucket: Props,
    make_table: Any,
    http: httpx.Client,
    aws: Any,
    bucket: str,
) -> None:
    purge_props = {**warehouse_props, "deletion": "purge", "own_bucket": own_bucket, "delete_profile": SOFT}
    warehouse.up(**purge_props)
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
    count: Count,
    warehouse: Resource,
    warehouse_props: Props,
    *,
    own_bucket: Props,
    aws: Any,
    bucket: str,
    key_prefix: str,
) -> None:
    warehouse.up(**warehouse_props, deletion="purge", own_bucket=own_bucket)
    aws("s3").put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first = aws("s3").put_object(Bucket=bucket, Key=f"{key_prefix}/x", Body=b"1")["VersionId"]
    [before] = count(warehouse)
    aws("s3").delete_object(Bucket=bucket, Key=f"{key_prefix}/x", VersionId=first)
    aws("s3").put_object(Bucket=bucket, Key=f"{key_prefix}/x", Body=b"2")
    [after] = count(warehouse)
    assert (before.summary, after.summary) == ("1 B", "1 B")
    assert before != after


def test_only_purged_objects_are_counted_and_each_table_once(
    count: Count, warehouse: Resource, warehouse_props: Props, server: Props, make_table: Any
) -> None:
    make_table(warehouse.id, "sales", "orders")
    namespace, table = Resource(NamespaceProvider()), Resource(TableProvider())
    target_props = {"server": server, "warehouse_id": warehouse.id}
    namespace.up(**target_props, name="raw", deletion="purge")
    table.up(**target_props, namespace="raw", name="events", columns=COLUMNS, deletion="purge")

    protected_contents = count(warehouse, namespace, table)
    table_contents = count(table)
    warehouse.up(**warehouse_props, deletion="purge")
    purged_contents = count(warehouse, namespace, table)

    assert [(contents.name, contents.summary) for contents in protected_contents] == [
        ("Namespace 'namespace'", "1 table, 0 B")
    ]
    assert [(contents.name, contents.summary) for contents in table_contents] == [("Table 'table'", "1 table, 0 B")]
    assert [(contents.name, contents.summary) for contents in purged_contents] == [
        ("Warehouse 'warehouse'", "2 tables, 0 B")
    ]


def test_contents_that_cannot_be_counted_are_unknown(
    count: Count,
    warehouse: Resource,
    warehouse_props: Props,
    *,
    own_bucket: Props,
    http: httpx.Client,
    monkeypatch: Any,
) -> None:
    warehouse.up(**warehouse_props, deletion="purge", own_bucket=own_bucket)
    monkeypatch.setenv("STORAGE_SECRET", "wrong")
    [unlisted] = count(warehouse)
    http.post(f"/management/v1/warehouse/{warehouse.id}/deactivate").raise_for_status()
    [hidden] = count(warehouse)
    warehouse.outs["server"] = {**warehouse.outs["server"], "endpoint": "http://127.0.0.1:9"}
    [unreachable] = count(warehouse)

    assert "CannotCountError" in unlisted.unknown
    assert "is inactive" in hidden.unknown
    assert "UnreachableError" in unreachable.unknown
    assert unlisted.to_message().startswith("warning: Warehouse 'warehouse': its contents are deleted and could not")


@pytest.mark.stand_in("puts objects into a bucket of the sandbox")
def test_purged_log_bucket_counts_logs_and_compares_the_rest(
    sandbox: Sandbox, bucket: str, aws: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More logs are no difference. Without `forceDestroy`, AWS deletes an empty bucket only."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sandbox.admin.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sandbox.admin.secret_access_key.get_secret_value())
    (tmp_path / "Pulumi.yaml").write_text("name: lakewright\nruntime: python\n")
    endpoint = sandbox.aws.endpoint

    def open_bucket(name: str, region: str | None) -> OwnBucket:
        return OwnBucket(bucket=name, region=str(region), endpoint=endpoint)

    def count(*, force: bool = True) -> list[DeletedContents]:
        outputs = {"bucket": bucket, "region": sandbox.aws.region, "forceDestroy": force}
        urn = "urn:pulumi:dev::lakewright::aws:s3/bucket:Bucket::acme-logs"
        state = ResourceState(urn, "aws:s3/bucket:Bucket", True, id=bucket, outputs=outputs)  # noqa: FBT003
        return ContentCounter(PulumiProject.load(tmp_path), "dev", open_bucket).count([state])

    for number in range(2):
        key = f"lake/2026-11-23-08-00-0{number}-0123456789ABCDEF"
        aws("s3").put_object(Bucket=bucket, Key=key, Body=b"12345")
    [first] = count()
    aws("s3").put_object(Bucket=bucket, Key="lake/2026-11-23-08-01-00-0123456789ABCDEF", Body=b"1")
    [second] = count()
    aws("s3").put_object(Bucket=bucket, Key="backup.tar", Body=b"1")
    [third] = count()

    assert first.summary == "2 access logs, 10 B"
    assert second.summary == "3 access logs, 11 B"
    assert (first.is_growing, first.fingerprint) == (True, second.fingerprint)
    assert third.summary == "3 access logs, 1 object, 12 B"
    assert third.fingerprint != second.fingerprint
    assert count(force=False) == []
