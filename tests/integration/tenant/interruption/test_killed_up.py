"""`kill -9` of `up` at each of its provider calls: the next `up` finishes, and nothing exists twice."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.command_server import run_command
from tests.integration.tenant.conftest import PASSPHRASE, MakeTenant, Tenant

DRIVER = Path(__file__).with_name("killed_cli.py")
MOST_CALLS = 60
"""A limit for the number of runs, far above the number that the tenant needs."""


def _up_killed_once_more(tenant: Tenant, moment: str, parallel: int) -> subprocess.CompletedProcess[str]:
    """Kill `up` at the first provider call at which no earlier run was killed."""
    log = tenant.folder / "calls.log"
    up = ("up", "--stack", tenant.name, "--engine", "embedded", "--yes", "--parallel", str(parallel))
    state = {"PULUMI_BACKEND_URL": (tenant.folder / "state").as_uri(), "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}
    return run_command([moment, str(log), *up], tenant.folder, os.environ | state, script=DRIVER)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("moment", "parallel"), [("after", 1), ("before", 16)])
def test_up_killed_at_every_call_finishes_in_the_end(
    make_tenant: MakeTenant, moment: str, parallel: int, aws: Callable[..., Any], lakekeeper: httpx.Client
) -> None:
    """No object is created twice.

    The next `up` must find the effect of a killed call, or repeat the call without creating a second object. It makes
    the calls that were killed before they were sent.
    """
    unit = {"name": "notebook", "runtime": "spark", "size": {"cpu": "1", "memory": "1Gi"}, "warehouse": "executions"}
    tenant = make_tenant(computing_units=[unit])

    killed = 0
    while (ended := _up_killed_once_more(tenant, moment, parallel)).returncode < 0:
        killed += 1
        assert killed < MOST_CALLS, "`up` did not finish"

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert killed >= (10 if tenant.real else 20), "the walk has to go through every call of the tenant"
    assert set(tenant.up()["changes"]) == {"same"}
    project = {"x-project-id": tenant.name}
    warehouses = lakekeeper.get("/management/v1/warehouse", headers=project).raise_for_status().json()["warehouses"]
    namespaces = lakekeeper.get(f"/catalog/v1/{warehouses[0]['id']}/namespaces").raise_for_status().json()["namespaces"]
    assert [warehouse["name"] for warehouse in warehouses] == ["executions"]
    assert namespaces == [["results"]]
    assert [b["Name"] for b in aws("s3").list_buckets()["Buckets"] if tenant.name in b["Name"]] == [tenant.bucket]
    roles = [role["RoleName"] for role in aws("iam").list_roles()["Roles"] if tenant.name in role["RoleName"]]
    assert len(roles) == 1


@pytest.mark.long
@pytest.mark.timeout(600)
def test_bucket_of_a_killed_up_is_removed_by_destroy(make_tenant: MakeTenant, aws: Callable[..., Any]) -> None:
    """The kill comes right after the bucket's creation: its `BucketRemoval` does not exist yet."""
    tenant = make_tenant()

    def has_bucket() -> bool:
        return tenant.bucket in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]

    while not has_bucket():
        assert _up_killed_once_more(tenant, "after", 1).returncode < 0
    deployment = json.loads(tenant.output("stack", "export"))["deployment"]
    assert "BucketRemoval" not in json.dumps(deployment)

    tenant.verb("destroy", "--yes")

    assert not has_bucket()


def find_keys(aws: Callable[..., Any], bucket: str) -> set[str]:
    """Return the states of the keys that were created for a bucket."""
    kms = aws("kms")
    keys = [kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"] for key in kms.list_keys()["Keys"]]
    return {key["KeyState"] for key in keys if bucket in key["Description"]}


@pytest.mark.long
@pytest.mark.stand_in("kills the removal of a bucket on AWS")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("removal", ["BucketRemoval", "KeyRemoval"])
def test_destroy_finishes_after_a_kill_at_the_removal(
    make_tenant: MakeTenant, aws: Callable[..., Any], removal: str
) -> None:
    """The kill comes just before the creation of the removal, which the state then has as pending."""
    tenant = make_tenant()
    if removal == "KeyRemoval":
        tenant.spec["storage"]["main"]["encryption"] = {"kms": "own"}
        tenant.write()

    def read_pending() -> str:
        deployment = json.loads(tenant.output("stack", "export"))["deployment"]
        return json.dumps(deployment.get("pending_operations") or [])

    while removal not in read_pending():
        assert _up_killed_once_more(tenant, "before", 1).returncode < 0

    tenant.output("destroy", "--yes", "--engine", "embedded")

    assert tenant.bucket not in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]
    assert find_keys(aws, tenant.bucket) <= {"PendingDeletion"}
