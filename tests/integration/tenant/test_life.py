"""A tenant on the embedded engine: deployed, unchanged, drifted, restored, purged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import yaml
from lakewright.names.object_names import names_of_tenant

from tests.integration.tenant.conftest import list_changes
from tests.real_servers import leave_out

pytestmark = pytest.mark.timeout(300)

UNITS = [
    {"name": "notebook", "runtime": "spark", "warehouse": "executions"},
    {"name": "workflows", "runtime": "texera", "warehouses": "all"},
]


def test_tenant_is_deployed_used_and_unchanged(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    tenant = make_tenant(computing_units=UNITS)

    outputs = tenant.up()["outputs"]

    assert set(outputs) == {"warehouse_ids", "catalog_config", "role_arns", "computing_units", "texera_register"}
    assert outputs["computing_units"] == ["notebook", "workflows"]
    role = f"arn:aws:iam::123456789012:role/lakewright/lakewright.{tenant.name}.executions"
    assert outputs["role_arns"] == ({} if tenant.real else {"executions": role})
    table = tenant.catalog("executions").create_table("results.flights", schema=pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1, 2, 3]}))
    assert table.scan().to_arrow()["n"].to_pylist() == [1, 2, 3]
    contents = aws("s3").list_objects_v2(Bucket=tenant.bucket, Prefix=tenant.name)["Contents"]
    assert {entry["Key"].split("/")[0] for entry in contents} == {tenant.name}

    assert list_changes(tenant.up()) == set()
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()


def test_idle_unit_waits_for_the_activator(make_tenant: Callable[..., Any]) -> None:
    """The Service of the unit leads to a port of the activator."""
    tenant = make_tenant(computing_units=[UNITS[0] | {"idle_after": "30m"}])
    tenant.up()

    resources = json.loads(tenant.output("stack", "export"))["deployment"]["resources"]

    (unit,) = (resource for resource in resources if resource["type"] == "lakewright:index:ComputingUnit")
    urns = {resource["urn"] for resource in resources if resource["type"] == "kubernetes:apps/v1:Deployment"}
    assert [urn for urn in urns & set(unit["dependencies"]) if urn.endswith("-activator")]


def test_bucket_is_private_versioned_encrypted_and_tidied(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    tenant = make_tenant()
    tenant.spec["storage"]["main"] |= {"noncurrent_version_days": 9, "abort_incomplete_uploads_days": 2}
    tenant.write()
    tenant.up()
    s3, bucket = aws("s3"), {"Bucket": tenant.bucket}

    assert all(s3.get_public_access_block(**bucket)["PublicAccessBlockConfiguration"].values())
    assert s3.get_bucket_versioning(**bucket)["Status"] == "Enabled"
    owner = s3.get_bucket_ownership_controls(**bucket)["OwnershipControls"]["Rules"]
    assert owner == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    (rule,) = s3.get_bucket_encryption(**bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert rule["BlockedEncryptionTypes"]["EncryptionType"] == ["SSE-C"]
    rules = {item["ID"]: item for item in s3.get_bucket_lifecycle_configuration(**bucket)["Rules"]}
    assert rules["incomplete-uploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 2}
    assert rules["old-versions"]["NoncurrentVersionExpiration"]["NoncurrentDays"] == 9


def test_allowed_keys_of_customers_are_drift(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    """Objects with a key that only its owner has would be lost to the tenant."""
    tenant = make_tenant()
    tenant.up()
    s3, bucket = aws("s3"), {"Bucket": tenant.bucket}
    configuration = s3.get_bucket_encryption(**bucket)["ServerSideEncryptionConfiguration"]
    configuration["Rules"][0]["BlockedEncryptionTypes"] = {"EncryptionType": ["NONE"]}
    s3.put_bucket_encryption(**bucket, ServerSideEncryptionConfiguration=configuration)

    kinds = {kind for _, kind, _ in list_changes(tenant.verb("preview", "--refresh"))}
    assert kinds == {"BucketServerSideEncryptionConfiguration"}
    tenant.up("--refresh")

    (rule,) = s3.get_bucket_encryption(**bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["BlockedEncryptionTypes"]["EncryptionType"] == ["SSE-C"]


def test_drift_is_reported_exactly_and_restored(make_tenant: Callable[..., Any], lakekeeper: Any) -> None:
    tenant = make_tenant(
        warehouses=[
            {"name": "executions", "namespaces": ["results", "logs"], "soft_delete_days": 7, "deletion": "purge"}
        ]
    )
    warehouse = tenant.up()["outputs"]["warehouse_ids"]["executions"]
    one_day = {"delete-profile": {"type": "soft", "expiration-seconds": 86400}}
    lakekeeper.post(f"/management/v1/warehouse/{warehouse}/delete-profile", json=one_day).raise_for_status()
    lakekeeper.delete(f"/catalog/v1/{warehouse}/namespaces/logs").raise_for_status()

    preview = tenant.verb("preview", "--refresh")

    assert list_changes(preview) == {
        ("update", "Warehouse", f"{tenant.name}-executions"),
        ("create", "Namespace", f"{tenant.name}-executions-logs"),
    }
    (drifted,) = (step for step in preview["steps"] if step["op"] == "update")
    assert drifted["keys"] == ["delete_profile"]
    assert tenant.run("preview", "--refresh", "--expect-no-changes", "--engine", "embedded").returncode == 7
    tenant.up("--refresh")
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()


def test_each_unit_is_rendered_with_separate_access(make_tenant: Callable[..., Any]) -> None:
    tenant = make_tenant(computing_units=UNITS, maintenance={"schedule": "0 2 * * *", "jobs": ["statistics"]})
    if tenant.real and tenant.real.kubeconfig:
        leave_out("reads manifests, which are written where there is no cluster")
    tenant.up()

    rendered = {
        (manifest["kind"], manifest["metadata"]["name"]): manifest
        for file in (tenant.folder / "rendered").rglob("*.yaml")
        for manifest in [yaml.safe_load(file.read_text())]
    }

    assert set(rendered) == {
        *((kind, f"tenant-{tenant.name}") for kind in ("Namespace", "ResourceQuota", "LimitRange")),
        ("NetworkPolicy", "deny-all"),
        ("Service", "computing-units"),
        *(
            (kind, name)
            for kind in ("ServiceAccount", "NetworkPolicy", "Service", "Deployment")
            for name in ("notebook", "workflows")
        ),
        *((kind, "maintenance") for kind in ("ServiceAccount", "NetworkPolicy", "CronJob")),
        ("ConfigMap", "maintenance-catalog"),
        ("ConfigMap", "notebook-catalog"),
        ("Secret", "notebook-connect"),
        ("ConfigMap", "workflows-catalog"),
    }
    reserved_names = {name for _, name in rendered if not name.startswith(("notebook", "workflows"))}
    assert reserved_names == names_of_tenant(tenant.name), "names that belong to no unit are reserved"
    assert rendered["ServiceAccount", "notebook"]["automountServiceAccountToken"] is False
    nightly = rendered["CronJob", "maintenance"]["spec"]
    assert (nightly["schedule"], nightly["concurrencyPolicy"]) == ("0 2 * * *", "Forbid")
    (container,) = nightly["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][-2:] == ["--job", "statistics"]
    identity = tenant.up()["outputs"]["warehouse_ids"]["executions"]
    for name in ("notebook-catalog", "maintenance-catalog"):
        assert identity in rendered["ConfigMap", name]["data"]["catalog.json"]


def test_changed_spec_changes_only_what_it_declares(make_tenant: Callable[..., Any]) -> None:
    tenant = make_tenant()
    before = tenant.up()["outputs"]
    tenant.spec["warehouses"][0] |= {"soft_delete_days": 3, "namespaces": ["results", "sales.daily"]}
    tenant.write()

    result = tenant.up()

    assert list_changes(result) == {
        ("update", "Warehouse", f"{tenant.name}-executions"),
        ("update", "TenantRecord", tenant.name),
        ("create", "Namespace", f"{tenant.name}-executions-sales"),
        ("create", "Namespace", f"{tenant.name}-executions-sales.daily"),
    }
    assert result["outputs"]["warehouse_ids"] == before["warehouse_ids"]
