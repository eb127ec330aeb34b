"""A slow or refusing Lakekeeper or S3 during an `up`: one sentence reports it, and the next `up` continues."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.tenant import faulty_proxy
from tests.integration.tenant.conftest import MakeTenant, Tenant
from tests.integration.tenant.faulty_proxy import FaultyProxy

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SLOW_ANSWER = {"LAKEWRIGHT_ANSWER_WITHIN": "5"}
SLOW_STORAGE = {"LAKEWRIGHT_VALIDATION_WITHIN": "5"}
"""Seconds: a short timeout that is enough for calls without a delay."""

COMPLETE = {"Bucket", "Role", "Project", "Warehouse", "Namespace", "DeletionGuard"}

NOT_ALLOWED = json.dumps(
    {"error": {"message": "not you", "type": "NamespaceActionForbidden", "code": 403, "stack": []}}
)
ACCESS_DENIED = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
"""Whether to run all cases, as `make test-all` does, or the two cases that differ most."""


@dataclass(frozen=True)
class InterruptionCase:
    """The requests that fail, how they fail, the parts of the expected message, and the state after the failure."""

    server: str
    line: str
    expected: tuple[str, ...]
    state_kinds: set[str]
    absent_kinds: set[str] = field(default_factory=lambda: {"DeletionGuard"})
    status: int = 0
    body: str = ""
    patience: dict[str, str] = field(default_factory=dict[str, str])


CASES = {
    "Lakekeeper is slow from the start": InterruptionCase(
        "lakekeeper",
        "GET /management/v1/info",
        ("GET /management/v1/info at {endpoint} did not respond within 5 s",),
        {"Tenant"},
        # The tenant's record is made first, on the server, and all other resources depend on it.
        absent_kinds={*COMPLETE, "ExternalId"},
        patience=SLOW_ANSWER,
    ),
    "Lakekeeper is slow with a namespace": InterruptionCase(
        "lakekeeper",
        "POST /catalog/v1/",
        ("/namespaces at {endpoint} did not respond within 5 s",),
        {"Role", "Warehouse"},
        patience=SLOW_ANSWER,
    ),
    "S3 is slow with the bucket": InterruptionCase(
        "aws",
        "PUT /{bucket} ",
        ("creating the bucket {bucket}: no usable response from {endpoint}",),
        {"ExternalId"},
        patience=SLOW_ANSWER,
    ),
    "S3 refuses the catalog": InterruptionCase(
        "aws",
        "PUT /{bucket}/",
        # Between these parts, Lakekeeper 0.14 names the check that failed.
        (
            "POST /management/v1/warehouse at {lakekeeper} responded with 400 PermissionDenied: ",
            "IO error at `s3://{bucket}/",
            ": S3 write failed: Access Denied",
        ),
        {"Bucket", "Role", "Project"},
        status=403,
        body=ACCESS_DENIED,
        patience={"LAKEWRIGHT_ROLE_PROPAGATION": "1"},
    ),
}


@pytest.fixture
def run_proxy() -> Iterator[Callable[[str], FaultyProxy]]:
    """A function that starts a proxy in front of a server: `proxy_to(target)`."""
    with ExitStack() as stack:
        yield lambda target: stack.enter_context(faulty_proxy.run_proxy(target))


def write_environment(tenant: Tenant, server: str, text: str) -> None:
    file = tenant.folder / "environments" / "sandbox.yaml"
    file.write_text(f"sandbox: {tenant.sandbox.dir}\n{server}: {{{text}}}\n")


def fail_up(tenant: Tenant) -> str:
    """Return the message of an `up` that fails, without the surrounding output."""
    completed = tenant.run("up", "--yes", "--engine", "embedded")
    message = completed.stdout + completed.stderr
    assert completed.returncode == 1, message
    assert "Traceback" not in message
    return message


def wait_for_warehouse(lakekeeper: httpx.Client, project: str) -> str:
    """Return the id of the project's only warehouse once the server lists it."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        response = lakekeeper.get("/management/v1/warehouse", headers={"x-project-id": project}).raise_for_status()
        if warehouses := response.json()["warehouses"]:
            (warehouse,) = warehouses
            return warehouse["id"]
        time.sleep(0.05)
    raise AssertionError(f"project {project} has no warehouse")


SHORT = ("Lakekeeper is slow with a namespace", "S3 is slow with the bucket")


@pytest.mark.parametrize("case", [pytest.param(CASES[name], id=name) for name in (CASES if FULL else SHORT)])
def test_failed_up_is_reported_and_the_next_up_continues(
    make_tenant: MakeTenant, run_proxy: Callable[[str], FaultyProxy], case: InterruptionCase
) -> None:
    tenant = make_tenant()
    proxy = run_proxy(tenant.sandbox.aws.endpoint if case.server == "aws" else tenant.sandbox.lakekeeper.endpoint)
    write_environment(tenant, case.server, f"endpoint: '{proxy.endpoint}'")
    names = {
        "endpoint": proxy.endpoint,
        "lakekeeper": tenant.sandbox.lakekeeper.endpoint,
        "bucket": tenant.bucket,
    }

    with proxy.faulty(case.line.format(**names), case.status, case.body) as fault:
        tenant.environ = case.patience
        message = fail_up(tenant)

    tenant.environ = {}
    assert all(part.format(**names) in message for part in case.expected), message
    assert fault.hits
    kinds = tenant.list_resource_kinds()
    assert case.state_kinds <= kinds
    assert not case.absent_kinds & kinds
    assert tenant.up()["changes"].get("same"), "no object is created a second time"
    assert tenant.list_resource_kinds() >= COMPLETE


def test_warehouse_that_appears_after_a_timeout_needs_adopt(
    make_tenant: MakeTenant, run_proxy: Callable[[str], FaultyProxy], lakekeeper: httpx.Client
) -> None:
    """The client gave up on the create request while the server probed the storage; the server applies it later.

    The state does not show who made the warehouse, so another stack may own it.
    """
    tenant = make_tenant()
    proxy = run_proxy(tenant.sandbox.aws.endpoint)
    write_environment(tenant, "aws", f"endpoint: '{proxy.endpoint}'")

    with proxy.faulty(f"PUT /{tenant.bucket}/") as fault:
        tenant.environ = SLOW_STORAGE
        message = fail_up(tenant)

    tenant.environ = {}
    endpoint = tenant.sandbox.lakekeeper.endpoint
    slow = f"POST /management/v1/warehouse at {endpoint} did not respond within 5 s; the server probes the storage"
    assert slow in message
    assert "if it appears later, the next `up` needs `adopt` to take it over" in message
    assert fault.hits
    kinds = tenant.list_resource_kinds()
    assert kinds >= {"Bucket", "Role", "Project"}
    assert not kinds & {"Warehouse", "DeletionGuard"}
    warehouse = wait_for_warehouse(lakekeeper, tenant.name)
    message = fail_up(tenant)
    assert "exists already, and this stack did not make it" in message
    assert "take it over with `adopt=True` (`adopt: true` in a tenant's spec)" in message
    tenant.spec["adopt"] = True
    tenant.write()
    assert tenant.up()["changes"].get("same"), "no object is created a second time"
    assert tenant.list_resource_kinds() >= COMPLETE
    assert wait_for_warehouse(lakekeeper, tenant.name) == warehouse


def test_keys_without_rights_are_reported_until_they_have_them(
    make_tenant: MakeTenant, aws: Callable[..., Any], tmp_path: Path
) -> None:
    tenant = make_tenant()
    aws("iam").create_user(UserName=tenant.name)
    look = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "iam:GetRole", "Resource": "*"}}
    aws("iam").put_user_policy(UserName=tenant.name, PolicyName="look", PolicyDocument=json.dumps(look))
    key = aws("iam").create_access_key(UserName=tenant.name)["AccessKey"]
    keys = tmp_path / "credentials"
    keys.write_text(
        f"[poor]\naws_access_key_id = {key['AccessKeyId']}\naws_secret_access_key = {key['SecretAccessKey']}\n"
    )
    write_environment(tenant, "aws", f"profile: poor, shared_credentials_file: '{keys}'")

    message = fail_up(tenant)

    assert f"the bucket {tenant.bucket}: AWS at {tenant.sandbox.aws.endpoint} responded with AccessDenied" in message
    assert "Project" in tenant.list_resource_kinds()
    everything = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
    aws("iam").put_user_policy(UserName=tenant.name, PolicyName="all", PolicyDocument=json.dumps(everything))
    assert tenant.up()["changes"].get("same")
    assert tenant.list_resource_kinds() >= COMPLETE


def test_destroy_after_half_an_up_loses_no_data(
    make_tenant: MakeTenant, aws: Callable[..., Any], run_proxy: Callable[[str], FaultyProxy]
) -> None:
    """There is no guard yet. The bucket itself refuses and keeps its settings, and the next `up` completes it."""
    tenant = make_tenant(warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": "protect"}])
    proxy = run_proxy(tenant.sandbox.lakekeeper.endpoint)
    write_environment(tenant, "lakekeeper", f"endpoint: '{proxy.endpoint}'")
    with proxy.faulty("POST /catalog/v1/", 403, NOT_ALLOWED):
        message = fail_up(tenant)
    assert f"/namespaces at {proxy.endpoint} responded with 403 NamespaceActionForbidden: not you" in message
    assert "Warehouse" in tenant.list_resource_kinds()
    aws("s3").put_object(Bucket=tenant.bucket, Key="by-hand.csv", Body=b"n\n1\n")

    completed = tenant.run("destroy", "--yes", "--engine", "embedded")

    message = completed.stdout + completed.stderr
    assert completed.returncode == 1
    assert f"bucket `{tenant.bucket}`" in message
    assert "is not deleted, since it holds 1 object (by-hand.csv), " in message
    assert aws("s3").get_bucket_versioning(Bucket=tenant.bucket)["Status"] == "Enabled"
    assert aws("s3").get_public_access_block(Bucket=tenant.bucket)
    tenant.up()
    assert tenant.list_resource_kinds() >= COMPLETE
    assert aws("s3").get_object(Bucket=tenant.bucket, Key="by-hand.csv")["Body"].read() == b"n\n1\n"
