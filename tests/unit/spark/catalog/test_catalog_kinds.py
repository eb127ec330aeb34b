"""Kinds of catalogs: their Spark and PyIceberg properties, and their required fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth, PasswordAuth, S3Keys, TokenFileAuth
from lakewright_spark.catalog.loading import load_config
from lakewright_spark.errors import ConfigMissingError
from pydantic import ValidationError
from pyiceberg.utils.config import Config

KEYS = S3Keys(access_key_id="env:S3_USER", secret_access_key="env:S3_PASSWORD")

LAKEKEEPER: dict[str, Any] = {
    "tenant": "acme",
    "uri": "https://lakekeeper.example/catalog",
    "project_id": "acme",
    "warehouses": [CatalogWarehouse(name="executions", id="1")],
}
REST = CatalogConfig(
    kind="rest",
    tenant="acme",
    uri="https://polaris.example/api/catalog",
    warehouses=[
        CatalogWarehouse(name="executions", location="acme-catalog"),
        CatalogWarehouse(name="signed", delegation="remote-signing"),
    ],
)
TEXERA = CatalogConfig(
    kind="jdbc",
    tenant="texera",
    uri="postgresql://db.example:5432/texera_iceberg_catalog",
    auth=PasswordAuth(kind="password", user="texera", password="env:DB_PASSWORD"),
    warehouses=[
        CatalogWarehouse(
            name="texera_iceberg",
            location="s3://texera-iceberg/warehouse",
            s3={"s3.endpoint": "http://minio:9000", "s3.path-style-access": "true"},
            s3_keys=KEYS,
        )
    ],
)
SECRETS = {"DB_PASSWORD": "p@ss", "S3_USER": "minio", "S3_PASSWORD": "s3cr3t"}


def test_configuration_of_the_first_release() -> None:
    first = {
        "version": 1,
        "tenant": "acme",
        "uri": "https://lakekeeper.example/catalog",
        "project_id": "acme",
        "auth": {"kind": "none"},
        "warehouses": [{"name": "w", "id": "1", "delegation": "vended", "namespaces": ["n"], "s3": {}}],
    }
    config = CatalogConfig.from_json(json.dumps(first))
    assert config.kind == "lakekeeper"
    # A job of the first release can read what is written for Lakekeeper.
    assert json.loads(config.to_json()) == first


def test_new_fields_are_written_only_if_used() -> None:
    document = json.loads(TEXERA.to_json())
    assert document["kind"] == "jdbc"
    assert document["warehouses"][0]["s3_keys"] == {
        "access_key_id": "env:S3_USER",
        "secret_access_key": "env:S3_PASSWORD",
    }
    for config in (REST, TEXERA):
        assert CatalogConfig.from_json(config.to_json()) == config


def test_rest_catalog_uses_its_own_warehouse_name() -> None:
    spark = REST.spark_properties()
    assert spark["spark.sql.catalog.executions.type"] == "rest"
    assert spark["spark.sql.catalog.executions.warehouse"] == "acme-catalog"
    assert spark["spark.sql.catalog.signed.warehouse"] == "signed"
    assert REST.pyiceberg("executions")["warehouse"] == "acme-catalog"
    assert REST.pyiceberg("signed")["header.X-Iceberg-Access-Delegation"] == "remote-signing"


def test_headers_of_a_rest_catalog() -> None:
    auth = ClientCredentialsAuth(
        kind="client-credentials",
        token_url="https://polaris.example/api/catalog/v1/oauth/tokens",
        client_id="migration",
        client_secret="env:POLARIS_SECRET",
        scope="PRINCIPAL_ROLE:ALL",
    )
    config = REST.model_copy(update={"headers": {"Polaris-Realm": "acme"}, "auth": auth})
    python = config.pyiceberg("executions")
    assert python["header.Polaris-Realm"] == "acme"
    assert python["auth"]["custom"]["headers"] == {"Polaris-Realm": "acme"}, "the token is of the realm, too"
    assert config.spark_properties()["spark.sql.catalog.executions.header.Polaris-Realm"] == "acme"
    with pytest.raises(ValueError, match="expected no headers with client credentials"):
        config.spark_properties_with_references()
    values = REST.model_dump()
    with pytest.raises(ValidationError, match="headers: expected no Authorization"):
        CatalogConfig.model_validate(values | {"headers": {"Authorization": "Bearer abc"}})
    with pytest.raises(ValidationError, match="kind jdbc: expected no headers"):
        CatalogConfig.model_validate(TEXERA.model_dump() | {"headers": {"Polaris-Realm": "acme"}})


@pytest.mark.parametrize("name", ["Proxy-Authorization", "Cookie", "X-Api-Key", "X-Auth-Token", "Client-Secret"])
def test_headers_with_secrets_are_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "catalog.json"
    file.write_text(json.dumps(json.loads(REST.to_json()) | {"headers": {name: "abc123"}}))
    with pytest.raises(ConfigMissingError, match=f"headers: expected headers without secrets.*{name}") as error:
        load_config(file)
    assert "abc123" not in str(error.value)


def test_server_side_purge() -> None:
    assert "spark.sql.catalog.executions.rest-catalog-purge" not in REST.spark_properties()
    assert REST.spark_properties()["spark.sql.catalog.signed.rest-catalog-purge"] == "true"
    lakekeeper = CatalogConfig(**LAKEKEEPER).spark_properties()
    assert lakekeeper["spark.sql.catalog.executions.rest-catalog-purge"] == "true"


def test_jdbc_catalog_of_texera() -> None:
    spark = TEXERA.spark_properties()
    assert spark["spark.sql.catalog.texera_iceberg.type"] == "jdbc"
    assert spark["spark.sql.catalog.texera_iceberg.uri"] == "jdbc:postgresql://db.example:5432/texera_iceberg_catalog"
    assert spark["spark.sql.catalog.texera_iceberg.warehouse"] == "s3://texera-iceberg/warehouse"
    python = TEXERA.pyiceberg("texera_iceberg")
    assert python["type"] == "sql"
    assert python["uri"] == "postgresql+psycopg://db.example:5432/texera_iceberg_catalog"
    assert python["s3.endpoint"] == "http://minio:9000"


def test_secrets_are_not_part_of_the_configuration() -> None:
    secrets = TEXERA.spark_secrets(SECRETS)
    assert secrets == {
        "spark.sql.catalog.texera_iceberg.jdbc.user": "texera",
        "spark.sql.catalog.texera_iceberg.jdbc.password": "p@ss",
        "spark.sql.catalog.texera_iceberg.s3.access-key-id": "minio",
        "spark.sql.catalog.texera_iceberg.s3.secret-access-key": "s3cr3t",
    }
    forms = [TEXERA.to_json(), TEXERA.pyiceberg_yaml(), str(TEXERA.environment()), str(TEXERA.spark_properties())]
    assert not any(secret in form for secret in ("p@ss", "s3cr3t") for form in forms)


def test_pyiceberg_file_names_token_file_and_certificates(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    auth = TokenFileAuth(kind="token-file", path="/var/run/token")
    config = CatalogConfig(**LAKEKEEPER, auth=auth, ca_bundle="/etc/ca.pem")
    (tmp_path / ".pyiceberg.yaml").write_text(config.pyiceberg_yaml())
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    catalog_config = Config().get_catalog_config("executions") or {}
    assert (catalog_config["auth"], catalog_config["ssl"]) == (
        config.pyiceberg("executions")["auth"],
        {"cabundle": "/etc/ca.pem"},
    )
    assert config.pyiceberg("executions")["auth"]["custom"] == {"token": "file:/var/run/token"}
    assert config.spark_properties()["spark.sql.catalog.executions.token-refresh-enabled"] == "false"


def test_incomplete_environment_variables_are_left_out() -> None:
    config = CatalogConfig(**LAKEKEEPER, ca_bundle="/etc/ca.pem")
    assert config.list_inexpressible_warehouses() == ["executions"]
    variables = config.environment()
    assert not any(name.startswith("PYICEBERG_") for name in variables)
    assert variables["AWS_CA_BUNDLE"] == variables["REQUESTS_CA_BUNDLE"] == "/etc/ca.pem"


JDBC = {"kind": "jdbc", "tenant": "t", "warehouses": [{"name": "w", "location": "s3://b/p"}]}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (LAKEKEEPER | {"project_id": None}, "kind lakekeeper: expected project_id"),
        (LAKEKEEPER | {"warehouses": [{"name": "w"}]}, "an id in every warehouse"),
        (LAKEKEEPER | {"kind": "rest"}, "kind rest: expected no project_id"),
        (LAKEKEEPER | {"auth": {"kind": "password", "user": "u", "password": "env:P"}}, "found password"),
        (JDBC | {"uri": "https://db.example"}, "expected postgresql://HOST"),
        (JDBC | {"uri": "postgresql://me:pass@db/x"}, "without user, password or query"),
        (
            JDBC | {"uri": "postgresql://db/x", "auth": {"kind": "token", "token": "env:T"}},
            "expected auth of kind pass",
        ),
        (JDBC | {"uri": "sqlite:////x.db", "warehouses": [{"name": "w"}]}, "expected a location s3://BUCKET/PREFIX"),
    ],
)
def test_required_and_refused_fields_by_kind(document: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        CatalogConfig.model_validate(document)
