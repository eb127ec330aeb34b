"""The limits of a tenant's role are proven by Lakekeeper, which alone may assume it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from lakewright.aws.access import access_policy, trust_policy
from lakewright.aws.role_request import permission_policy
from lakewright.credentials.aws_session import open_aws_session
from lakewright.lakekeeper.api.connection.client import Client, ClientPool
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.storage.credentials import SystemIdentity
from lakewright.lakekeeper.storage.profiles import S3Profile, profile_request
from lakewright.lakekeeper.warehouse.role_checks import NEIGHBOR, RoleUse, role_checks
from lakewright.lakekeeper.warehouse.role_listing import check_listings
from lakewright_sandbox.runtime.state import Sandbox

EXTERNAL_ID = "only-this-one"
PREFIX = "acme/executions"


@pytest.fixture
def client(sandbox: Sandbox) -> Client:
    return ClientPool().get(ServerRef(endpoint=sandbox.lakekeeper.endpoint), str)


@pytest.fixture
def use(
    sandbox: Sandbox, client: Client, aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[RoleUse]:
    """A warehouse of a project, on a role with the required limits."""
    monkeypatch.setenv("LAKEWRIGHT_ROLE_PROPAGATION", "0")
    name = f"proof-{uuid4().hex[:8]}"
    aws("s3").create_bucket(Bucket=name)
    trust = trust_policy(sandbox.aws.catalog_principal_arn, EXTERNAL_ID)
    role = aws("iam").create_role(RoleName=name, Path="/lakewright/", AssumeRolePolicyDocument=json.dumps(trust))[
        "Role"
    ]
    allow(aws, name, access_policy(name, PREFIX, region=sandbox.aws.region))
    client.json("POST", "/management/v1/project", body={"project-id": name, "project-name": name}, idempotent=False)
    storage = S3Profile(
        bucket=name, key_prefix=PREFIX, region=sandbox.aws.region, assume_role_arn=role["Arn"], path_style_access=True
    )
    credential = SystemIdentity(type="aws-system-identity", external_id=EXTERNAL_ID)
    body = {
        "warehouse-name": "executions",
        "storage-profile": profile_request(storage),
        "storage-credential": {"type": "s3", "credential-type": credential.type, "external-id": EXTERNAL_ID},
    }
    warehouses.create(client, name, body)
    yield RoleUse(client, name, "executions", storage, credential)
    assert [warehouse["name"] for warehouse in warehouses.list_all(client, name)] == ["executions"], (
        "the proof deletes its objects"
    )


def allow(aws: Callable[..., Any], role: str, policy: dict[str, Any]) -> None:
    aws("iam").put_role_policy(RoleName=role, PolicyName="lakewright", PolicyDocument=json.dumps(policy))


def trust(aws: Callable[..., Any], role: str, policy: dict[str, Any]) -> None:
    aws("iam").update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(policy))


def statuses(use: RoleUse) -> dict[str, str]:
    return {check.name: check.status for check in role_checks(use)}


def list_failed_checks(use: RoleUse) -> set[str]:
    return {name for name, status in statuses(use).items() if status == "failed"}


def test_limited_role_passes(use: RoleUse, aws: Callable[..., Any]) -> None:
    assert statuses(use) == {
        "role": "passed",
        "other external ID": "passed",
        "no external ID": "passed",
        "bucket root": "passed",
        "folder above": "passed",
        "neighboring prefix": "passed",
    }
    contents = aws("s3").list_objects_v2(Bucket=use.storage.bucket).get("Contents", [])
    assert contents == [], "probe objects are removed"


def test_limits_are_tried_without_earlier_sessions(use: RoleUse, sandbox: Sandbox, aws: Callable[..., Any]) -> None:
    limited = trust_policy(sandbox.aws.catalog_principal_arn, EXTERNAL_ID)
    statement = {key: value for key, value in limited["Statement"][0].items() if key != "Condition"}
    trust(aws, use.storage.bucket, limited | {"Statement": [statement]})
    assert list_failed_checks(use) == {"other external ID", "no external ID"}

    trust(aws, use.storage.bucket, limited)

    assert list_failed_checks(use) == set()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, "passed"),
        ({"StringEquals": {"s3:prefix": ""}}, "failed"),
        ({"StringEquals": {"s3:prefix": "acme/"}}, "failed"),
        ({"StringLike": {"s3:prefix": f"{PREFIX}*"}}, "failed"),
        ({"StringLike": {"s3:prefix": "acme/?*"}}, "failed"),
        ({"StringLikeIfExists": {"s3:prefix": f"{PREFIX}/*"}}, "failed"),
    ],
)
def test_listing_is_tried_with_the_catalog_identity(
    use: RoleUse, sandbox: Sandbox, aws: Callable[..., Any], condition: dict[str, Any] | None, expected: str
) -> None:
    if condition is not None:
        policy = access_policy(use.storage.bucket, PREFIX, region=use.storage.region)
        more = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{use.storage.bucket}"}
        allow(aws, use.storage.bucket, policy | {"Statement": [*policy["Statement"], more | {"Condition": condition}]})
    session = open_aws_session("lakekeeper", use.storage.region, sandbox.credentials_file)

    checks = check_listings(session, use.storage, EXTERNAL_ID, sandbox.aws.endpoint)

    assert expected in {check.status for check in checks}
    assert ("failed" in {check.status for check in checks}) == (expected == "failed")


def test_listing_with_another_identity_is_skipped(use: RoleUse, sandbox: Sandbox) -> None:
    session = open_aws_session("admin", use.storage.region, sandbox.credentials_file)

    (check,) = check_listings(session, use.storage, EXTERNAL_ID, sandbox.aws.endpoint)

    assert check.status == "skipped"
    assert "may not assume the role" in check.reason


def test_role_that_may_not_delete_is_enough(use: RoleUse, aws: Callable[..., Any]) -> None:
    """Lakekeeper deletes only its own probe objects."""
    bucket = use.storage.bucket
    allow(aws, bucket, permission_policy(bucket, [PREFIX], region=use.storage.region, may_delete=False))

    assert set(statuses(use).values()) == {"passed"}


def test_role_without_external_id_fails(use: RoleUse, sandbox: Sandbox, aws: Callable[..., Any]) -> None:
    open_trust = trust_policy(sandbox.aws.catalog_principal_arn, EXTERNAL_ID)
    del open_trust["Statement"][0]["Condition"]
    trust(aws, use.storage.bucket, open_trust)

    checks = {check.name: check.reason for check in role_checks(use) if check.status == "failed"}

    assert set(checks) == {"other external ID", "no external ID"}
    assert "can be assumed with another external ID" in checks["other external ID"]
    assert EXTERNAL_ID not in "".join(checks.values())


@pytest.mark.parametrize(
    ("allowed", "open_limits"),
    [
        ("*", {"bucket root", "folder above", "neighboring prefix"}),
        ("acme/*", {"folder above", "neighboring prefix"}),
        (f"{PREFIX}*", {"neighboring prefix"}),
    ],
)
def test_role_beyond_its_prefix_fails(
    use: RoleUse, aws: Callable[..., Any], allowed: str, open_limits: set[str]
) -> None:
    policy = access_policy(use.storage.bucket, PREFIX, region=use.storage.region)
    wide = {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"],
        "Resource": [f"arn:aws:s3:::{use.storage.bucket}/{allowed}", f"arn:aws:s3:::{use.storage.bucket}"],
    }
    allow(aws, use.storage.bucket, policy | {"Statement": [*policy["Statement"], wide]})

    assert list_failed_checks(use) == open_limits


def test_broken_role_proves_nothing(use: RoleUse, sandbox: Sandbox, aws: Callable[..., Any]) -> None:
    trust(aws, use.storage.bucket, trust_policy(sandbox.aws.catalog_principal_arn, "another-one"))

    (check,) = [check for check in role_checks(use) if check.status == "failed"]

    assert check.name == "role"
    assert "cannot use" in check.reason


def test_leftover_of_a_killed_proof_is_removed(use: RoleUse, client: Client, aws: Callable[..., Any]) -> None:
    policy = access_policy(use.storage.bucket, PREFIX + NEIGHBOR, region=use.storage.region)
    allow(aws, use.storage.bucket, policy)
    body = {
        "warehouse-name": "lakewright-proof-executions",
        "storage-profile": profile_request(use.storage.model_copy(update={"key_prefix": PREFIX + NEIGHBOR})),
        "storage-credential": {"type": "s3", "credential-type": "aws-system-identity", "external-id": EXTERNAL_ID},
    }
    warehouses.create(client, use.project_id, body)
    allow(aws, use.storage.bucket, access_policy(use.storage.bucket, PREFIX, region=use.storage.region))

    assert list_failed_checks(use) == set()
