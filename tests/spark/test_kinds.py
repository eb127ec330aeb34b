"""Every kind of catalog holds results: any REST service, and Iceberg's tables in a database; PyIceberg's side of it."""

from __future__ import annotations

import uuid
from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from lakewright_sandbox.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog_auth import S3Keys
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.uris import Execution, Port
from lakewright_spark.results.writer import ResultWriter

ROWS = pa.table({"number": [1, 2, 3]})


def bucket(sandbox: Sandbox) -> str:
    name = f"kinds-{uuid.uuid4().hex[:8]}"
    admin = sandbox.admin
    boto3.client(
        "s3",
        endpoint_url=sandbox.aws.endpoint,
        region_name=sandbox.aws.region,
        aws_access_key_id=admin.access_key_id,
        aws_secret_access_key=admin.secret_access_key.get_secret_value(),
    ).create_bucket(Bucket=name)
    return name


def in_database(sandbox: Sandbox, uri: str, monkeypatch: pytest.MonkeyPatch) -> CatalogConfig:
    """A catalog as Texera has it without a catalog service: a database, and keys of the store by reference."""
    monkeypatch.setenv("STORE_USER", sandbox.admin.access_key_id)
    monkeypatch.setenv("STORE_PASSWORD", sandbox.admin.secret_access_key.get_secret_value())
    warehouse = CatalogWarehouse(
        name="texera_iceberg",
        location=f"s3://{bucket(sandbox)}/warehouse",
        s3={
            "s3.endpoint": sandbox.aws.endpoint,
            "s3.region": sandbox.aws.region,
            "client.region": sandbox.aws.region,
            "s3.path-style-access": "true",
        },
        s3_keys=S3Keys(access_key_id="env:STORE_USER", secret_access_key="env:STORE_PASSWORD"),
    )
    return CatalogConfig(kind="jdbc", tenant="texera", uri=uri, warehouses=[warehouse])


def test_a_catalog_in_a_database(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = in_database(sandbox, f"sqlite:///{tmp_path}/catalog.db", monkeypatch)
    writer, reader = ResultWriter(config, "texera_iceberg"), ResultReader(config)
    uri = Execution(1, 1).result(Port("Op-1"))
    writer.write(uri, ROWS)
    writer.write(uri, ROWS)  # drops the first one with its files
    assert reader.whole(uri) == ROWS
    assert list(writer.tables.results()) == [uri.in_warehouse("texera_iceberg")]
    assert writer.tables.drop(uri)


def test_any_rest_service(catalog_config: CatalogConfig) -> None:
    name = f"{catalog_config.project_id}/results"  # what this service calls the warehouse
    config = CatalogConfig(
        kind="rest",
        tenant="acme",
        uri=catalog_config.uri,
        warehouses=[CatalogWarehouse(name="mine", location=name)],
    )
    uri = Execution(2, 1).result(Port("Op-1"))
    ResultWriter(config, "mine").write(uri, ROWS)
    assert ResultReader(config).whole(uri) == ROWS
    assert ResultReader(catalog_config).whole(uri) == ROWS


def test_signed_requests_in_place_of_vended_credentials(catalog_config: CatalogConfig) -> None:
    (results,) = catalog_config.warehouses
    signed = results.model_copy(update={"delegation": "remote-signing"})
    config = catalog_config.model_copy(update={"warehouses": [signed]})
    uri = Execution(3, 1).result(Port("Op-1"))
    ResultWriter(config, "results").write(uri, ROWS)
    assert ResultReader(config).whole(uri) == ROWS
