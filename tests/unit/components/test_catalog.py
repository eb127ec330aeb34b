"""CatalogConfig: one contract in four forms, none of which can hold a secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from lakewright import config_formats
from lakewright.config_formats.config_format import ConfigRequest
from lakewright.config_formats.registry import FORMATS, load_format
from lakewright_spark import load_config
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth
from pydantic import ValidationError
from pyiceberg.utils.config import Config

CONFIG = CatalogConfig(
    tenant="acme",
    uri="https://lakekeeper.example/catalog/",
    project_id="acme",
    warehouses=[
        CatalogWarehouse(
            name="executions",
            id="01980000-0000-7000-8000-000000000001",
            namespaces=["operator-port-result"],
            s3={"s3.region": "us-west-2", "client.region": "us-west-2"},
        ),
        CatalogWarehouse(name="curated", id="01980000-0000-7000-8000-000000000002", delegation="remote-signing"),
    ],
)


def test_spark_gets_a_named_catalog_for_each_warehouse() -> None:
    properties = CONFIG.spark_properties()

    assert properties["spark.sql.catalog.executions"] == "org.apache.iceberg.spark.SparkCatalog"
    assert properties["spark.sql.catalog.executions.uri"] == "https://lakekeeper.example/catalog"
    assert properties["spark.sql.catalog.executions.warehouse"] == "acme/executions"
    header = "header.X-Iceberg-Access-Delegation"
    assert properties[f"spark.sql.catalog.executions.{header}"] == "vended-credentials"
    assert properties[f"spark.sql.catalog.curated.{header}"] == "remote-signing"
    assert properties["spark.sql.catalog.executions.table-default.commit.retry.num-retries"] == "10"
    assert "spark.sql.defaultCatalog" not in properties


def test_each_file_of_a_format_is_registered() -> None:
    files = {path.stem for path in Path(config_formats.__path__[0]).glob("*.py") if "FORMAT = " in path.read_text()}

    assert files == {*FORMATS.values()}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_names_each_catalog(name: str) -> None:
    config_format = load_format(name)
    request = ConfigRequest(CONFIG, config_format.engine.version if config_format.engine else "")
    text = str(config_format.render(request))

    assert {"executions", "curated"} <= {*re.findall(r"executions|curated", text.lower())}


def test_single_warehouse_is_the_default_catalog() -> None:
    assert CONFIG.select_warehouses(["curated"]).spark_properties()["spark.sql.defaultCatalog"] == "curated"


def test_pyiceberg_reads_the_same_from_file_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(CONFIG.pyiceberg_yaml())
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    from_file = Config().get_catalog_config("executions")

    (tmp_path / ".pyiceberg.yaml").unlink()
    for name, value in CONFIG.environment().items():
        monkeypatch.setenv(name, value)
    from_variables = Config().get_catalog_config("executions")

    assert from_file is not None
    assert from_file["warehouse"] == "acme/executions"
    assert from_variables == {key.lower(): value for key, value in from_file.items()}


def test_pyiceberg_variables_with_hyphens_in_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names that PyIceberg would change are refused."""
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    names = ["raw-data", "clean_data"]
    config = CONFIG.model_copy(update={"warehouses": [CatalogWarehouse(name=name, id="1") for name in names]})
    for name, value in config.environment().items():
        monkeypatch.setenv(name, value)

    read = Config()

    assert read.get_known_catalogs() == ["raw-data"]
    assert (read.get_catalog_config("raw-data") or {})["warehouse"] == "acme/raw-data"
    assert CatalogConfig.from_json(config.environment()["LAKEWRIGHT_CATALOG"]) == config
    (tmp_path / ".pyiceberg.yaml").write_text(config.pyiceberg_yaml())
    assert (Config().get_catalog_config("clean_data") or {})["warehouse"] == "acme/clean_data"


def test_configuration_survives_a_file(tmp_path: Path) -> None:
    file = tmp_path / "catalog.json"
    file.write_text(CONFIG.to_json())

    assert CatalogConfig.load(file) == CatalogConfig.load(str(file)) == CONFIG
    assert load_config(file) == load_config(str(file)) == CONFIG
    assert yaml.safe_load(CONFIG.pyiceberg_yaml())["catalog"]["curated"]["type"] == "rest"


def test_unknown_warehouse_lists_the_existing_ones() -> None:
    with pytest.raises(KeyError, match="executions, curated"):
        CONFIG.select_warehouses(["sales"])


@pytest.mark.parametrize("option", ["s3.access-key-id", "s3.secret-access-key", "s3.session-token", "token"])
def test_secret_option_is_refused(option: str) -> None:
    with pytest.raises(ValidationError, match="without secrets"):
        CatalogWarehouse(name="w", id="1", s3={option: "x"})


@pytest.mark.parametrize("uri", ["https://me:secret@host/catalog", "https://host/catalog?token=x", "ftp://host"])
def test_address_with_a_secret_is_refused(uri: str) -> None:
    with pytest.raises(ValidationError, match="expected an http"):
        CatalogConfig(tenant="a", uri=uri, project_id="a", warehouses=[])


def test_newer_version_is_refused() -> None:
    with pytest.raises(ValidationError):
        CatalogConfig.from_json(CONFIG.to_json().replace('"version": 1', '"version": 2'))


def test_job_credential_is_read_when_the_job_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    auth = ClientCredentialsAuth(
        kind="client-credentials",
        token_url="https://idp.example/token",
        client_id="job",
        client_secret="env:JOB_SECRET",
    )
    config = CONFIG.model_copy(update={"auth": auth})

    assert config.spark_properties()["spark.sql.catalog.executions.oauth2-server-uri"] == "https://idp.example/token"
    assert auth.secret_options({"JOB_SECRET": "s3cr3t"}) == {"credential": "job:s3cr3t"}
    assert "s3cr3t" not in config.to_json()
    with pytest.raises(LookupError, match="env:JOB_SECRET"):
        auth.secret_options({})
