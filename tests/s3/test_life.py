"""The life of a bucket that a stack makes in a real store: up, drift, healing, destroy."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .conftest import MakeStoreTenant, changes_of

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


def test_tenant_from_up_to_destroy(make_tenant: MakeStoreTenant, s3: Any) -> None:
    """A versioned bucket: its drift is found and fixed, and `purge` removes tables, old versions and bucket."""
    tenant = make_tenant({"versioning": True, "noncurrent_version_days": 7})

    tenant.up()

    bucket = {"Bucket": tenant.bucket}
    assert s3().get_bucket_versioning(**bucket)["Status"] == "Enabled"
    table = tenant.catalog().create_table("results.numbers", ROWS.schema)
    table.append(ROWS)
    assert table.scan().to_arrow().num_rows == 3
    assert not changes_of(tenant.verb("preview", "--refresh"))

    s3().put_bucket_versioning(**bucket, VersioningConfiguration={"Status": "Suspended"})
    s3().delete_bucket_lifecycle(**bucket)
    assert changes_of(tenant.verb("preview", "--refresh")) == {("update", "StoreBucket")}
    tenant.up("--refresh")
    assert s3().get_bucket_versioning(**bucket)["Status"] == "Enabled"
    assert not changes_of(tenant.verb("preview", "--refresh"))

    tenant.destroy()
    assert tenant.bucket not in {found["Name"] for found in s3().list_buckets()["Buckets"]}
