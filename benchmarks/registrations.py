"""1,000 tables of a database registered by `migrate`, against the bare calls that do the same to both catalogs."""

from __future__ import annotations

import configparser
import os
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import httpx
import pyarrow as pa
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import S3Keys
from lakewright_spark.migration.actions import Action, MigrationRoute, migrate_tables
from lakewright_spark.migration.plan import PARALLEL
from lakewright_spark.pyiceberg_client.catalog import open_catalog

from benchmarks.ground import Ground
from benchmarks.measure import Row, measure_seconds

TABLES = int(os.environ.get("LAKEWRIGHT_BENCH_REGISTRATIONS", "1000"))
TARGET = 2.0
NAMESPACE, SOURCE_WAREHOUSE = "registered", "old"


def measure(ground: Ground) -> list[Row]:
    """Register the tables, undo that, and register them by bare calls. Both have as many threads."""
    with tempfile.TemporaryDirectory(prefix="registrations-") as folder:
        return [_measure(ground, Path(folder))]


def _measure(ground: Ground, folder: Path) -> Row:
    database = folder / "old.db"
    target = ground.catalog
    warehouse = target.warehouses[0]
    source = _create_tables(ground, database, f"{_find_location(ground, warehouse.id)}/old")
    route = MigrationRoute(source, SOURCE_WAREHOUSE, target, warehouse.name)

    def migrate(action: Action) -> None:
        result = migrate_tables(route, folder / "migration.db", action, depth="metadata")
        if result.error:
            raise result.error

    ours = measure_seconds(lambda: migrate(Action.REGISTER))
    migrate(Action.UNDO)
    calls = BareCalls(ground, warehouse.id or "", database)
    names = [f"t{number}" for number in range(TABLES)]

    def register() -> None:
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(calls.register, names))

    bare = measure_seconds(register)
    note = "fenced in the source, registered and protected in the target; only `migrate` plans, records and compares"
    return Row(f"{TABLES:,} registrations of migrate", ours, bare, TARGET, note=f"{note}; reference: bare calls")


class BareCalls:
    """The calls of a fence and a registration, without Iceberg's client, a ledger and a comparison."""

    def __init__(self, ground: Ground, warehouse: str, database: Path) -> None:
        self._warehouse, self._database = warehouse, database
        self._server = httpx.Client(base_url=ground.sandbox["lakekeeper"]["endpoint"], timeout=120)
        aws = ground.sandbox["aws"]
        session = boto3.Session(**_load_keys(ground), region_name=aws["region"])
        self._objects: Any = session.client("s3", endpoint_url=aws["endpoint"])

    def register(self, name: str) -> None:
        with closing(sqlite3.connect(self._database, timeout=60)) as connection:
            query = "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?"
            (old,) = connection.execute(query, (name,)).fetchone()
            bucket, key = old.removeprefix("s3://").split("/", 1)
            metadata = self._objects.get_object(Bucket=bucket, Key=key)["Body"].read()
            new_key = key.replace(".metadata.json", "-fenced.metadata.json")
            self._objects.put_object(Bucket=bucket, Key=new_key, Body=metadata)
            new = f"s3://{bucket}/{new_key}"
            change = "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ? AND metadata_location = ?"
            with connection:
                connection.execute(change, (new, name, old))
        path = f"/catalog/v1/{self._warehouse}/namespaces/{quote(NAMESPACE)}/register"
        table = self._post(path, {"name": name, "metadata-location": new})
        uuid = table["metadata"]["table-uuid"]
        self._post(f"/management/v1/warehouse/{self._warehouse}/table/{uuid}/protection", {"protected": True})

    def _post(self, path: str, body: dict[str, object]) -> dict[str, Any]:
        return self._server.post(path, json=body).raise_for_status().json()


def _create_tables(ground: Ground, database: Path, location: str) -> CatalogConfig:
    """Create the tables in a database, and return its configuration."""
    keys, aws = _load_keys(ground), ground.sandbox["aws"]
    os.environ |= {"BENCH_KEY_ID": keys["aws_access_key_id"], "BENCH_KEY": keys["aws_secret_access_key"]}
    warehouse = CatalogWarehouse(
        name=SOURCE_WAREHOUSE,
        location=location,
        s3={"s3.endpoint": aws["endpoint"], "s3.region": aws["region"], "s3.path-style-access": "true"},
        s3_keys=S3Keys(access_key_id="env:BENCH_KEY_ID", secret_access_key="env:BENCH_KEY"),
    )
    config = CatalogConfig(kind="jdbc", tenant="bench", uri=f"sqlite:///{database}", warehouses=[warehouse])
    catalog = open_catalog(config, SOURCE_WAREHOUSE)
    catalog.create_namespace(NAMESPACE)
    for number in range(TABLES):
        catalog.create_table((NAMESPACE, f"t{number}"), pa.schema([("number", pa.int64())]))
    return config


def _find_location(ground: Ground, warehouse: str | None) -> str:
    url = f"{ground.sandbox['lakekeeper']['endpoint']}/management/v1/warehouse/{warehouse}"
    profile = httpx.get(url).raise_for_status().json()["storage-profile"]
    return f"s3://{profile['bucket']}/{profile['key-prefix']}"


def _load_keys(ground: Ground) -> dict[str, str]:
    keys = configparser.ConfigParser()
    keys.read(ground.sandbox["credentials_file"])
    return dict(keys["admin"])
