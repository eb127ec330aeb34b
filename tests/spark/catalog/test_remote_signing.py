"""Orphan removal must list files, which releases of Lakekeeper do not sign: it is refused at the start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from lakewright_sandbox import lifecycle
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.cli import app
from lakewright_spark.errors import JobRefusedError
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.listings import refusal_of_listings
from projects import Project, post
from typer.testing import CliRunner

ROWS = pa.table({"id": [1, 2, 3]})


def create_signing_warehouse(project: Project) -> CatalogConfig:
    """Create a warehouse `signs` with remote signing and a table in it; return the configuration."""
    config = project.config(project.warehouse("signs", delegation="remote-signing"))
    catalog = open_catalog(config, "signs")
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", ROWS.schema).append(ROWS)
    return config


@pytest.fixture
def signing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CatalogConfig]:
    """Return that configuration on a sandbox of a given Lakekeeper version."""
    directory = tmp_path / "sandbox"
    sandbox = lifecycle.bring_up(directory, lifecycle.SandboxOptions(version=request.param)).sandbox
    with httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60) as server:
        post(server, "/management/v1/bootstrap", {"accept-terms-of-use": True})
        yield create_signing_warehouse(Project(server, sandbox))
    lifecycle.down(directory)


@pytest.mark.long
@pytest.mark.parametrize("signing", ["0.13"], indirect=True)
@pytest.mark.stand_in("plays its own version")
def test_orphan_removal_requires_vending_on_releases(signing: CatalogConfig, tmp_path: Path) -> None:
    (tmp_path / "catalog.json").write_text(signing.to_json())
    config_options = ["--config", str(tmp_path / "catalog.json")]
    refused = CliRunner().invoke(app, ["job", "orphan-files", "--table", "sales.orders", *config_options])
    assert isinstance(refused.exception, JobRefusedError)
    assert "needs a warehouse with `delegation: vended`" in str(refused.exception)
    maintained = CliRunner().invoke(app, ["maintain", "--job", "orphan-files", *config_options])
    assert maintained.exit_code == 0, maintained.output
    assert "nothing is due; 1 more is due and held back" in maintained.stdout
    dry = CliRunner().invoke(app, ["maintain", "--job", "orphan-files", "--dry-run", "--json", *config_options])
    assert json.loads(dry.stdout)["runs"] == []


@pytest.mark.parametrize("signing", ["0.14"], indirect=True)
@pytest.mark.stand_in("plays its own version")
@pytest.mark.long
def test_unreleased_server_signs_listings(signing: CatalogConfig) -> None:
    table = open_catalog(signing, "signs").load_table("sales.orders")
    assert refusal_of_listings(table) is None
