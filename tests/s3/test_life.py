"""The life of a bucket in a real store: up, drift, healing, destroy; made by the stack, existing, and over TLS."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from lakewright_sandbox.runtime.state import StoreState

from tests.s3.conftest import MakeStoreTenant, StoreTenant, TlsStore, list_changed_kinds

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
PUBLIC = {"Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject"]}


def write_table(tenant: StoreTenant, name: str = "results.numbers") -> None:
    """Write a table with the job's own configuration, and read it back."""
    table = tenant.catalog("executions").create_table(name, ROWS.schema)
    table.append(ROWS)
    assert table.scan().to_arrow().num_rows == 3


def versions(s3: Any, bucket: str) -> list[str]:
    response = s3.list_object_versions(Bucket=bucket)
    return [entry["Key"] for part in ("Versions", "DeleteMarkers") for entry in response.get(part, [])]


def buckets(s3: Any) -> set[str]:
    return {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}


def make_public(s3: Any, bucket: str) -> None:
    statement = PUBLIC | {"Resource": [f"arn:aws:s3:::{bucket}/*"]}
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def test_tenant_from_up_to_destroy(make_tenant: MakeStoreTenant, s3: Callable[..., Any]) -> None:
    """A versioned bucket: its drift is found and fixed, and `purge` removes tables, old versions and bucket."""
    tenant = make_tenant({"versioning": True, "noncurrent_version_days": 7})
    store, bucket_argument = s3(), {"Bucket": tenant.bucket}

    tenant.up()

    assert store.get_bucket_versioning(**bucket_argument)["Status"] == "Enabled"
    tags = {tag["Key"]: tag["Value"] for tag in store.get_bucket_tagging(**bucket_argument)["TagSet"]}
    assert tags["lakewright:tenant"] == tenant.name
    write_table(tenant)
    tenant.catalog("executions").drop_table("results.numbers")
    write_table(tenant)
    assert not list_changed_kinds(tenant.verb("preview", "--refresh"))

    store.put_bucket_versioning(**bucket_argument, VersioningConfiguration={"Status": "Suspended"})
    store.delete_bucket_lifecycle(**bucket_argument)
    store.delete_bucket_tagging(**bucket_argument)
    make_public(store, tenant.bucket)
    assert list_changed_kinds(tenant.verb("preview", "--refresh")) == {("update", "StoreBucket")}
    tenant.up("--refresh")
    assert store.get_bucket_versioning(**bucket_argument)["Status"] == "Enabled"
    assert store.get_bucket_lifecycle_configuration(**bucket_argument)["Rules"]
    with pytest.raises(store.exceptions.ClientError, match="NoSuchBucketPolicy"):
        store.get_bucket_policy(**bucket_argument)
    assert not list_changed_kinds(tenant.verb("preview", "--refresh"))

    assert len(versions(store, tenant.bucket)) > 4
    tenant.destroy()
    assert tenant.bucket not in buckets(store)


def test_objects_of_others_stop_destroy(make_tenant: MakeStoreTenant, s3: Callable[..., Any]) -> None:
    tenant = make_tenant({"region": "local-01"})
    tenant.up()
    s3().put_object(Bucket=tenant.bucket, Key="reports/2026.csv", Body=b"1")

    refused = tenant.error("destroy", "--yes", "--engine", "embedded")

    assert "nothing was destroyed" in refused
    assert "reports/2026.csv" in refused
    assert "Warehouse" in tenant.list_resource_kinds()

    s3().delete_object(Bucket=tenant.bucket, Key="reports/2026.csv")
    tenant.destroy()
    assert tenant.bucket not in buckets(s3())


def test_retained_data_keeps_its_bucket(make_tenant: MakeStoreTenant, s3: Callable[..., Any]) -> None:
    tenant = make_tenant(warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": "retain"}])
    tenant.up()
    write_table(tenant)

    tenant.destroy()

    assert versions(s3(), tenant.bucket)


def test_deleted_bucket_is_made_again(make_tenant: MakeStoreTenant, s3: Callable[..., Any]) -> None:
    tenant = make_tenant()
    tenant.up()
    s3().delete_bucket(Bucket=tenant.bucket)

    assert ("create", "StoreBucket") in list_changed_kinds(tenant.verb("preview", "--refresh"))
    tenant.up("--refresh")

    write_table(tenant)


def test_bucket_of_others_needs_adopt(make_tenant: MakeStoreTenant, s3: Callable[..., Any]) -> None:
    tenant = make_tenant({"versioning": True})
    s3().create_bucket(Bucket=tenant.bucket)
    s3().put_object(Bucket=tenant.bucket, Key="reports/2026.csv", Body=b"1")

    refused = tenant.error("up", "--yes", "--engine", "embedded")
    assert f"bucket `{tenant.bucket}`" in refused
    assert "exists already" in refused
    assert "Versioning" not in json.dumps(s3().get_bucket_versioning(Bucket=tenant.bucket))

    tenant.spec["adopt"] = True
    tenant.write()
    tenant.environ["LAKEWRIGHT_ADOPT"] = f"bucket={tenant.bucket}"
    tenant.up()
    assert s3().get_bucket_versioning(Bucket=tenant.bucket)["Status"] == "Enabled"


def test_bucket_of_an_interrupted_run_is_its_own(make_tenant: MakeStoreTenant, s3: Callable[..., Any]) -> None:
    """Such a bucket has the tag of the stack's record, which the first run wrote into the state."""
    tenant = make_tenant()
    s3().create_bucket(Bucket=tenant.bucket)
    tenant.error("up", "--yes", "--engine", "embedded")
    state = json.loads(tenant.output("stack", "export"))
    (record,) = (
        resource for resource in state["deployment"]["resources"] if resource["type"].endswith(":TenantRecord")
    )
    mark = {"Key": "lakewright:record", "Value": record["outputs"]["bucket_tag"]}
    s3().put_bucket_tagging(Bucket=tenant.bucket, Tagging={"TagSet": [mark]})

    tenant.up()

    assert "StoreBucket" in tenant.list_resource_kinds()


def test_existing_bucket_is_left_as_it_is(
    make_tenant: MakeStoreTenant, s3: Callable[..., Any], store: StoreState
) -> None:
    tenant = make_tenant({"create": False, "region": "local-01"})
    s3().create_bucket(Bucket=tenant.bucket)

    tenant.up()
    write_table(tenant)
    assert "StoreBucket" not in tenant.list_resource_kinds()
    tenant.destroy()

    assert tenant.bucket in buckets(s3())


def test_store_with_an_authority_of_its_own(
    make_tenant: MakeStoreTenant, tls_store: TlsStore, s3: Callable[..., Any]
) -> None:
    """The stack, the server and a job reach a bucket over TLS, which the bucket's policy requires."""
    tenant = make_tenant(
        {"endpoint": tls_store.endpoint, "ca_certificates": tls_store.authority, "tls_only": True, "versioning": True}
    )
    store = s3(tls_store)

    tenant.up()

    (statement,) = json.loads(store.get_bucket_policy(Bucket=tenant.bucket)["Policy"])["Statement"]
    assert (statement["Sid"], statement["Effect"]) == ("TlsOnly", "Deny")
    write_table(tenant)
    make_public(store, tenant.bucket)
    assert list_changed_kinds(tenant.verb("preview", "--refresh")) == {("update", "StoreBucket")}
    tenant.up("--refresh")
    assert not list_changed_kinds(tenant.verb("preview", "--refresh"))
    tenant.destroy()
    assert tenant.bucket not in buckets(store)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_writes_and_reads(make_tenant: MakeStoreTenant) -> None:
    from lakewright_spark.session.builder import spark_session

    tenant = make_tenant()
    tenant.up()

    spark = spark_session(tenant.catalog_config(), "s3", master="local[1]")
    try:
        spark.sql("CREATE TABLE executions.results.words (word STRING) USING iceberg")
        spark.sql("INSERT INTO executions.results.words VALUES ('lake'), ('keeper')")
        stored_words = {row.word for row in spark.table("executions.results.words").collect()}
    finally:
        spark.stop()

    assert stored_words == {"lake", "keeper"}
    tenant.destroy()
