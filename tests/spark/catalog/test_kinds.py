"""Results in catalogs of kind `rest` and `jdbc`, through PyIceberg."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from jdbc_catalog import jdbc_catalog_config
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.writer import ResultWriter
from pyarrow.fs import FileSelector

ROWS = pa.table({"number": [1, 2, 3]})


def test_jdbc_catalog(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = jdbc_catalog_config(sandbox, f"sqlite:///{tmp_path}/catalog.db", monkeypatch)
    writer, reader = ResultWriter(config, "texera_iceberg"), ResultReader(config)
    uri = Execution(1, 1).result(Port("Op-1"))
    writer.write(uri, ROWS)
    writer.write(uri, ROWS)  # replaces the first result
    assert reader.read_all(uri) == ROWS
    assert list(writer.tables.list_results()) == [uri.with_warehouse("texera_iceberg")]
    assert writer.tables.drop(uri)


def test_jdbc_catalog_deletes_old_metadata_files(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = jdbc_catalog_config(sandbox, f"sqlite:///{tmp_path}/catalog.db", monkeypatch)
    uri = Execution(1, 1).result(Port("Op-1"))
    with ResultWriter(config, "texera_iceberg").stream(uri, ROWS.schema) as stream:
        for _ in range(14):
            stream.append_batch(ROWS)
            stream.flush()
    table = ResultReader(config).table(uri)
    io, location = table.io, table.location().removeprefix("s3://")
    files = io.fs_by_scheme("s3", None).get_file_info(FileSelector(f"{location}/metadata"))
    assert sum(file.path.endswith(".metadata.json") for file in files) == 11, "the current file and ten before"
    assert len(table.metadata.snapshots) == 14


def test_rest_catalog(catalog_config: CatalogConfig) -> None:
    name = f"{catalog_config.project_id}/results"  # the name of the warehouse in this service
    config = CatalogConfig(
        kind="rest",
        tenant="acme",
        uri=catalog_config.uri,
        auth=catalog_config.auth,
        warehouses=[CatalogWarehouse(name="mine", location=name)],
    )
    uri = Execution(2, 1).result(Port("Op-1"))
    ResultWriter(config, "mine").write(uri, ROWS)
    assert ResultReader(config).read_all(uri) == ROWS
    assert ResultReader(catalog_config).read_all(uri) == ROWS


def test_remote_signing(catalog_config: CatalogConfig) -> None:
    (results,) = catalog_config.warehouses
    signed = results.model_copy(update={"delegation": "remote-signing"})
    config = catalog_config.model_copy(update={"warehouses": [signed]})
    uri = Execution(3, 1).result(Port("Op-1"))
    ResultWriter(config, "results").write(uri, ROWS)
    assert ResultReader(config).read_all(uri) == ROWS
