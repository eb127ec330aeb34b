"""Two catalogs for a migration: a database with tables, and a Lakekeeper warehouse that may have their locations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from jdbc_catalog import jdbc_catalog_config
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.migration.actions import Action, MigrationResult, MigrationRoute, migrate_tables
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from projects import Project
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

OLD, NEW = "texera_iceberg", "results"


@dataclass
class Catalogs:
    """Source and target of a migration, and its ledger."""

    source: CatalogConfig
    target: CatalogConfig
    ledger: Path
    sandbox: Sandbox
    source_warehouse: str = OLD
    target_warehouse: str | None = NEW

    @property
    def route(self) -> MigrationRoute:
        return MigrationRoute(self.source, self.source_warehouse, self.target, self.target_warehouse)

    def migrate(
        self,
        action: Action = Action.REGISTER,
        *patterns: str,
        copy: bool = False,
        grants: bool = False,
        depth: str = "full",
        texera: str | None = None,
    ) -> MigrationResult:
        result = migrate_tables(
            self.route, self.ledger, action, patterns=patterns, copy=copy, grants=grants, depth=depth, texera=texera
        )
        if result.error:
            raise result.error
        return result

    def open_source(self) -> Catalog:
        return open_catalog(self.source, self.source_warehouse)

    def open_target(self) -> Catalog:
        return open_catalog(self.target, self.target_warehouse or self.target.warehouses[0].name)

    def add_table(self, identifier: str, rows: int = 3) -> Table:
        """Create a table in the source: two snapshots, a tag, a later schema and a property."""
        catalog = self.open_source()
        catalog.create_namespace_if_not_exists(identifier.split(".", maxsplit=1)[0])
        content = build_rows(rows)
        table = catalog.create_table(identifier, content.schema, properties={"owner": "ada"})
        table.append(content)
        with table.update_schema() as change:
            change.add_column("later", table.schema().find_type("name"))
        table.append(content.append_column("later", pa.array(["x"] * rows)))
        oldest = min(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
        table.manage_snapshots().create_tag(oldest.snapshot_id, "first").commit()
        return catalog.load_table(identifier)

    def list_objects(self) -> set[str]:
        """Return the keys of all objects below the source's and the target's locations."""
        bucket = (self.source.warehouses[0].location or self.source.uri).split("/")[2]
        client = self.connect_s3()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return {item["Key"] for page in pages for item in page.get("Contents", [])}

    def connect_s3(self) -> Any:
        """Return a client of the object store that may read and write everything."""
        admin = self.sandbox.admin
        return boto3.client(
            "s3",
            endpoint_url=self.sandbox.aws.endpoint,
            region_name=self.sandbox.aws.region,
            aws_access_key_id=admin.access_key_id,
            aws_secret_access_key=admin.secret_access_key.get_secret_value(),
        )


def build_rows(count: int) -> pa.Table:
    return pa.table(
        {"number": pa.array(range(count), pa.int64()), "name": [f"n{i}" for i in range(count)], "part": [0.1] * count}
    )


def build_catalogs(project: Project, folder: Path, monkeypatch: pytest.MonkeyPatch, uri: str = "") -> Catalogs:
    """Return a database whose tables are below the location of a warehouse of a new project."""
    own_project = Project(project.server, project.sandbox, project.real)
    target = own_project.config(own_project.warehouse(NEW))
    location = f"{own_project.location(NEW)}/old"
    source = jdbc_catalog_config(project.sandbox, uri or f"sqlite:///{folder}/old.db", monkeypatch, location)
    return Catalogs(source, target, folder / "migration.db", project.sandbox)


def read_rows(catalog: Catalog, identifier: str) -> pa.Table:
    return catalog.load_table(identifier).scan().to_arrow().sort_by("number")


def count_rows(catalog: Catalog, identifier: str) -> int:
    return read_rows(catalog, identifier).num_rows
