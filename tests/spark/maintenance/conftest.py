"""One Spark session for all tests of jobs, and their warehouses beside `results`.

In `soft` drops can be taken back; storms strike on the way to `struck`.
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
from lakewright_sandbox.in_process import serving
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.maintenance import registry as jobs
from lakewright_spark.policies.model import Job, TablePolicies
from lakewright_spark.scheduler.runner import FAIR
from lakewright_spark.session.builder import spark_session
from lakewright_spark.table_identifier import TableIdentifier
from pyspark.sql import SparkSession

from ...real_servers import RealServers

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
        answer = server.post("/management/v1/warehouse", json=body)
    assert answer.status_code == 201, answer.text
    return CatalogWarehouse(name=name, id=answer.json()["warehouse-id"])


@pytest.fixture(scope="package")
def spark(tenant: CatalogConfig) -> Iterator[SparkSession]:
    # The soft warehouse a second time, as jobs see it.
    as_jobs_do = {
        key.replace("spark.sql.catalog.soft", "spark.sql.catalog.softly"): value
        for key, value in tenant.spark_properties().items()
        if key.startswith("spark.sql.catalog.soft")
    }
    session = spark_session(
        tenant, "maintenance", properties={**FAIR, **as_jobs_do, **jobs.session_properties("softly")}
    )
    # Iceberg refuses to look for orphans of the last day but in tests; here a day passes by telling jobs so.
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
"""Clients that give up soon: else they sit out every storm."""


@dataclass
class FaultyWarehouse:
    """A warehouse behind two storms."""

    store: FaultInjectingProxy
    catalog: FaultInjectingProxy
    config: CatalogConfig


@pytest.fixture(scope="package")
def struck(sandbox: Sandbox, catalog_config: CatalogConfig, spark: SparkSession) -> Iterator[FaultyWarehouse]:
    store, catalog = FaultInjectingProxy(sandbox.aws.endpoint), FaultInjectingProxy(sandbox.lakekeeper.endpoint)
    with serving(store) as way_to_store, serving(catalog) as way_to_catalog:
        made = create_warehouse(sandbox, catalog_config, "struck", way_to_store, {"type": "hard"})
        warehouse = made.model_copy(update={"s3": IMPATIENT})
        config = catalog_config.model_copy(update={"uri": f"{way_to_catalog}/catalog", "warehouses": [warehouse]})
        for key, value in config.spark_properties().items():
            if key.startswith("spark.sql.catalog.struck"):
                spark.conf.set(key, value)
        spark.sql("CREATE NAMESPACE struck.maintained")
        yield FaultyWarehouse(store, catalog, config)


@dataclass
class Maintained:
    """A table, its bucket, and jobs on it at a time of the test's choice."""

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

    def job(self, name: Job, *, dry_run: bool = False, table: TableIdentifier | None = None) -> Any:
        return jobs.run(name, self.spark, table or self.table, self.policy, dry_run=dry_run, now=self.now)

    def allow(self, **policies: Any) -> None:
        self.policy = TablePolicies.model_validate(policies)

    def column(self, query: str) -> list[Any]:
        return [row[0] for row in self.do(query).collect()]

    @property
    def place(self) -> tuple[str, str]:
        """Bucket and key prefix."""
        rows = {row[0]: row[1] for row in self.do("DESCRIBE TABLE EXTENDED THIS").collect()}
        bucket, _, prefix = rows["Location"].removeprefix("s3://").partition("/")
        return bucket, f"{prefix}/"

    def objects(self) -> dict[str, str]:
        """Every object under the table's location: address -> hash of its bytes."""
        bucket, prefix = self.place
        pages = s3(self.sandbox).get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return {f"s3://{bucket}/{one['Key']}": one["ETag"] for page in pages for one in page.get("Contents", [])}

    def lose(self, name: str) -> str:
        """A file that a failed write left behind."""
        bucket, prefix = self.place
        key = f"{prefix}data/{name}"
        s3(self.sandbox).put_object(Bucket=bucket, Key=key, Body=b"lost")
        return f"s3://{bucket}/{key}"


@pytest.fixture
def made(spark: SparkSession, sandbox: Sandbox) -> Iterator[Callable[..., Maintained]]:
    """Makes a table of that name from SQL after its name; a test's tables are dropped after it."""
    tables: list[TableIdentifier] = []

    def make(name: str, rest: str, warehouse: str = "results") -> Maintained:
        table = TableIdentifier(warehouse, ("maintained",), name)
        spark.sql(f"CREATE TABLE {table.sql} {rest}")
        tables.append(table)
        return Maintained(spark, sandbox, table)

    yield make
    for table in tables:
        spark.sql(f"DROP TABLE {table.sql}")


@contextmanager
def denied(table: Maintained, action: str, keys: str) -> Iterator[None]:
    """Deny the role of warehouse `results` an action on keys under the table's location."""
    bucket, prefix = table.place
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
