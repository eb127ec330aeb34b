"""The plan of a whole tenant: kept, reviewed, refused after drift, and applied without a question."""

from __future__ import annotations

import json
import os
from typing import Any

import pyarrow as pa
import pytest

from tests.command_server import run_command
from tests.integration.tenant.conftest import MakeTenant, list_changes

pytestmark = pytest.mark.timeout(600)

UNITS = [{"name": "notebook", "runtime": "spark", "warehouse": "executions"}]


def test_tenant_is_planned_reviewed_and_applied(make_tenant: MakeTenant, lakekeeper: Any) -> None:
    tenant = make_tenant(computing_units=UNITS)
    plan = tenant.folder / "plan.json"

    planned = tenant.verb("preview", "--save-plan", str(plan))
    created = tenant.verb("up", "--plan", str(plan))

    assert list_changes(created) == list_changes(planned)
    assert (
        created["plan"] == planned["plan"] == {"file": str(plan), "sha256": created["plan"]["sha256"], "signed": True}
    )
    assert "already used at" in tenant.error("up", "--plan", str(plan))

    warehouse = created["outputs"]["warehouse_ids"]["executions"]
    tenant.spec["warehouses"][0] |= {"soft_delete_days": 7, "namespaces": ["results", "logs"]}
    tenant.spec["computing_units"] = []
    tenant.write()
    planned = tenant.verb("preview", "--refresh", "--save-plan", str(plan))
    summary = json.loads(run_command(["plan", "show", str(plan), "--json"], tenant.folder, os.environ).stdout)
    one_day = {"delete-profile": {"type": "soft", "expiration-seconds": 86400}}
    lakekeeper.post(f"/management/v1/warehouse/{warehouse}/delete-profile", json=one_day).raise_for_status()
    refused = tenant.error("up", "--plan", str(plan))

    assert {(step["op"], step["name"]) for step in summary["steps"]} >= {
        ("update", f"{tenant.name}-executions"),
        ("create", f"{tenant.name}-executions-logs"),
        ("delete", f"{tenant.name}-notebook"),
    }
    assert f"lakekeeper:Warehouse '{tenant.name}-executions': property delete_profile" in refused
    assert "Nothing was changed" in refused

    planned = tenant.verb("preview", "--refresh", "--save-plan", str(plan))
    applied = tenant.verb("up", "--plan", str(plan))
    assert list_changes(applied) == list_changes(planned)
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()


@pytest.mark.parametrize("engine", ["embedded", pytest.param("pulumi", marks=pytest.mark.pulumi_cli)])
def test_unchanged_credentials_are_sent_again(
    make_tenant: MakeTenant, request: pytest.FixtureRequest, engine: str
) -> None:
    tenant = make_tenant()
    if engine == "pulumi":
        tenant.environ = request.getfixturevalue("attached_providers")
    on_engine = ("--engine", engine, "--json")
    plan = str(tenant.folder / "plan.json")
    tenant.output("up", "--yes", *on_engine)

    planned = json.loads(tenant.output("preview", "--resend-credentials", "--save-plan", plan, *on_engine))
    sent = json.loads(tenant.output("up", "--plan", plan, "--resend-credentials", "--json"))

    expected = {("update", "Warehouse", f"{tenant.name}-executions")}
    assert list_changes(planned) == list_changes(sent) == expected
    tenant.output("preview", "--refresh", "--expect-no-changes", *on_engine)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["embedded", pytest.param("pulumi", marks=pytest.mark.pulumi_cli)])
def test_plan_refuses_to_delete_newer_data(
    make_tenant: MakeTenant, request: pytest.FixtureRequest, engine: str
) -> None:
    tenant = make_tenant()
    if engine == "pulumi":
        tenant.environ = request.getfixturevalue("attached_providers")
    on_engine = ("--engine", engine)
    staging = {"name": "staging", "namespaces": ["results"], "deletion": "purge"}
    warehouses = tenant.spec["warehouses"]
    tenant.spec["warehouses"] = [*warehouses, staging]
    tenant.write()
    tenant.output("up", "--yes", *on_engine)
    catalog = tenant.catalog("staging")
    tenant.spec["warehouses"] = warehouses
    tenant.write()
    plan = str(tenant.folder / "plan.json")

    empty = tenant.run("preview", "--save-plan", plan, *on_engine)
    table = catalog.create_table("results.flights", schema=pa.schema([("n", pa.int64())]))
    created = tenant.error("up", "--plan", plan)
    planned = tenant.run("preview", "--save-plan", plan, *on_engine)
    table.append(pa.table({"n": [1, 2, 3]}))
    appended = tenant.error("up", "--plan", plan)

    assert empty.returncode == 0, empty.stderr
    assert "deletes" not in empty.stderr
    assert f"Warehouse '{tenant.name}-staging': planned to delete nothing, now contains 1 table, " in created
    assert "Nothing was changed. Make a new plan" in created
    assert f"warning: Warehouse '{tenant.name}-staging': deletes 1 table, " in planned.stdout + planned.stderr
    assert f"Warehouse '{tenant.name}-staging': planned to delete 1 table, " in appended
    assert catalog.load_table("results.flights").scan().to_arrow().num_rows == 3

    previewed = json.loads(tenant.output("preview", "--save-plan", plan, "--json", *on_engine))
    output = run_command(["plan", "show", plan], tenant.folder, os.environ).stdout
    tenant.output("up", "--plan", plan)
    assert [message for message in previewed["messages"] if "deletes 1 table, " in message]
    assert "deletes 1 table, " in output
    assert "staging" not in tenant.output("config", "--format", "json")
