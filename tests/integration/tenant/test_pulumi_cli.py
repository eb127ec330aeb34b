"""The same tenant on the Pulumi CLI, with the sandbox's providers attached, then on the embedded engine."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.integration.tenant.conftest import LAKEWRIGHT

pytestmark = [pytest.mark.pulumi_cli, pytest.mark.timeout(600)]


def test_tenant_on_the_cli_continues_on_the_embedded_engine(
    make_tenant: Callable[..., Any], attached_providers: dict[str, str]
) -> None:
    tenant = make_tenant(computing_units=[{"name": "notebook", "runtime": "spark", "warehouse": "executions"}])
    tenant.environ = attached_providers
    pulumi = ("--engine", "pulumi")

    tenant.output("up", "--yes", *pulumi)
    tenant.output("up", "--yes", "--expect-no-changes", *pulumi)
    tenant.output("preview", "--refresh", "--expect-no-changes", *pulumi)
    tenant.up("--expect-no-changes")
    tenant.verb("preview", "--refresh", "--expect-no-changes")
    tenant.output("preview", "--refresh", "--expect-no-changes", *pulumi)
    assert tenant.catalog("executions").list_namespaces() == [("results",)]
    tenant.output("destroy", "--yes", *pulumi)


def test_heal_on_the_cli_leaves_an_edit_that_drops_a_warehouse(
    make_tenant: Callable[..., Any], attached_providers: dict[str, str]
) -> None:
    """A namespace is deleted outside the stack while the spec drops another warehouse."""
    kept_warehouse, dropped_warehouse = (
        {"name": name, "namespaces": ["results"], "deletion": "purge"} for name in ("kept", "dropped")
    )
    tenant = make_tenant(warehouses=[kept_warehouse, dropped_warehouse])
    tenant.environ = attached_providers
    tenant.output("up", "--yes", "--engine", "pulumi")
    tenant.catalog("kept").drop_namespace("results")
    other = tenant.catalog("dropped")
    tenant.spec["warehouses"] = [kept_warehouse]
    tenant.write()

    healed = tenant.run("drift", "--heal", "--yes")

    assert healed.returncode == 0, healed.stderr
    assert "not part of this: delete Warehouse" in healed.stderr
    assert tenant.catalog("kept").list_namespaces() == [("results",)]
    assert other.list_namespaces() == [("results",)]


def test_deletion_guard_stops_the_cli_too(make_tenant: Callable[..., Any], attached_providers: dict[str, str]) -> None:
    tenant = make_tenant(warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": "protect"}])
    tenant.environ = attached_providers
    tenant.output("up", "--yes", "--engine", "pulumi")
    tenant.catalog("executions").create_table("results.flights", schema=pa.schema([("n", pa.int64())]))

    completed = tenant.run("destroy", "--yes", "--engine", "pulumi")

    assert completed.returncode != 0
    assert "flights" in completed.stdout + completed.stderr
    tenant.output("preview", "--refresh", "--expect-no-changes", "--engine", "pulumi")


def test_cli_preview_refuses_to_drop_a_full_warehouse(
    make_tenant: Callable[..., Any], attached_providers: dict[str, str]
) -> None:
    protected = {"name": "executions", "namespaces": ["results"], "deletion": "protect"}
    tenant = make_tenant(warehouses=[protected])
    tenant.environ = attached_providers
    tenant.output("up", "--yes", "--engine", "pulumi")
    tenant.catalog("executions").create_table("results.flights", schema=pa.schema([("n", pa.int64())]))
    tenant.spec["warehouses"] = [protected | {"name": "curated"}]
    tenant.write()

    for command in (["preview"], ["up", "--yes"]):
        refused = tenant.run(*command, "--engine", "pulumi")
        assert refused.returncode != 0
        assert "HoldsTablesError: warehouse `executions` is no longer in the spec" in refused.stdout + refused.stderr

    tenant.spec["warehouses"] = [protected | {"name": "curated", "renamed_from": "executions"}]
    tenant.write()
    tenant.output("up", "--yes", "--engine", "pulumi")
    assert tenant.catalog("curated").list_tables("results") == [("results", "flights")]
    del tenant.spec["warehouses"][0]["renamed_from"]
    tenant.write()
    tenant.output("preview", "--refresh", "--expect-no-changes", "--engine", "pulumi")


def test_cli_keeps_retained_data_and_its_key(
    make_tenant: Callable[..., Any], attached_providers: dict[str, str], aws: Callable[..., Any]
) -> None:
    retained_warehouse = {"name": "kept", "namespaces": ["results"], "deletion": "retain"}
    purged_warehouse = {"name": "purged", "namespaces": ["results"], "deletion": "purge"}
    tenant = make_tenant(warehouses=[retained_warehouse, purged_warehouse])
    tenant.environ = attached_providers
    storage = {"backend": "aws", "bucket": tenant.bucket, "encryption": {"kms": "own"}}
    tenant.spec["storage"] = {"main": storage}
    tenant.write()
    tenant.output("preview", "--engine", "pulumi")
    tenant.output("up", "--yes", "--engine", "pulumi")
    catalog = tenant.catalog("kept")
    rows = pa.table({"n": [1, 2, 3]})
    catalog.create_table("results.flights", schema=rows.schema).append(rows)
    tenant.spec |= {"warehouses": [purged_warehouse], "storage": {"main": storage | {"encryption": {"kms": "s3"}}}}
    tenant.write()

    refused = tenant.run("preview", "--engine", "pulumi")
    tenant.spec["storage"] = {"main": storage}
    tenant.write()
    plan = tenant.folder / "plan.json"
    tenant.output("preview", "--engine", "pulumi", "--save-plan", str(plan))
    reviewed = subprocess.check_output([LAKEWRIGHT, "plan", "show", str(plan)], text=True)
    removed = tenant.output("up", "--plan", str(plan))
    destroyed = tenant.output("destroy", "--yes", "--engine", "pulumi")

    retained_line, purged_line = (f"Warehouse  {tenant.name}-{name}  " for name in ("kept", "purged"))
    assert f"{retained_line}retain\n" in reviewed
    assert f"{retained_line}retained\n" in removed
    assert f"{purged_line}deleted\n" in destroyed
    for name in (f"Project  {tenant.name}", f"Bucket  {tenant.name}-main", f"TenantBucket  {tenant.name}-main"):
        assert f"{name}  retained\n" in destroyed
    assert "KeyInUseError" in refused.stdout + refused.stderr
    assert catalog.load_table("results.flights").scan().to_arrow()["n"].to_pylist() == [1, 2, 3]
    versions = aws("s3").list_object_versions(Bucket=tenant.bucket, Prefix=f"{tenant.name}/purged/")
    assert "Versions" not in versions
