"""A unit of Texera connects to Texera's database: PostgreSQL's Java driver with the variables of the rendered pod."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from lakewright.kubernetes import manifests
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.spec import parse_spec
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.execution_registry import database
from lakewright_spark.session import jars
from plain_jvm import run_jvm
from py4j.protocol import Py4JJavaError
from sqlalchemy import text
from unit_pod import UnitPod

from tests.postgres_server import postgres

pytestmark = pytest.mark.spark

USER = "texera_unit"
SECRETS = {"texera-unit": {"password": "it's/a?p&ss=w%rd", "jwt-secret": "jwt-secret-of-texera"}}
"""Secrets that the platform team makes in a tenant's namespace."""
TABLES = f"""
CREATE SCHEMA texera_db;
CREATE TABLE texera_db.workflow_executions (eid SERIAL PRIMARY KEY, status SMALLINT NOT NULL);
INSERT INTO texera_db.workflow_executions (status) VALUES (3);
CREATE FUNCTION public.similarity() RETURNS INT LANGUAGE SQL AS 'SELECT 7';
CREATE ROLE {USER} LOGIN PASSWORD '{SECRETS["texera-unit"]["password"].replace("'", "''")}';
GRANT USAGE ON SCHEMA texera_db TO {USER};
GRANT SELECT ON texera_db.workflow_executions TO {USER}
"""
"""A table of Texera, a function of an extension, and the unit's user."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of a server with Texera's database, which asks the unit's user for a password."""
    with postgres(password_users=[USER]) as url:
        run_statements(url, "CREATE DATABASE texera_db")
        run_statements(url.replace("/postgres", "/texera_db"), TABLES)
        yield f"127.0.0.1:{urlsplit(url).port}/texera_db"


def run_statements(url: str, statements: str) -> None:
    engine = database.connect(url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements.split(";\n"):
            connection.execute(text(statement))
    engine.dispose()


@pytest.fixture
def variables(address: str, tmp_path: Path) -> dict[str, str]:
    """Variables of a unit's container, with the texts of the Secrets that they refer to."""
    spec = parse_spec(
        {
            "version": 1,
            "environment": "production",
            "name": "acme",
            "owner": "data@acme.example",
            "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
            "warehouses": [{"name": "executions"}],
            "computing_units": [{"name": "workflows", "runtime": "texera", "warehouses": "all"}],
        },
        "spec",
    )
    catalog = CatalogConfig(
        tenant="acme",
        uri="https://lakekeeper.example/catalog",
        project_id="acme",
        warehouses=[CatalogWarehouse(name="executions", id="0198")],
    )
    password, jwt_secret = ({"name": "texera-unit", "key": key} for key in ("password", "jwt-secret"))
    texera_database = {"address": address, "username": USER, "password": password}
    cluster = ClusterSettings.model_validate({"texera": {"database": texera_database, "jwt_secret": jwt_secret}})
    (unit,) = spec.computing_units
    template = manifests.deployment_spec(spec, unit, catalog, "image", cluster=cluster)
    pod = UnitPod([manifests.deployment(spec, unit, template)], tmp_path, secrets=SECRETS, token="", image={})
    return pod.read_variables("texera")


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """Start a JVM with PostgreSQL's driver."""
    with run_jvm(jars.fetch([jars.DRIVERS["postgresql"]])) as gateway:
        yield gateway.jvm


def connect(jvm: Any, url: str, user: str, password: str) -> Any:
    """Return a connection that is made as in Texera's SqlServer."""
    source = jvm.org.postgresql.ds.PGSimpleDataSource()
    source.setUrl(url)
    source.setUser(user)
    source.setPassword(password)
    source.setConnectTimeout(5)
    return source.getConnection()


def test_unit_reads_texera_tables(jvm: Any, variables: dict[str, str]) -> None:
    """Texera's statements name tables and functions of extensions without their schemas."""
    url, user, password = (variables[f"STORAGE_JDBC_{name}"] for name in ("URL", "USERNAME", "PASSWORD"))
    connection = connect(jvm, url, user, password)
    query = "SELECT status, similarity(), current_user FROM workflow_executions"
    row = connection.createStatement().executeQuery(query)

    assert row.next()
    assert (row.getInt(1), row.getInt(2), row.getString(3)) == (3, 7, USER)
    connection.close()

    with pytest.raises(Py4JJavaError, match="password authentication failed"):
        connect(jvm, url, user, "other")
