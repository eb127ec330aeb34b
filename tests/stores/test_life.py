"""The life of a tenant on Azure and Google: up, tables with vended credentials, drift, destroy."""

from __future__ import annotations

import httpx
import pytest

from tests.stores.conftest import AzureStore, GoogleStore, MakeCloudTenant
from tests.tenant_project import list_changes

REFUSALS = {"adls": "AuthenticationFailed", "gcs": "Access denied by the access boundary"}
"""Part of the error of a write outside of the table."""
LOCATIONS = {"adls": "abfss://lake@acmelake.dfs.core.windows.net/", "gcs": "gs://acme-lake/"}


@pytest.fixture(params=["adls", "gcs"])
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def store(backend: str, azure: AzureStore, google: GoogleStore) -> AzureStore | GoogleStore:
    return azure if backend == "adls" else google


def test_tenant_from_up_to_destroy(
    backend: str, make_tenant: MakeCloudTenant, store: AzureStore | GoogleStore, lakekeeper: str
) -> None:
    """PyIceberg writes and reads with vended credentials; drift is found and fixed; `purge` leaves no file."""
    tenant = make_tenant(backend)

    tenant.up()
    result = tenant.run_client()

    assert result["rows"] == {"id": [1, 2, 3]}
    assert result["inside"] == "written"
    assert REFUSALS[backend] in result["outside"]
    assert result["location"].startswith(LOCATIONS[backend])
    names = store.list_names(f"{tenant.name}/executions/")
    assert any(name.endswith(".parquet") for name in names)
    assert any("/metadata/" in name for name in names)
    assert not list_changes(tenant.verb("preview", "--refresh"))

    (warehouse,) = httpx.get(f"{lakekeeper}/management/v1/warehouse", headers={"x-project-id": tenant.name}).json()[
        "warehouses"
    ]
    delete_profile = {"delete-profile": {"type": "soft", "expiration-seconds": 86400}}
    httpx.post(
        f"{lakekeeper}/management/v1/warehouse/{warehouse['id']}/delete-profile", json=delete_profile
    ).raise_for_status()
    assert {kind for _, kind, _ in list_changes(tenant.verb("preview", "--refresh"))} == {"Warehouse"}
    tenant.up("--refresh")
    assert not list_changes(tenant.verb("preview", "--refresh"))

    tenant.verb("destroy", "--yes")
    assert not store.list_names(f"{tenant.name}/executions/")
    assert not any(secret in output for output in tenant.outputs for secret in tenant.environ.values())
