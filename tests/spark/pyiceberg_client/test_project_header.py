"""Every request of a session names its project, as servers that read roles from tokens require."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from authenticating_proxy import AuthenticatingProxy, serve_proxy
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import ClientCredentialsAuth
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from projects import Project

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[AuthenticatingProxy]:
    with serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint, requires_project=True)) as running:
        yield running


@pytest.fixture(scope="module")
def direct_config(project: Project) -> CatalogConfig:
    """Return two warehouses: `headed` vends credentials, `signed` signs requests."""
    return project.config(project.warehouse("headed"), project.warehouse("signed", delegation="remote-signing"))


@pytest.fixture
def config(proxy: AuthenticatingProxy, direct_config: CatalogConfig, monkeypatch: pytest.MonkeyPatch) -> CatalogConfig:
    """Return the same configuration, through the proxy."""
    monkeypatch.setenv("JOB_SECRET", "s3cr3t")
    auth = ClientCredentialsAuth(
        kind="client-credentials", token_url=proxy.token_url, client_id="job", client_secret="env:JOB_SECRET"
    )
    return direct_config.model_copy(update={"uri": proxy.catalog_uri, "auth": auth})


@pytest.mark.parametrize("warehouse", ["headed", "signed"])
def test_pyiceberg_sends_the_project_header(config: CatalogConfig, proxy: AuthenticatingProxy, warehouse: str) -> None:
    catalog = open_catalog(config, warehouse)
    table = catalog.create_table(("operator-port-result", "rows"), ROWS.schema)
    table.append(ROWS)
    assert table.scan().to_arrow().equals(ROWS)
    catalog.purge_table(("operator-port-result", "rows"))
    assert any(path.endswith("/sign") for path in proxy.paths) == (warehouse == "signed")


SCRIPT = """
import sys
from pathlib import Path
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.session.builder import spark_session

session = spark_session(CatalogConfig.from_json(Path(sys.argv[1]).read_text()), "project-header")
for warehouse in ("headed", "signed"):
    table = f"{warehouse}.`operator-port-result`.rows"
    session.sql(f"CREATE TABLE {table} (id bigint)")
    session.sql(f"INSERT INTO {table} VALUES (1), (2), (3)")
    assert session.table(table).count() == 3
    session.sql(f"DROP TABLE {table} PURGE")
"""


@pytest.mark.long
@pytest.mark.spark
def test_spark_sends_the_project_header(config: CatalogConfig, proxy: AuthenticatingProxy, tmp_path: Path) -> None:
    """The JVM is new: Iceberg's signer keeps the authentication of the first session of its JVM."""
    file = tmp_path / "catalog.json"
    file.write_text(config.to_json())
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert any(path.endswith("/sign") for path in proxy.paths)
