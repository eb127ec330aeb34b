"""A bucket's data and its key are kept as the spec's `deletion` requires, through all changes of the spec."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lakewright.ownership.mark import MARK_TAGS

from tests.command_server import run_command
from tests.real_servers import RealServers
from tests.tenant_project import list_changes

pytestmark = pytest.mark.timeout(300)

ROWS = pa.table({"n": [1, 2, 3]})
KEPT = {"name": "kept", "namespaces": ["results"], "deletion": "retain"}
PURGED = {"name": "purged", "namespaces": ["results"], "deletion": "purge"}


def fill(tenant: Any, warehouse: str) -> Any:
    """Create a table with three rows in a warehouse; return the catalog that reads it."""
    catalog = tenant.catalog(warehouse)
    catalog.create_table("results.flights", schema=ROWS.schema).append(ROWS)
    return catalog


def read(catalog: Any) -> list[int]:
    return catalog.load_table("results.flights").scan().to_arrow()["n"].to_pylist()


def keys(aws: Callable[..., Any], bucket: str, prefix: str = "") -> list[str]:
    """Return the keys of all versions and delete markers."""
    page = aws("s3").list_object_versions(Bucket=bucket, Prefix=prefix)
    return [entry["Key"] for entry in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]]


def buckets(aws: Callable[..., Any]) -> list[str]:
    return [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]


def declare(tenant: Any, *warehouses: dict[str, Any]) -> None:
    tenant.spec["warehouses"] = list(warehouses)
    tenant.write()


@pytest.mark.long
def test_retained_data_outlives_its_storage_in_the_spec(
    make_tenant: Callable[..., Any], aws: Callable[..., Any], lakekeeper: Any, real: RealServers | None
) -> None:
    tenant = make_tenant(warehouses=[KEPT, PURGED])
    tenant.up()
    catalog = fill(tenant, "kept")
    fill(tenant, "purged")
    declare(tenant, PURGED)
    plan = tenant.folder / "plan.json"
    tenant.verb("preview", "--save-plan", str(plan))
    reviewed = json.loads(run_command(["plan", "show", str(plan), "--json"], tenant.folder, os.environ).stdout)
    removed = tenant.verb("up", "--plan", str(plan))

    destroyed = tenant.verb("destroy", "--yes")

    for document in (reviewed, removed):
        assert ("retain", "Warehouse", f"{tenant.name}-kept") in list_changes(document)
        assert document["changes"]["retain"] == reviewed["changes"]["retain"]
    assert ("delete", "Warehouse", f"{tenant.name}-purged") in list_changes(destroyed)
    assert ("retain", "Project", tenant.name) in list_changes(destroyed)
    assert read(catalog) == [1, 2, 3]
    assert keys(aws, tenant.bucket, f"{tenant.name}/purged/") == []
    if not real:  # Settings of AWS buckets, which other stores lack.
        assert aws("s3").get_public_access_block(Bucket=tenant.bucket)
    projects = lakekeeper.get("/management/v1/project-list").json()["projects"]
    assert tenant.name in [project["project-id"] for project in projects]


@pytest.mark.long
def test_retained_data_outlives_a_return_without_adopt(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    """The warehouse returns to the spec, is refused since it exists, and leaves again."""
    tenant = make_tenant(warehouses=[KEPT, PURGED])
    tenant.up()
    catalog = fill(tenant, "kept")
    declare(tenant, PURGED)
    tenant.up()
    declare(tenant, KEPT | {"deletion": "purge"}, PURGED)
    refused = tenant.run("up", "--yes", "--engine", "embedded")
    assert refused.returncode != 0
    assert re.search("already exists|exists already", refused.stdout + refused.stderr)
    declare(tenant, PURGED)
    tenant.up()

    tenant.verb("destroy", "--yes")

    assert read(catalog) == [1, 2, 3]
    assert tenant.bucket in buckets(aws)


@pytest.mark.long
def test_retained_warehouse_is_adopted_and_purged(
    make_tenant: Callable[..., Any], aws: Callable[..., Any], lakekeeper: Any
) -> None:
    """Its `deletion` applies again after the adoption: all of the tenant is deleted."""
    tenant = make_tenant(warehouses=[KEPT, PURGED])
    tenant.up()
    fill(tenant, "kept")
    declare(tenant, PURGED)
    tenant.up()
    purged_again = KEPT | {"deletion": "purge"}
    declare(tenant, purged_again | {"adopt": True}, PURGED)
    tenant.up()
    spent = tenant.run("preview", "--engine", "embedded")
    message = spent.stdout + spent.stderr
    assert message.count("`adopt` has nothing left to take over") == 1, message
    declare(tenant, purged_again, PURGED)
    tenant.up()

    tenant.verb("destroy", "--yes")

    assert tenant.bucket not in buckets(aws)
    projects = lakekeeper.get("/management/v1/project-list").json()["projects"]
    assert tenant.name not in [project["project-id"] for project in projects]


@pytest.mark.long
def test_purged_warehouse_leaves_no_old_version(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    tenant = make_tenant(warehouses=[KEPT, PURGED])
    tenant.up()
    catalog = fill(tenant, "kept")
    fill(tenant, "purged")
    declare(tenant, KEPT)

    tenant.up()

    assert keys(aws, tenant.bucket, f"{tenant.name}/purged/") == []
    assert read(catalog) == [1, 2, 3]


@pytest.mark.stand_in("looks into the bucket that the stack makes")
def test_destroy_refuses_data_outside_purged_warehouses(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    """An example are files of a formerly protected warehouse, which the state does not have."""
    tenant = make_tenant(warehouses=[PURGED])
    tenant.up()
    catalog = fill(tenant, "purged")
    aws("s3").put_object(Bucket=tenant.bucket, Key=f"{tenant.name}/earlier/data.parquet", Body=b"1")

    refused = tenant.run("destroy", "--yes", "--engine", "embedded")

    message = refused.stdout + refused.stderr
    assert refused.returncode != 0
    assert f"bucket `{tenant.bucket}` at {tenant.sandbox.aws.endpoint} holds 1 object" in message
    assert f"{tenant.name}/earlier/data.parquet" in message
    assert "Traceback" not in message
    assert read(catalog) == [1, 2, 3]
    for version in aws("s3").list_object_versions(Bucket=tenant.bucket, Prefix=f"{tenant.name}/earlier/")["Versions"]:
        aws("s3").delete_object(Bucket=tenant.bucket, Key=version["Key"], VersionId=version["VersionId"])
    tenant.verb("destroy", "--yes")
    assert tenant.bucket not in buckets(aws)


def encrypt(tenant: Any, kms: str) -> None:
    tenant.spec["storage"]["main"]["encryption"] = {"kms": kms}
    tenant.write()


def key_state(aws: Callable[..., Any], bucket: str) -> str:
    """Return the state of the only key that was ever made for a bucket."""
    kms = aws("kms")
    described = [kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"] for key in kms.list_keys()["Keys"]]
    (state,) = [item["KeyState"] for item in described if item["Description"] == f"Encrypts bucket {bucket}"]
    return state


@pytest.mark.long
def test_own_key_is_kept_while_objects_need_it(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    """Old versions of the catalog's probe objects count, which remain after the table's files are deleted."""
    tenant = make_tenant(warehouses=[PURGED | {"deletion": "protect"}])
    encrypt(tenant, "own")
    tenant.up()
    catalog = fill(tenant, "purged")
    encrypt(tenant, "s3")

    for command in (["preview"], ["up", "--yes"]):
        refused = tenant.run(*command, "--engine", "embedded")
        assert refused.returncode != 0
        assert f"KeyInUseError: bucket `{tenant.bucket}`" in refused.stdout + refused.stderr

    assert key_state(aws, tenant.bucket) == "Enabled"
    assert read(catalog) == [1, 2, 3]
    (rule,) = aws("s3").get_bucket_encryption(Bucket=tenant.bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    catalog.purge_table("results.flights")
    page = aws("s3").list_object_versions(Bucket=tenant.bucket)
    for entry in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
        aws("s3").delete_object(Bucket=tenant.bucket, Key=entry["Key"], VersionId=entry["VersionId"])
    tenant.up()
    assert key_state(aws, tenant.bucket) == "PendingDeletion"


@pytest.mark.long
def test_key_is_deleted_with_its_bucket_and_kept_with_its_data(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    purged = make_tenant(warehouses=[PURGED])
    encrypt(purged, "own")
    purged.up()
    fill(purged, "purged")
    retained = make_tenant(warehouses=[KEPT, PURGED])
    encrypt(retained, "own")
    retained.up()
    catalog = fill(retained, "kept")
    declare(retained, PURGED)
    retained.up()

    purged.verb("destroy", "--yes")
    retained.verb("destroy", "--yes")

    assert purged.bucket not in buckets(aws)
    assert (key_state(aws, purged.bucket), key_state(aws, retained.bucket)) == ("PendingDeletion", "Enabled")
    assert f"alias/{purged.bucket}" not in [alias["AliasName"] for alias in aws("kms").list_aliases()["Aliases"]]
    assert read(catalog) == [1, 2, 3]


@pytest.mark.long
def test_another_bucket_does_not_delete_the_earlier_key(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    """The storage's first bucket holds retained data, and `destroy` removes the second bucket."""
    tenant = make_tenant(warehouses=[KEPT, PURGED])
    encrypt(tenant, "own")
    tenant.up()
    catalog = fill(tenant, "kept")
    declare(tenant, PURGED)
    tenant.up()
    first = tenant.bucket
    tenant.spec["storage"]["main"]["bucket"] = f"{first}-b"
    declare(tenant, PURGED | {"name": "second"})
    tenant.up()

    tenant.verb("destroy", "--yes")

    assert key_state(aws, first) == "Enabled"
    assert key_state(aws, f"{first}-b") == "PendingDeletion"
    assert f"{first}-b" not in buckets(aws)
    assert read(catalog) == [1, 2, 3]


def rewrite_state_as_earlier_version(tenant: Any, aws: Callable[..., Any]) -> None:
    """Rewrite the state as that of an earlier version: the key under the bucket's name alone, no record, no marks."""
    s3 = aws("s3")
    tags = [tag for tag in s3.get_bucket_tagging(Bucket=tenant.bucket)["TagSet"] if tag["Key"] not in MARK_TAGS]
    s3.put_bucket_tagging(Bucket=tenant.bucket, Tagging={"TagSet": tags})
    with httpx.Client(base_url=tenant.sandbox.lakekeeper.endpoint, headers={"x-project-id": tenant.name}) as http:
        (record,) = http.get("/management/v1/role").raise_for_status().json()["roles"]
        http.delete(f"/management/v1/role/{record['id']}").raise_for_status()
    exported = json.loads(tenant.output("stack", "export"))
    text = json.dumps(exported["deployment"]["resources"])
    resources = json.loads(text.replace(f"::{tenant.name}-main-{tenant.bucket}", f"::{tenant.name}-main"))
    new = ("TenantRecord", "BucketRemoval", "KeyRemoval")
    new_urns = {resource["urn"] for resource in resources if resource["type"].endswith(new)}
    old_resources = [resource for resource in resources if resource["urn"] not in new_urns]
    for item in old_resources:
        item["dependencies"] = [urn for urn in item.get("dependencies") or [] if urn not in new_urns]
        depends = item.get("propertyDependencies") or {}
        item["propertyDependencies"] = {
            name: [urn for urn in urns or [] if urn not in new_urns] for name, urns in depends.items()
        }
    exported["deployment"]["resources"] = old_resources
    file = tenant.folder / "earlier.json"
    file.write_text(json.dumps(exported))
    tenant.output("stack", "import", "--file", str(file))


@pytest.mark.long
def test_first_up_after_the_upgrade_keeps_the_key(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    """The spec drops `encryption: {kms: own}` with the upgrade, so no record has the key."""
    tenant = make_tenant(warehouses=[PURGED | {"deletion": "protect"}])
    encrypt(tenant, "own")
    tenant.up()
    catalog = fill(tenant, "purged")
    rewrite_state_as_earlier_version(tenant, aws)
    encrypt(tenant, "s3")

    for command in (["preview"], ["up", "--yes"]):
        refused = tenant.run(*command, "--engine", "embedded")
        assert refused.returncode != 0
        assert f"KeyInUseError: bucket `{tenant.bucket}`" in refused.stdout + refused.stderr

    assert key_state(aws, tenant.bucket) == "Enabled"
    assert read(catalog) == [1, 2, 3]


@pytest.mark.long
def test_key_of_an_earlier_version_is_renamed_in_the_state(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    """Its resource has another name since each bucket has its own key; `aliases` link the names."""
    tenant = make_tenant(warehouses=[PURGED])
    encrypt(tenant, "own")
    tenant.up()
    catalog = fill(tenant, "purged")
    rewrite_state_as_earlier_version(tenant, aws)

    steps = tenant.up()["steps"]

    of_key = {(step["op"], step["name"]) for step in steps if step["type"].startswith("aws:kms/")}
    # The alias is unchanged; the key gets the mark of the stack.
    assert of_key == {(op, f"{tenant.name}-main-{tenant.bucket}") for op in ("same", "update")}
    assert key_state(aws, tenant.bucket) == "Enabled"
    assert read(catalog) == [1, 2, 3]
    tenant.verb("destroy", "--yes")
    assert key_state(aws, tenant.bucket) == "PendingDeletion"
