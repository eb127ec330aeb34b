"""Commands for Texera on a deployed tenant: registration of its units, and variables for a single-node Texera."""

from __future__ import annotations

import json

import pytest

from tests.integration.tenant.conftest import MakeTenant, Tenant
from tests.texera_server import serve_texera

UNIT = {"name": "workflows", "runtime": "texera", "warehouses": "all"}


@pytest.fixture
def tenant(make_tenant: MakeTenant) -> Tenant:
    tenant = make_tenant(computing_units=[UNIT])
    tenant.environ["TEXERA_TOKEN"] = "token"
    return tenant


def test_units_are_registered_at_texera(tenant: Tenant) -> None:
    with serve_texera() as texera:
        command = ("texera", "register", "--url", texera.url)
        assert "run `lakewright up --stack" in tenant.error(*command)
        tenant.up()

        first = tenant.run(*command)
        second = json.loads(tenant.output(*command, "--json"))
        texera.local_units, texera.created = False, []
        refused = tenant.error(*command)

    uri = f"workflows.computing-units.tenant-{tenant.name}.svc.cluster.local:8085"
    assert first.returncode == 0
    assert f"workflows  {uri}  registered as 1" in first.stdout
    assert "Texera cannot offer this stack's warehouses in its dashboard" in first.stderr
    assert second == [{"name": "workflows", "uri": uri, "cuid": 1, "is_new": False}]
    assert "COMPUTING_UNIT_LOCAL_ENABLED=true" in refused
    assert "env:NAME" in tenant.error(*command, "--token", "the-token-itself")


def test_single_node_texera_gets_its_variables(tenant: Tenant) -> None:
    tenant.up()

    run = tenant.run("config", "--format", "texera")

    assert "`lakekeeper-init` creates a warehouse of this name in Texera's own Lakekeeper" in run.stderr
    variables = dict(line.split("=", 1) for line in run.stdout.splitlines())
    config = tenant.catalog_config()
    assert variables["STORAGE_ICEBERG_CATALOG_TYPE"] == "rest"
    assert variables["STORAGE_ICEBERG_CATALOG_REST_URI"] == config.uri
    assert variables["STORAGE_ICEBERG_CATALOG_REST_WAREHOUSE_NAME"] == f"{tenant.name}/executions"
    assert variables["STORAGE_ICEBERG_TABLE_RESULT_NAMESPACE"] == "operator-port-result"
