"""Each storage backend with each delegation and both designs of computing units: up, verify, drift, destroy.

By default one tenant has all twelve combinations. The long form deploys a tenant for each.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.matrix_tenant import ALL, Combination, MatrixTenant, aws_client, name_warehouse
from tests.tenant_project import list_changes

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("verify"), pytest.mark.timeout(600)]

CASES = [[combination] for combination in ALL] if os.environ.get("LAKEWRIGHT_FULL") else [ALL]
SOFT = {"delete-profile": {"type": "soft", "expiration-seconds": 86400}}


@pytest.mark.parametrize("combinations", CASES, ids=lambda case: "-".join(case[0]) if len(case) == 1 else "all")
def test_life_of_each_combination(
    combinations: list[Combination],
    project: Path,
    sandbox: Sandbox,
    stack_http: httpx.Client,
    new_tenant_name: Callable[[], str],
) -> None:
    matrix = MatrixTenant(project, sandbox, new_tenant_name(), combinations)
    tenant = matrix.tenant
    ids = tenant.up()["outputs"]["warehouse_ids"]
    assert set(ids) == set(matrix.names)

    written = {
        check["warehouse"]: check["evidence"] for check in matrix.verify()["checks"] if check["probe"] == "table"
    }
    assert set(written) == set(matrix.names)
    visible_warehouses = {
        combination: [warehouse.name for warehouse in config.warehouses]
        for combination, config in matrix.units().items()
    }
    assert visible_warehouses == {
        combination: matrix.list_visible_warehouses(combination) for combination in combinations
    }

    for warehouse in ids.values():
        stack_http.post(f"/management/v1/warehouse/{warehouse}/delete-profile", json=SOFT).raise_for_status()
    drifted = {("update", "Warehouse", f"{tenant.name}-{warehouse}") for warehouse in matrix.names}
    assert list_changes(tenant.verb("preview", "--refresh")) == drifted
    tenant.up("--refresh")
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()
    matrix.verify()

    tenant.verb("destroy", "--yes")
    assert tenant.list_resource_kinds() <= {"Stack"}
    remaining_buckets = {bucket["Name"] for bucket in aws_client(sandbox, "s3").list_buckets()["Buckets"]}
    foreign_buckets = {
        f"{tenant.name}-{name_warehouse(combination)}" for combination in combinations if combination[0] != "aws"
    }
    assert {bucket for bucket in remaining_buckets if bucket.startswith(f"{tenant.name}-")} == foreign_buckets
