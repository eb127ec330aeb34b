"""A warehouse with tables, and a warehouse of another project, with another bucket, that is its standby."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from jdbc_catalog import jdbc_catalog_config
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.verify import Depth
from lakewright_spark.migration.view_catalog import ViewCatalog
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.standby.actions import Standby
from lakewright_spark.standby.status import TableStatus
from projects import Project
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from rest_views import create_view

DAY = timedelta(days=1)
PROPERTIES = {"owner": "ada", "gc.enabled": "true"}


@dataclass
class Pair:
    """The configurations of both warehouses, and a clock."""

    source: CatalogConfig
    standby: CatalogConfig
    now: datetime

    def open(self, *patterns: str) -> Standby:
        return Standby.open(self.source, "results", self.standby, "copies", *patterns)

    def copy(self, *patterns: str, depth: Depth = Depth.FULL) -> dict[str, TableStatus]:
        return {status.name: status for status in self.open(*patterns).copy(depth, self.now)}

    @property
    def source_views(self) -> ViewCatalog:
        return ViewCatalog(Endpoint.open(self.source, "results"))

    @property
    def copied_views(self) -> ViewCatalog:
        return ViewCatalog(Endpoint.open(self.standby, "copies"))

    def measure(self) -> dict[str, TableStatus]:
        return {status.name: status for status in self.open().measure(self.now)}

    def promote(self, *patterns: str, is_source_lost: bool = False) -> dict[str, TableStatus]:
        statuses = self.open(*patterns).promote(self.now, is_source_lost=is_source_lost)
        return {status.name: status for status in statuses}

    @property
    def catalog(self) -> Catalog:
        return open_catalog(self.source, "results")

    @property
    def copies(self) -> Catalog:
        return open_catalog(self.standby, "copies")

    def add_table(self, name: str, rows: int = 3) -> Table:
        """Create a table with two snapshots, a tag and a property in the source."""
        self.catalog.create_namespace_if_not_exists("sales")
        table = self.catalog.create_table(
            name, build_rows(rows).schema, properties={"owner": "ada", "gc.enabled": "true"}
        )
        table.append(build_rows(rows))
        table.append(build_rows(rows))
        table.manage_snapshots().create_tag(list_snapshots(table)[0], "first").commit()
        return self.catalog.load_table(name)


def list_snapshots(table: Table) -> list[int]:
    """Return the IDs of a table's snapshots, oldest first. Servers list them in any order."""
    return [s.snapshot_id for s in sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)]


def build_rows(count: int) -> pa.Table:
    return pa.table({"number": pa.array(range(count), pa.int64()), "name": [f"n{i}" for i in range(count)]})


def read_rows(catalog: Catalog, name: str) -> pa.Table:
    return catalog.load_table(name).scan().to_arrow().sort_by("number")


@pytest.fixture(params=["from-database", pytest.param("from-server", marks=pytest.mark.long)])
def pair(request: pytest.FixtureRequest, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Return a warehouse of a server and a database, as source and standby or the other way round."""
    own_project = Project(project.server, project.sandbox, project.real)
    is_from_server = request.param == "from-server"
    warehouse = own_project.warehouse("results" if is_from_server else "copies")
    location = f"{own_project.location(warehouse.name)}-beside"
    database = jdbc_catalog_config(project.sandbox, f"sqlite:///{tmp_path}/tables.db", monkeypatch, location)
    (in_database,) = database.warehouses
    keys = {"s3": in_database.s3, "s3_keys": in_database.s3_keys}
    if is_from_server:
        copies = in_database.model_copy(update={"name": "copies", "s3_keys": in_database.s3_keys})
        source = own_project.config(warehouse.model_copy(update=keys))
        return Pair(source, database.model_copy(update={"warehouses": [copies]}), datetime.now(UTC))
    results = in_database.model_copy(update={"name": "results"})
    return Pair(database.model_copy(update={"warehouses": [results]}), own_project.config(warehouse), datetime.now(UTC))


@pytest.fixture
def rest_pair(project: Project, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Return warehouses of two projects, in two buckets. The source has the view `sales.large_orders`."""
    first, second = (Project(project.server, project.sandbox, project.real) for _ in range(2))
    source = first.config(first.warehouse("results"))
    (keys,) = jdbc_catalog_config(project.sandbox, "sqlite:///unused.db", monkeypatch, "s3://unused/x").warehouses
    warehouse = source.warehouses[0].model_copy(update={"s3": keys.s3, "s3_keys": keys.s3_keys})
    standby = second.config(second.warehouse("copies"))
    pair = Pair(source.model_copy(update={"warehouses": [warehouse]}), standby, datetime.now(UTC))
    pair.catalog.create_namespace("sales")
    create_view(pair.source_views)
    return pair
