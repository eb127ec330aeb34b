"""Polaris as the source: tables in place and as copies, views, and mistakes in the configuration.

The stand-in refuses what Polaris refuses with its default settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from forwarding import ForwardedCatalog
from jdbc_catalog import jdbc_catalog_config
from lakewright_sandbox.in_process import serve
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import ClientCredentialsAuth
from lakewright_spark.errors import IdentityError, LakewrightSparkError, MigrationError, WarehouseHiddenError
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.fence import FENCE
from lakewright_spark.migration.ledger import Step
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from migration_catalogs import NEW, Catalogs, build_catalogs, build_rows, count_rows
from polaris_stand_in import LIST_PAGES, PURGES_VIEWS, PolarisStandIn
from projects import Project
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import BadRequestError, ForbiddenError
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

SECRET = "s3cret"
DOCUMENTED_PRIVILEGES = {"NAMESPACE_LIST", "TABLE_READ_DATA", "TABLE_FULL_METADATA", "VIEW_FULL_METADATA"}
"""Privileges of the principal as the guide lists them."""


@dataclass
class Polaris:
    """A running stand-in with tables, the configuration of its catalog, and of the warehouse behind it."""

    stand_in: PolarisStandIn
    config: CatalogConfig
    backend: Catalogs

    @property
    def catalog(self) -> Catalog:
        return open_catalog(self.config, "old")

    def build_route(self, target: CatalogConfig) -> Catalogs:
        """Return a migration from Polaris to the warehouse of another configuration."""
        backend, warehouse = self.backend, target.warehouses[0].name
        return Catalogs(self.config, target, backend.ledger, backend.sandbox, "old", warehouse)


@pytest.fixture
def polaris(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Polaris]:
    monkeypatch.setenv("POLARIS_SECRET", SECRET)
    backend = build_catalogs(project, tmp_path, monkeypatch)
    properties = {LIST_PAGES: "true", "rest-page-size": "1", "default-base-location": project.location(NEW)}
    behind = ForwardedCatalog(backend.open_target())
    stand_in = PolarisStandIn(behind, "lake", client=("migration", SECRET), properties=properties)
    with serve(stand_in.build_app()) as address:
        auth = ClientCredentialsAuth(
            kind="client-credentials",
            token_url=f"{address}/api/catalog/v1/oauth/tokens",
            client_id="migration",
            client_secret="env:POLARIS_SECRET",
            scope="PRINCIPAL_ROLE:ALL",
        )
        keys = {"s3": backend.source.warehouses[0].s3, "s3_keys": backend.source.warehouses[0].s3_keys}
        warehouse = backend.target.warehouses[0].model_copy(update={"name": "old", "location": "lake", "id": None})
        config = CatalogConfig(
            kind="rest",
            tenant="acme",
            uri=f"{address}/api/catalog",
            headers={"Polaris-Realm": "acme"},
            auth=auth,
            warehouses=[warehouse.model_copy(update=keys)],
        )
        polaris = Polaris(stand_in, config, backend)
        catalog = polaris.catalog
        catalog.create_namespace("sales")
        for name in ("orders", "returns"):
            catalog.create_table(("sales", name), build_rows(1).schema).append(build_rows(3))
        yield polaris


def create_view(catalog: Catalog, properties: dict[str, str] | None = None) -> None:
    representation = SQLViewRepresentation(type="sql", sql="SELECT number FROM orders", dialect="spark")
    version = ViewVersion(
        version_id=1,
        schema_id=0,
        timestamp_ms=1_790_000_000_000,
        summary={},
        representations=[representation],
        default_namespace=["sales"],
    )
    catalog.create_view(("sales", "numbers"), build_rows(1).schema, version, properties=properties or {})


def test_tables_in_place_with_an_undo(
    polaris: Polaris, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = polaris.catalog.load_table("sales.orders").location().rpartition("/")[0]
    target = jdbc_catalog_config(project.sandbox, f"sqlite:///{tmp_path}/new.db", monkeypatch, location)
    moving = polaris.build_route(target)
    table_privileges = {f"TABLE_{name}" for name in ("LIST", "CREATE", "DROP", "READ_DATA", "WRITE_PROPERTIES")}
    polaris.stand_in.privileges = {"NAMESPACE_LIST", "VIEW_FULL_METADATA", *table_privileges}
    moving.migrate()
    assert polaris.catalog.load_table("sales.orders").properties["gc.enabled"] == "false"
    polaris.stand_in.busy_renames = 1
    with pytest.raises(MigrationError, match=r"1 of 2 tables.*concurrently modified; please retry"):
        moving.migrate(Action.CUT_OVER)
    moving.migrate(Action.CUT_OVER)
    moving.open_target().load_table("sales.orders").append(build_rows(2))
    with pytest.raises(MigrationError, match="is not authorized for op REGISTER_TABLE_OVERWRITE"):
        moving.migrate(Action.UNDO, "sales.orders")
    polaris.stand_in.privileges = DOCUMENTED_PRIVILEGES
    moving.migrate(Action.UNDO)
    table = polaris.catalog.load_table("sales.orders")
    assert (count_rows(polaris.catalog, "sales.orders"), FENCE in table.properties) == (5, False)
    moving.migrate()
    moving.migrate(Action.CUT_OVER)
    moving.migrate(Action.FINISH)
    assert polaris.catalog.list_tables("sales") == []
    assert count_rows(moving.open_target(), "sales.orders") == 5
    # 404 is how a client learns that a table does not exist.
    assert {text.partition(" ")[0] for text in polaris.stand_in.refused} == {"403", "404", "503"}


def test_tables_and_views_as_copies(polaris: Polaris, project: Project) -> None:
    """By default, Polaris refuses to drop a view: a drop purges its metadata file, and purges are off."""
    create_view(polaris.catalog)
    target_project = Project(project.server, project.sandbox, project.real)
    moving = polaris.build_route(target_project.config(target_project.warehouse("moved")))
    moving.migrate(copy=True)
    polaris.catalog.load_table("sales.orders").append(build_rows(2))
    moving.migrate(Action.CUT_OVER)
    target = moving.open_target()
    assert (count_rows(target, "sales.orders"), count_rows(target, "sales.returns")) == (5, 3)
    assert target.list_views("sales") == [("sales", "numbers")]
    source_view, target_view = polaris.catalog.load_view("sales.numbers__moved"), target.load_view("sales.numbers")
    assert target_view.current_version().representations == source_view.current_version().representations

    with pytest.raises(MigrationError, match=r"1 of 3 tables.*Unable to purge entity: numbers__moved"):
        moving.migrate(Action.FINISH)
    polaris.stand_in.properties[PURGES_VIEWS] = "false"
    entries = moving.migrate(Action.FINISH).entries

    assert {entry.step for entry in entries} == {Step.FINISHED}
    assert polaris.catalog.list_views("sales") == []
    source_table = polaris.catalog.load_table("sales.orders__moved")
    assert FENCE not in source_table.properties, "the source keeps the files of a copied table"


CHANGES: dict[str, tuple[Callable[[CatalogConfig], CatalogConfig], type[LakewrightSparkError], str]] = {
    "realm": (
        lambda config: config.model_copy(update={"headers": {}}),
        IdentityError,
        r"gave no token to client migration: it responded with 404 \(MissingOrInvalidRealm\)",
    ),
    "scope": (
        lambda config: config.model_copy(update={"auth": config.auth.model_copy(update={"scope": "catalog"})}),
        IdentityError,
        r"it responded with 400 \(invalid_scope\)",
    ),
    "client": (
        lambda config: config.model_copy(update={"auth": config.auth.model_copy(update={"client_id": "other"})}),
        IdentityError,
        r"it responded with 401 \(unauthorized_client\)",
    ),
    "warehouse": (
        lambda config: config.model_copy(
            update={"warehouses": [config.warehouses[0].model_copy(update={"location": None})]}
        ),
        WarehouseHiddenError,
        "Unable to find warehouse old",
    ),
}


@pytest.mark.parametrize("part", CHANGES)
def test_mistakes_in_the_configuration(polaris: Polaris, part: str) -> None:
    change, kind, message = CHANGES[part]
    with pytest.raises(kind, match=message) as error:
        open_catalog(change(polaris.config), "old")
    assert SECRET not in str(error.value)


def test_stand_in_refuses_what_polaris_refuses(polaris: Polaris) -> None:
    catalog = polaris.catalog
    with pytest.raises(ForbiddenError, match="Unable to purge entity: orders"):
        catalog.purge_table("sales.orders")
    table = catalog.load_table("sales.orders")
    with pytest.raises(BadRequestError, match="matches reserved prefix"), table.transaction() as change:
        change.set_properties({"polaris.owner": "ada"})
    with polaris.backend.open_target().load_table("sales.orders").transaction() as change:
        change.set_properties({"polaris.owner": "ada"})
    table = catalog.load_table("sales.orders")
    with pytest.raises(BadRequestError, match="matches reserved prefix"), table.transaction() as change:
        change.remove_properties("polaris.owner")
    with pytest.raises(ForbiddenError, match="not in the list of allowed locations"):
        catalog.register_table("sales.copy", "s3://elsewhere/metadata/1.metadata.json")
    with pytest.raises(ForbiddenError, match="not in the list of allowed locations"), table.transaction() as change:
        change.set_properties({"write.metadata.path": "s3://elsewhere/metadata"})
    with pytest.raises(BadRequestError, match="must not contain '#'"):
        catalog.rename_table("sales.orders", "sales.orders#1")
    with pytest.raises(BadRequestError, match="matches reserved prefix"):
        create_view(catalog, {"polaris.owner": "ada"})
