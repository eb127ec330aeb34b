"""Texera on a deployed tenant: network paths and registration of its units, and variables for a single-node Texera."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.integration.tenant.conftest import MakeTenant, Tenant
from tests.real_servers import leave_out
from tests.texera_server import serve_texera

UNIT = {"name": "workflows", "runtime": "texera", "warehouses": "all"}
SERVICES = {
    "database": {
        "address": "db.texera.svc:5432/texera_db",
        "username": "texera_unit",
        "password": {"name": "texera-unit", "key": "password"},
    },
    "egress": ["http://file-service.texera.svc:9092"],
}
"""Settings of an environment with services of Texera that units reach."""


@pytest.fixture
def tenant(make_tenant: MakeTenant) -> Tenant:
    tenant = make_tenant(computing_units=[UNIT])
    tenant.environ["TEXERA_TOKEN"] = "token"
    return tenant


def read_egress_rules(tenant: Tenant) -> dict[str, list[dict[str, Any]]]:
    """Return the egress rules of each rendered NetworkPolicy by its name."""
    manifests = [yaml.safe_load(file.read_text()) for file in (tenant.folder / "rendered").rglob("*.yaml")]
    policies = [manifest for manifest in manifests if manifest["kind"] == "NetworkPolicy"]
    return {policy["metadata"]["name"]: policy["spec"].get("egress", []) for policy in policies}


def test_network_policy_allows_services_of_texera(make_tenant: MakeTenant) -> None:
    """A unit that cannot reach Texera's database ends at its start. Other pods of the tenant need no such path."""
    spark = {"name": "notebook", "runtime": "spark", "warehouse": "executions"}
    maintenance = {"schedule": "0 2 * * *", "jobs": ["statistics"]}
    tenant = make_tenant(computing_units=[UNIT, spark], maintenance=maintenance)
    if tenant.real and tenant.real.kubeconfig:
        leave_out("reads manifests, which are written where there is no cluster")
    file = tenant.folder / "environments" / "sandbox.yaml"
    environment = yaml.safe_load(file.read_text())
    environment["kubernetes"]["texera"] = SERVICES
    file.write_text(yaml.safe_dump(environment))

    tenant.up()

    namespace = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "texera"}}}
    rules = [{"to": [namespace], "ports": [{"protocol": "TCP", "port": port}]} for port in (5432, 9092)]
    egress = read_egress_rules(tenant)
    assert [rule for rule in rules if rule not in egress["workflows"]] == []
    assert not [rule for name in ("notebook", "maintenance", "deny-all") for rule in egress[name] if rule in rules]


def test_units_are_registered_at_texera(tenant: Tenant) -> None:
    with serve_texera() as texera:
        command = ("texera", "register", "--url", texera.url)
        assert "run `lakewright up --stack" in tenant.error(*command)
        tenant.up()

        first = tenant.run(*command)
        tenant.output("config", "set", "--secret", "texera_token", "token")
        second = json.loads(tenant.output(*command, "--token", "config:texera_token", "--json"))
        texera.local_units, texera.created = False, []
        refused = tenant.error(*command)

    uri = f"workflows.computing-units.tenant-{tenant.name}.svc:8085"
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
