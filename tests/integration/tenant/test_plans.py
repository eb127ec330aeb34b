"""The plan of a whole tenant: kept, reviewed, refused after drift, and applied without a question."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from .conftest import LAKEWRIGHT, MakeTenant, changes_of

pytestmark = pytest.mark.timeout(300)

UNITS = [{"name": "notebook", "runtime": "spark", "warehouse": "executions"}]


def test_tenant_is_planned_reviewed_and_applied(make_tenant: MakeTenant, lakekeeper: Any) -> None:
    tenant = make_tenant(computing_units=UNITS)
    plan = tenant.folder / "plan.json"

    planned = tenant.verb("preview", "--save-plan", str(plan))
    created = tenant.verb("up", "--plan", str(plan))

    assert changes_of(created) == changes_of(planned)
    assert (
        created["plan"] == planned["plan"] == {"file": str(plan), "sha256": created["plan"]["sha256"], "signed": True}
    )
    assert "already used at" in tenant.error("up", "--plan", str(plan))

    warehouse = created["outputs"]["warehouse_ids"]["executions"]
    tenant.spec["warehouses"][0] |= {"soft_delete_days": 7, "namespaces": ["results", "logs"]}
    tenant.spec["computing_units"] = []
    tenant.write()
    planned = tenant.verb("preview", "--refresh", "--save-plan", str(plan))
    summary = json.loads(subprocess.check_output([LAKEWRIGHT, "plan", "show", str(plan), "--json"]))
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
    assert changes_of(applied) == changes_of(planned)
    assert changes_of(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()
