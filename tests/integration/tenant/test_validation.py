"""`lakewright preview --validate` reports what would stop a tenant before anything is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.tenant.conftest import MakeTenant, Tenant


def validation(tenant: Tenant) -> tuple[int, dict[str, Any]]:
    done = tenant.run("preview", "--validate", "--engine", "embedded", "--json")
    printed = json.loads(done.stdout)
    assert printed["exit"] == done.returncode
    (report,) = printed["validation"]
    return done.returncode, {check["name"]: check for check in report["checks"]} | {"messages": printed["messages"]}


@pytest.mark.since("0.14")  # Older servers have no dry run.
def test_tenant_is_validated_before_and_after_its_creation(make_tenant: MakeTenant) -> None:
    tenant = make_tenant()
    code, checks = validation(tenant)
    assert code == 0
    assert checks["name"]["status"] == checks["overlap"]["status"] == "passed"
    assert checks["storage"]["status"] == "skipped"

    tenant.up()

    code, checks = validation(tenant)
    assert code == 0
    assert checks["server: vended-credentials-scope-enforced"]["status"] == "passed"


def test_conflicts_fail_the_preview_by_name(make_tenant: MakeTenant, aws: Callable[..., Any]) -> None:
    first = make_tenant()
    first.up()
    aws("s3").delete_bucket_tagging(Bucket=first.bucket)  # With its mark, the bucket is refused before the validation.
    second = make_tenant()
    second.spec["storage"]["main"]["bucket"] = first.bucket
    second.spec["warehouses"][0]["key_prefix"] = f"{first.name}/executions/below"
    # A purged warehouse at such a place is refused before the validation.
    second.spec["warehouses"][0]["deletion"] = "protect"
    second.write()

    code, checks = validation(second)

    assert code == 1
    assert checks["overlap"]["status"] == "failed"
    assert f"of project {first.name}" in checks["overlap"]["reason"]
    assert f"error: {second.name}/executions: overlap: failed: {checks['overlap']['reason']}" in checks["messages"]
    text = second.run("preview", "--validate", "--engine", "embedded").stdout
    assert "executions: name: passed" in text
