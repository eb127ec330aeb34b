"""A second stack that declares another stack's tenant adopts nothing, and its `destroy` deletes nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from tests.command_server import run_command
from tests.integration.tenant.conftest import MakeTenant, Tenant, make_bucket_and_role

pytestmark = pytest.mark.timeout(300)

ROWS = pa.table({"n": [1, 2, 3]})
PROTECTED = [{"name": "executions", "namespaces": ["results"], "deletion": "protect"}]
EMBEDDED = ("--engine", "embedded")


@dataclass
class CopiedStack(Tenant):
    """A stack with the spec of another stack, under its own name."""

    stack: str = "copy"

    @property
    def name(self) -> str:
        return self.stack


def prepare_protected_tenant(make_tenant: MakeTenant, aws: Callable[..., Any]) -> Tenant:
    """Return a protected tenant, not deployed yet, on a bucket that outlives it."""
    tenant = make_tenant(warehouses=PROTECTED)
    make_bucket_and_role(tenant, aws, "acme-0815")
    return tenant


def add_rows(tenant: Tenant) -> Tenant:
    table = tenant.catalog("executions").create_table("results.flights", schema=ROWS.schema)
    table.append(ROWS)
    return tenant


def copy_to_other_project(tenant: Tenant, folder: Path, deletion: str = "purge", **changes: Any) -> CopiedStack:
    """Copy the stack's file to another project, with another `deletion`."""
    shutil.copytree(tenant.folder, folder, symlinks=True, ignore=shutil.ignore_patterns("state", "tenants"))
    (folder / "state").mkdir()
    (folder / "tenants").mkdir()
    warehouses = [{**warehouse, "deletion": deletion} for warehouse in tenant.spec["warehouses"]]
    copy = CopiedStack(folder, tenant.sandbox, tenant.spec | {"warehouses": warehouses} | changes, tenant.environ)
    copy.write()
    copy.output("stack", "init")
    return copy


def copy_beside(tenant: Tenant) -> CopiedStack:
    """Copy the stack's file under another name in the same project."""
    warehouses = [{**warehouse, "deletion": "purge"} for warehouse in tenant.spec["warehouses"]]
    copy = CopiedStack(tenant.folder, tenant.sandbox, tenant.spec | {"warehouses": warehouses}, tenant.environ)
    copy.write()
    copy.output("stack", "init")
    return copy


def validate(tenant: Tenant) -> subprocess.CompletedProcess[str]:
    return run_command(["spec", "validate"], tenant.folder, os.environ)


def read_rows(tenant: Tenant) -> list[int]:
    return tenant.catalog("executions").load_table("results.flights").scan().to_arrow()["n"].to_pylist()


def assert_adopts_nothing(tenant: Tenant, copy: Tenant, *engine: str) -> None:
    """Check that `preview` and `up` of the copy are refused, and that its `destroy` leaves the tenant as it is."""
    preview = copy.run("preview", *engine)
    assert preview.returncode != 0, "the preview refuses what `up` refuses"
    assert "`adopt: true`" in preview.stdout + preview.stderr
    up = copy.run("up", "--yes", *engine)
    assert up.returncode != 0
    assert f"project {tenant.name} at" in up.stdout + up.stderr
    assert "exists already" in up.stdout + up.stderr
    copy.output("destroy", "--yes", *engine)
    assert read_rows(tenant) == [1, 2, 3]
    tenant.verb("preview", "--refresh", "--expect-no-changes")


def test_copied_stack_adopts_nothing(make_tenant: MakeTenant, aws: Callable[..., Any], tmp_path: Path) -> None:
    """A real incident: a stack file copied with `deletion: purge`, then `up` and `destroy`."""
    tenant = prepare_protected_tenant(make_tenant, aws)
    tenant.up()
    add_rows(tenant)

    assert_adopts_nothing(tenant, copy_to_other_project(tenant, tmp_path / "other"), *EMBEDDED)


@pytest.mark.pulumi_cli
@pytest.mark.timeout(900)
def test_copied_stack_adopts_nothing_on_the_cli(
    make_tenant: MakeTenant, aws: Callable[..., Any], tmp_path: Path, attached_providers: dict[str, str]
) -> None:
    tenant = prepare_protected_tenant(make_tenant, aws)
    tenant.up()
    add_rows(tenant)
    tenant.environ = attached_providers

    assert_adopts_nothing(tenant, copy_to_other_project(tenant, tmp_path / "other"), "--engine", "pulumi")


def test_stack_files_with_one_tenant_are_refused(make_tenant: MakeTenant, aws: Callable[..., Any]) -> None:
    tenant = prepare_protected_tenant(make_tenant, aws)
    copy = copy_beside(tenant)

    for command in (("preview", *EMBEDDED), ("up", "--yes", *EMBEDDED)):
        completed = copy.run(*command)
        assert completed.returncode == 1
        assert f"Pulumi.{tenant.name}.yaml declares tenant `{tenant.spec['name']}` too" in completed.stderr


def test_environments_with_one_server_share_the_tenant(make_tenant: MakeTenant, aws: Callable[..., Any]) -> None:
    """The copy names another environment file, which has the same sandbox."""
    tenant = prepare_protected_tenant(make_tenant, aws)
    environments = tenant.folder / "environments"
    shutil.copy(environments / "sandbox.yaml", environments / "other.yaml")
    tenant.spec["environment"] = "other"
    copy = copy_beside(tenant)

    for command in (("preview", *EMBEDDED), ("up", "--yes", *EMBEDDED), ("spec", "validate")):
        completed = copy.run(*command) if command[0] != "spec" else validate(copy)
        assert completed.returncode == 1
        assert f"Pulumi.{tenant.name}.yaml declares tenant `{tenant.name}` too; its environment" in completed.stderr


def alias_environment(tenant: Tenant) -> None:
    """Write environment `alias`, with the sandbox's Lakekeeper behind another address."""
    document = yaml.safe_load((tenant.folder / "environments" / "sandbox.yaml").read_text())
    endpoint = tenant.sandbox.lakekeeper.endpoint.replace("127.0.0.1", "localhost")
    document["lakekeeper"] = {"endpoint": endpoint}
    (tenant.folder / "environments" / "alias.yaml").write_text(yaml.safe_dump(document))


def test_file_with_the_tenant_behind_an_alias_is_named(make_tenant: MakeTenant, aws: Callable[..., Any]) -> None:
    """The server's id shows that two environments have one Lakekeeper."""
    tenant = prepare_protected_tenant(make_tenant, aws)
    alias_environment(tenant)
    copy = copy_beside(tenant)
    copy.spec["environment"] = "alias"
    copy.write()

    completed = copy.run("preview", *EMBEDDED)

    assert completed.returncode == 1
    assert f"Pulumi.{tenant.name}.yaml declares tenant `{tenant.name}` too; its environment" in completed.stderr


def test_stack_that_has_the_tenant_is_named(make_tenant: MakeTenant, aws: Callable[..., Any]) -> None:
    """Its file is deleted, its state is in the same backend, and the server has another address."""
    tenant = prepare_protected_tenant(make_tenant, aws)
    tenant.up()
    alias_environment(tenant)
    copy = copy_beside(tenant)
    copy.spec |= {"environment": "alias", "adopt": True}
    copy.write()
    (tenant.folder / "tenants" / f"Pulumi.{tenant.name}.yaml").unlink()

    for command in (("preview", *EMBEDDED), ("up", "--yes", *EMBEDDED)):
        message = copy.error(*command)
        assert f"project `{tenant.spec['name']}` of this Lakekeeper is in the state of stack `lakewright/" in message
        assert f"lakewright stack forget --stack {tenant.name}" in message


@pytest.mark.long
def test_refused_stack_creates_nothing(make_tenant: MakeTenant, aws: Callable[..., Any], tmp_path: Path) -> None:
    """The project is refused first: no bucket, key, role or Kubernetes namespace is created or changed.

    `Bootstrap` only reads a server that is set up. `ExternalId` and `TenantRecord` are in the state alone: destroying
    them deletes nothing.
    """
    unit = {"name": "notebook", "runtime": "spark", "size": {"cpu": "1", "memory": "1Gi"}, "warehouse": "executions"}
    tenant = make_tenant(warehouses=PROTECTED, computing_units=[unit])
    tenant.up()
    storage = {"main": {"backend": "aws", "bucket": f"{tenant.name}-2", "encryption": {"kms": "own"}}}
    keys = len(aws("kms").list_keys()["Keys"])
    copy = copy_to_other_project(tenant, tmp_path / "other", storage=storage)

    for _ in range(2):
        assert copy.run("up", "--yes", *EMBEDDED).returncode != 0

    assert len(aws("kms").list_keys()["Keys"]) == keys
    assert f"{tenant.name}-2" not in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]
    assert list_recorded_kinds(copy) <= {"Bootstrap", "ExternalId", "TenantRecord"}
    copy.output("destroy", "--yes", *EMBEDDED)
    tenant.verb("preview", "--refresh", "--expect-no-changes")


def list_recorded_kinds(tenant: Tenant) -> set[str]:
    """Return the kinds of objects in the stack's state, without components and providers."""
    resources = json.loads(tenant.output("stack", "export"))["deployment"].get("resources") or []
    objects = [
        resource["type"] for resource in resources if resource["custom"] and not resource["type"].startswith("pulumi:")
    ]
    return {entry.rsplit(":", 1)[-1] for entry in objects}


def test_foreign_bucket_is_adopted_with_consent_only(make_tenant: MakeTenant, aws: Callable[..., Any]) -> None:
    """A spec with `adopt: true` once took over any bucket of the account, and `destroy` purged it."""
    tenant, s3 = make_tenant(adopt=True), aws("s3")
    s3.create_bucket(Bucket=tenant.bucket)
    s3.put_object(Bucket=tenant.bucket, Key="books/2026.csv", Body=b"rows")
    s3.put_bucket_tagging(Bucket=tenant.bucket, Tagging={"TagSet": [{"Key": "team", "Value": "finance"}]})

    refused = tenant.run("preview", *EMBEDDED)
    tenant.environ["LAKEWRIGHT_ADOPT"] = f"bucket={tenant.bucket}"
    preview = tenant.run("preview", *EMBEDDED)

    assert refused.returncode != 0
    problem = f"bucket `{tenant.bucket}` exists already and has no mark of a stack"
    assert problem in refused.stdout + refused.stderr
    assert f"`lakewright up --adopt bucket={tenant.bucket}`" in refused.stdout + refused.stderr
    assert preview.returncode == 0, preview.stdout + preview.stderr
    assert (
        "is adopted; it contains 1 object (4 bytes); this replaces its policy (none)" in preview.stdout + preview.stderr
    )
    assert "tags (team)" in preview.stdout + preview.stderr
