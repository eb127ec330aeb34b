"""Spark jobs on Azure and Google: tables are written, maintained and read with vended credentials."""

from __future__ import annotations

import pytest

from tests.stores.conftest import AzureStore, GoogleStore, MakeCloudTenant

REFUSALS = {"adls": "AuthenticationFailed", "gcs": "Access denied by the access boundary"}
"""Part of the error of a write outside of the table."""


@pytest.mark.spark
@pytest.mark.parametrize("backend", ["adls", "gcs"])
def test_spark_reaches_its_table_only(
    backend: str, make_tenant: MakeCloudTenant, azure: AzureStore, google: GoogleStore
) -> None:
    """Rows are inserted, deleted, compacted and expired; the credential of the table writes no other file."""
    tenant = make_tenant(backend)
    tenant.up()

    result = tenant.run_spark()

    assert result["rows"] == [{"id": 1, "text": "a"}, {"id": 3, "text": "c"}]
    assert result["snapshots"] == 1
    assert result["inside"] == "written"
    assert REFUSALS[backend] in result["outside"]
    store = azure if backend == "adls" else google
    data = [name for name in store.list_names(f"{tenant.name}/executions/") if name.endswith(".parquet")]
    assert len(data) == 1  # expired snapshots have no files
    tenant.verb("destroy", "--yes")
    assert not store.list_names(f"{tenant.name}/executions/")
