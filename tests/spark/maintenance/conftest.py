"""One Spark session for all tests of jobs, and their warehouses beside `results`.

Warehouse `soft` has soft deletion; faults are injected into requests to `faulty`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import httpx
import pytest
from fault_proxy import FaultInjectingProxy
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.maintenance import job_runner
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.scheduler.runner import FAIR
from lakewright_spark.session.builder import spark_session
from lakewright_spark.session.own_classes import replace_catalog_types
from lakewright_spark.table_identifier import TableIdentifier
from pyspark.sql import SparkSession

from tests.real_servers import RealServers

DAY = timedelta(days=1)


@pytest.fixture(scope="package")
def tenant(sandbox: Sandbox, catalog_config: CatalogConfig, real: RealServers | None) -> CatalogConfig:
    profile = {"type": "soft", "expiration-seconds": 3600}
    soft = create_warehouse(sandbox, catalog_config, "soft", sandbox.aws.endpoint, profile, real=real)
    return catalog_config.model_copy(update={"warehouses": [*catalog_config.warehouses, soft]})


def create_warehouse(
    sandbox: Sandbox,
    config: CatalogConfig,
    name: str,
    endpoint: str,
    deletion: dict[str, Any],
    *,
    real: RealServers | None = None,
) -> CatalogWarehouse:
    bucket = real.bucket if real else f"{name}-{uuid.uuid4().hex[:8]}"
    if not real:
        s3(sandbox).create_bucket(Bucket=bucket)
    body = {
        "warehouse-name": name,
        "project-id": config.project_id,
        "storage-profile": {
            "type": "s3",
            "bucket": bucket,
            "key-prefix": f"{config.project_id}/{name}" if real else None,
            "region": sandbox.aws.region,
            "endpoint": endpoint,
            "path-style-access": True,
            "flavor": "s3-compat",
            "sts-enabled": True,
        },
        "storage-credential": {
            "type": "s3",
            "credential-type": "access-key",
            "access-key-id": sandbox.admin.access_key_id,
            "secret-access-key": sandbox.admin.secret_access_key.get_secret_value(),
        },
        "delete-profile": deletion,
    }
    with real.http() if real else httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60) as server:
        response = server.post("/management/v1/warehouse", json=body)
    assert response.status_code == 201, response.text
    return CatalogWarehouse(name=name, id=response.json()["warehouse-id"])


@pytest.fixture(scope="package")
def spark(tenant: CatalogConfig) -> Iterator[SparkSession]:
    # The soft warehouse a second time, with the properties of jobs.
    job_properties = {
        key.replace("spark.sql.catalog.soft", "spark.sql.catalog.softly"): value
        for key, value in tenant.spark_properties().items()
        if key.startswith("spark.sql.catalog.soft")
    }
    session = spark_session(
        tenant, "maintenance", properties={**FAIR, **job_properties, **job_runner.session_properties(tenant, "softly")}
    )
    # Iceberg looks for orphans of the last day only in tests; these tests pass later times to the jobs.
    session._jsparkSession.sessionState().conf().setConfString("spark.testing", "true")
    for warehouse in ("results", "soft"):
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {warehouse}.maintained")
    yield session
    session.stop()


IMPATIENT = {
    "s3.retry.num-retries": "1",
    "s3.retry.min-wait-ms": "20",
    "s3.retry.max-wait-ms": "50",
    "rest.client.max-retries": "1",
}
"""Properties of clients that give up soon; others retry until the faults end."""


@dataclass
class FaultyWarehouse:
    """A warehouse whose store and catalog are behind fault-injecting proxies."""

    store: FaultInjectingProxy
    catalog: FaultInjectingProxy
    config: CatalogConfig


@pytest.fixture(scope="package")
def faulty(sandbox: Sandbox, catalog_config: CatalogConfig, spark: SparkSession) -> Iterator[FaultyWarehouse]:
    store, catalog = FaultInjectingProxy(sandbox.aws.endpoint), FaultInjectingProxy(sandbox.lakekeeper.endpoint)
    with serve(store) as store_url, serve(catalog) as catalog_url:
        created = create_warehouse(sandbox, catalog_config, "faulty", store_url, {"type": "hard"})
        warehouse = created.model_copy(update={"s3": IMPATIENT})
        config = catalog_config.model_copy(update={"uri": f"{catalog_url}/catalog", "warehouses": [warehouse]})
        properties = {**config.spark_properties(), **job_runner.session_properties(config, "faulty")}
        for key, value in replace_catalog_types(properties).items():
            if key.startswith("spark.sql.catalog.faulty"):
                spark.conf.set(key, value)
        spark.sql("CREATE NAMESPACE faulty.maintained")
        yield FaultyWarehouse(store, catalog, config)


@dataclass
class Maintained:
    """A table, its bucket, and jobs on it at any given time."""

    spark: SparkSession
    sandbox: Sandbox
    table: TableIdentifier
    policy: TablePolicies = field(default_factory=TablePolicies)
    now: datetime = field(default_factory=lambda: datetime.now(UTC) + timedelta(days=30))

    @property
    def sql(self) -> str:
        return self.table.sql

    def do(self, text: str) -> Any:
        return self.spark.sql(text.replace("THIS", self.sql))

    def job(self, name: JobName, *, dry_run: bool = False, table: TableIdentifier | None = None) -> Any:
        return job_runner.run_job(name, self.spark, table or self.table, self.policy, dry_run=dry_run, now=self.now)

    def set_policies(self, **policies: Any) -> None:
        self.policy = TablePolicies.model_validate(policies)

    def column(self, query: str) -> list[Any]:
        return [row[0] for row in self.do(query).collect()]

    @property
    def bucket_and_prefix(self) -> tuple[str, str]:
        """Return bucket and key prefix."""
        rows = {row[0]: row[1] for row in self.do("DESCRIBE TABLE EXTENDED THIS").collect()}
        bucket, _, prefix = rows["Location"].removeprefix("s3://").partition("/")
        return bucket, f"{prefix}/"

    def objects(self) -> dict[str, str]:
        """Return the hash of every object under the table's location, by address."""
        bucket, prefix = self.bucket_and_prefix
        pages = s3(self.sandbox).get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return {f"s3://{bucket}/{item['Key']}": item["ETag"] for page in pages for item in page.get("Contents", [])}

    def create_lost_file(self, name: str) -> str:
        """Create a file as a failed write leaves it; return its address."""
        bucket, prefix = self.bucket_and_prefix
        key = f"{prefix}data/{name}"
        s3(self.sandbox).put_object(Bucket=bucket, Key=key, Body=b"lost")
        return f"s3://{bucket}/{key}"


@pytest.fixture
def create_table(spark: SparkSession, sandbox: Sandbox) -> Iterator[Callable[..., Maintained]]:
    """Return a function that creates a table from SQL; the tables are dropped after the test."""
    tables: list[TableIdentifier] = []

    def make(name: str, definition: str, warehouse: str = "results") -> Maintained:
        table = TableIdentifier(warehouse, ("maintained",), name)
        spark.sql(f"CREATE TABLE {table.sql} {definition}")
        tables.append(table)
        return Maintained(spark, sandbox, table)

    yield make
    for table in tables:
        spark.sql(f"DROP TABLE {table.sql}")


@contextmanager
def deny(table: Maintained, action: str, keys: str) -> Iterator[None]:
    """Deny the role of warehouse `results` an action on keys under the table's location."""
    bucket, prefix = table.bucket_and_prefix
    statement = {"Effect": "Deny", "Action": action, "Resource": f"arn:aws:s3:::{bucket}/{prefix}{keys}"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam = client(table.sandbox, "iam")
    iam.put_role_policy(RoleName=bucket, PolicyName="denied", PolicyDocument=document)
    try:
        yield
    finally:
        iam.delete_role_policy(RoleName=bucket, PolicyName="denied")


def s3(sandbox: Sandbox) -> Any:
    return client(sandbox, "s3")


def client(sandbox: Sandbox, service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=sandbox.aws.endpoint,
        region_name=sandbox.aws.region,
        aws_access_key_id=sandbox.admin.access_key_id,
        aws_secret_access_key=sandbox.admin.secret_access_key.get_secret_value(),
    )
