"""A catalog in a database, with its own create_bucket in the sandbox's object store."""

from __future__ import annotations

import uuid

import boto3
import pytest
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import S3Keys


def create_bucket(sandbox: Sandbox) -> str:
    name = f"kinds-{uuid.uuid4().hex[:8]}"
    admin = sandbox.admin
    boto3.client(
        "s3",
        endpoint_url=sandbox.aws.endpoint,
        region_name=sandbox.aws.region,
        aws_access_key_id=admin.access_key_id,
        aws_secret_access_key=admin.secret_access_key.get_secret_value(),
    ).create_bucket(Bucket=name)
    return name


def jdbc_catalog_config(
    sandbox: Sandbox, uri: str, monkeypatch: pytest.MonkeyPatch, location: str | None = None
) -> CatalogConfig:
    """Return a configuration as Texera uses it without a catalog service: a database, and references to store keys.

    Tables are in a bucket of their own, unless a location is given.
    """
    monkeypatch.setenv("STORE_USER", sandbox.admin.access_key_id)
    monkeypatch.setenv("STORE_PASSWORD", sandbox.admin.secret_access_key.get_secret_value())
    warehouse = CatalogWarehouse(
        name="texera_iceberg",
        location=location or f"s3://{create_bucket(sandbox)}/warehouse",
        s3={
            "s3.endpoint": sandbox.aws.endpoint,
            "s3.region": sandbox.aws.region,
            "client.region": sandbox.aws.region,
            "s3.path-style-access": "true",
        },
        s3_keys=S3Keys(access_key_id="env:STORE_USER", secret_access_key="env:STORE_PASSWORD"),
    )
    return CatalogConfig(kind="jdbc", tenant="texera", uri=uri, warehouses=[warehouse])
