"""1,000 tables of a database registered by `migrate`, against bare calls.

Two references: the calls that do the same to both catalogs, and the register calls of the target alone, as a client
makes them that neither fences nor protects a table. `migrate` is measured without and with its default comparison.
"""

from __future__ import annotations

import configparser
import os
import sqlite3
import tempfile
from collections.abc import Callable
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
from lakewright_spark.migration.verify import Depth
from lakewright_spark.pyiceberg_client.catalog import open_catalog

from benchmarks.ground import Ground
from benchmarks.measure import Row, measure_seconds

TABLES = int(os.environ.get("LAKEWRIGHT_BENCH_REGISTRATIONS", "1000"))
TARGET = 2.0
NAMESPACE, SOURCE_WAREHOUSE = "registered", "old"
_SELECT = "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?"


def measure(ground: Ground) -> list[Row]:
    """Register the tables by `migrate` and by bare calls, and undo each run. All runs have as many threads."""
    with tempfile.TemporaryDirectory(prefix="registrations-") as folder:
        return _measure(ground, Path(folder))


def _measure(ground: Ground, folder: Path) -> list[Row]:
    database = folder / "old.db"
    target = ground.catalog
    warehouse = target.warehouses[0]
    source = _create_tables(ground, database, f"{_find_location(ground, warehouse.id)}/old")
    route = MigrationRoute(source, SOURCE_WAREHOUSE, target, warehouse.name)

    def migrate(action: Action, depth: Depth = Depth.METADATA) -> None:
        result = migrate_tables(route, folder / "migration.db", action, depth=depth.value)
        if result.error:
            raise result.error

    def run_all(call: Callable[[str], None]) -> None:
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(call, names))

    ours = measure_seconds(lambda: migrate(Action.REGISTER))
    migrate(Action.UNDO)
    compared = measure_seconds(lambda: migrate(Action.REGISTER, Depth.FULL))
    migrate(Action.UNDO)
    calls = BareCalls(ground, warehouse.id or "", database)
    names = [f"t{number}" for number in range(TABLES)]
    register = measure_seconds(lambda: run_all(calls.register_only))
    run_all(calls.drop)
    bare = measure_seconds(lambda: run_all(calls.register))
    title = f"{TABLES:,} registrations of migrate"
    same = "reference: the same calls to both catalogs, without plan, ledger and comparison"
    alone = "reference: the register calls alone, without fence and protection"
    return [
        Row(f"{title} --verify metadata", ours, bare, TARGET, note=same),
        Row(f"{title} --verify metadata", ours, register, None, note=alone),
        Row(title, compared, bare, TARGET, note=f"with the default comparison of all rows; {same}"),
        Row(title, compared, register, None, note=f"with the default comparison of all rows; {alone}"),
    ]


class BareCalls:
    """The calls of a fence and a registration, without Iceberg's client, a ledger and a comparison."""

    def __init__(self, ground: Ground, warehouse: str, database: Path) -> None:
        self._warehouse, self._database = warehouse, database
        self._server = httpx.Client(base_url=ground.sandbox["lakekeeper"]["endpoint"], timeout=120)
        aws = ground.sandbox["aws"]
        session = boto3.Session(**_load_keys(ground), region_name=aws["region"])
        self._objects: Any = session.client("s3", endpoint_url=aws["endpoint"])

    def register_only(self, name: str) -> None:
        """Register the current metadata of a table."""
        with closing(sqlite3.connect(self._database, timeout=60)) as connection:
            (location,) = connection.execute(_SELECT, (name,)).fetchone()
        self._register(name, location)

    def drop(self, name: str) -> None:
        """Remove a registered table from the target. Its files remain."""
        path = f"/catalog/v1/{self._warehouse}/namespaces/{quote(NAMESPACE)}/tables/{name}"
        self._server.delete(path, params={"purgeRequested": "false", "force": "true"}).raise_for_status()

    def register(self, name: str) -> None:
        """Fence a table in the source, and register and protect it in the target."""
        with closing(sqlite3.connect(self._database, timeout=60)) as connection:
            (old,) = connection.execute(_SELECT, (name,)).fetchone()
            bucket, key = old.removeprefix("s3://").split("/", 1)
            metadata = self._objects.get_object(Bucket=bucket, Key=key)["Body"].read()
            new_key = key.replace(".metadata.json", "-fenced.metadata.json")
            self._objects.put_object(Bucket=bucket, Key=new_key, Body=metadata)
            new = f"s3://{bucket}/{new_key}"
            change = "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ? AND metadata_location = ?"
            with connection:
                connection.execute(change, (new, name, old))
        table = self._register(name, new)
        uuid = table["metadata"]["table-uuid"]
        self._post(f"/management/v1/warehouse/{self._warehouse}/table/{uuid}/protection", {"protected": True})

    def _register(self, name: str, location: str) -> dict[str, Any]:
        path = f"/catalog/v1/{self._warehouse}/namespaces/{quote(NAMESPACE)}/register"
        return self._post(path, {"name": name, "metadata-location": location})

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
