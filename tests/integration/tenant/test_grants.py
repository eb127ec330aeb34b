"""A tenant's grants and the owner of its maintenance, on a server that enforces grants."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from lakewright.ownership.record_role import RECORD_ROLE
from lakewright_spark.errors import WarehouseRefusedError
from lakewright_spark.run.permissions import choose_run_warehouse

from tests.integration.tenant.conftest import write_environment

GRANTS = [
    {"to": "role:analysts", "privilege": "select", "on": {"warehouse": "executions"}},
    {"to": "user:oidc~1f2e", "privilege": "modify", "on": {"warehouse": "executions", "namespace": "results"}},
    {"to": "role:analysts", "privilege": "describe", "on": {"project": True}},
    {"to": "user:oidc~ben", "privilege": "create", "on": {"warehouse": "executions"}},
    {"to": "user:oidc~ben", "privilege": "modify", "on": {"warehouse": "executions"}},
    {"to": "role:auditors", "privilege": "describe", "on": {"warehouse": "executions", "table": "results.runs"}},
]
QUEUES = ("expire_snapshots", "remove_orphan_files")
MAINTENANCE = {
    "schedule": "0 2 * * *",
    "parallel": 2,
    "server": {"executions": {"expire_snapshots": {"max-snapshot-age-ms": 86_400_000}, "remove_orphan_files": False}},
}


def test_grants_are_deployed_and_destroyed_with_the_tenant(make_tenant: Any, openfga: httpx.Client) -> None:
    tables = [{"name": "executions.results.runs", "columns": [{"name": "id", "type": "long"}]}]
    owned = {"name": "executions", "namespaces": ["results"], "deletion": "purge", "owner": "user:oidc~ann"}
    tenant = make_tenant(grants=GRANTS, tables=tables, warehouses=[owned], maintenance=MAINTENANCE)
    write_environment(tenant, openfga)
    openfga.headers["x-project-id"] = tenant.name

    result = tenant.up()
    output = "".join(tenant.outputs).lower()
    for warning in ("could not check", "whether the credential has changed", "whether the server has the queue"):
        assert warning not in output
    roles = {role["name"]: role["id"] for role in openfga.get("/management/v1/role").json()["roles"]}
    assert set(roles) == {"analysts", "auditors", RECORD_ROLE}
    permissions = "/management/v1/permissions"
    warehouse = f"{permissions}/warehouse/{result['outputs']['warehouse_ids']['executions']}/assignments"
    assert {"type": "select", "role": roles["analysts"]} in openfga.get(warehouse).json()["assignments"]
    of_project = openfga.get(f"{permissions}/project/assignments").json()["assignments"]
    assert {"type": "describe", "role": roles["analysts"]} in of_project

    config = tenant.catalog_config()
    for submitter in ("user:oidc~ann", "user:oidc~ben"):
        assert choose_run_warehouse(config, submitter, None).name == "executions"
    for submitter in ("user:oidc~1f2e", "role:analysts", None):
        with pytest.raises(WarehouseRefusedError, match="who has no grant to write there"):
            choose_run_warehouse(config, submitter, "executions")

    # Both the server and the jobs get the owner of snapshots.
    queues = f"/management/v1/warehouse/{result['outputs']['warehouse_ids']['executions']}/task-queue"
    expiry, orphans = (openfga.get(f"{queues}/{name}/config").json() for name in QUEUES)
    assert expiry["queue-config"]["enable-expire-snapshots"] is True
    assert expiry["queue-config"]["max-snapshot-age-ms"] == 86_400_000
    assert orphans["queue-config"]["enable-remove-orphan-files"] is False
    assert config.warehouse("executions").server_jobs == ("snapshot-expiration",)

    deletions = {"deletes": [{"type": "select", "role": roles["analysts"]}]}
    openfga.post(warehouse, json=deletions).raise_for_status()
    drift = tenant.verb("preview", "--refresh")
    assert [step["name"] for step in drift["steps"] if step["op"] == "create"] == [
        f"{tenant.name}-role-analysts-select-warehouse-executions"
    ]
    assert tenant.up("--refresh")["changes"]["create"] == 1
    assert tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}

    tenant.verb("destroy", "--yes")
    assert openfga.get("/management/v1/project").status_code == 403


@pytest.mark.stand_in("starts a separate server")
def test_first_up_on_an_empty_server_creates_users(make_tenant: Any, empty_server: httpx.Client) -> None:
    """No user may be provisioned before the bootstrap ended. Clients determine the subjects in this environment."""
    maintenance = {"schedule": "0 2 * * *", "identity": {"client_id": "acme-maintenance"}}
    unit = {"name": "cu", "runtime": "spark", "warehouse": "executions", "identity": {"client_id": "acme-cu"}}
    tenant = make_tenant(maintenance=maintenance, computing_units=[unit])
    jobs = {"kind": "client-credentials", "token_url": "https://idp.example/token", "client_id": "jobs-{tenant}"}
    write_environment(
        tenant,
        empty_server,
        bootstrap=True,
        jobs_auth=jobs | {"client_secret": "file:/run/clients/{tenant}"},
        jobs_subject="{client_id}",
    )

    early = empty_server.post("/management/v1/user", json={"id": "oidc~x", "name": "x", "user-type": "application"})
    assert early.status_code == 403

    tenant.up()

    resources = json.loads(tenant.output("stack", "export"))["deployment"]["resources"]
    users = [resource for resource in resources if resource["type"].endswith(":User")]
    project, bootstrap = (
        next(resource for resource in resources if resource["type"].endswith(f":{kind}"))
        for kind in ("Project", "Bootstrap")
    )
    assert bootstrap["urn"] in project["dependencies"]
    assert [project["urn"] in user["dependencies"] for user in users] == [True, True]
    registered_users = empty_server.get("/management/v1/user").json()["users"]
    assert {"oidc~acme-maintenance", "oidc~acme-cu"} <= {user["id"] for user in registered_users}
    assert tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}
