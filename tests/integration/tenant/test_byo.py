"""A tenant brings its bucket: the external ID is reserved first, then the role is created, then the stack."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import yaml

from tests.tenant_project import Tenant

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def own_bucket(make_tenant: Callable[..., Tenant], aws: Callable[..., Any]) -> Tenant:
    """A tenant whose bucket exists, and whose role is not created yet."""
    tenant = make_tenant()
    bucket = f"{tenant.name}-own"
    aws("s3").create_bucket(Bucket=bucket)
    tenant.spec["storage"] = {"main": {"backend": "existing", "bucket": bucket, "region": tenant.sandbox.aws.region}}
    tenant.write()
    return tenant


def make_role(tenant: Tenant, aws: Callable[..., Any], reservation: dict[str, Any]) -> str:
    """Create the role that `byo reserve` describes, and name it in the spec; return its name."""
    iam = aws("iam")
    trust = json.dumps(reservation["trust_policy"])
    role = iam.create_role(
        RoleName=reservation["role_name"], Path=reservation["role_path"], AssumeRolePolicyDocument=trust
    )["Role"]
    rights = json.dumps(reservation["permission_policy"])
    iam.put_role_policy(RoleName=role["RoleName"], PolicyName="lakewright", PolicyDocument=rights)
    tenant.spec["storage"]["main"]["role_arn"] = role["Arn"]
    file = tenant.folder / "tenants" / f"Pulumi.{tenant.name}.yaml"
    document = yaml.safe_load(file.read_text())
    document["config"]["lakewright:tenant"] = tenant.spec
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return role["RoleName"]


def test_reserved_external_id_opens_the_role(own_bucket: Tenant, aws: Callable[..., Any]) -> None:
    reservation = json.loads(own_bucket.output("byo", "reserve"))
    second_reservation = own_bucket.run("byo", "reserve")
    make_role(own_bucket, aws, reservation)

    ran = own_bucket.output("up", "--yes", "--engine", "embedded")

    assert json.loads(second_reservation.stdout) == reservation
    assert "Reserved" not in second_reservation.stderr
    external_id = reservation["external_id"]
    files = "".join(file.read_text() for file in own_bucket.folder.rglob("*.yaml"))
    state = own_bucket.output("stack", "export")
    assert external_id not in ran + files + state
    assert "ExternalId" not in own_bucket.list_resource_kinds()
    assert "is used with its external ID only" in ran
    (validated,) = own_bucket.verb("preview", "--refresh", "--expect-no-changes", "--validate")["validation"]
    proven = {check["name"]: check["status"] for check in validated["checks"]}
    limits = ("other external ID", "no external ID", "bucket root", "folder above", "neighboring prefix")
    assert {proven[name] for name in limits} == {"passed"}
    assert "bucket listing: skipped" in own_bucket.output("byo", "check")
    table = own_bucket.catalog("executions").create_table("results.flights", schema=pa.schema([("n", pa.int64())]))
    assert table.location().startswith(f"s3://{reservation['bucket']}/{reservation['key_prefixes'][0]}/")


def test_role_without_external_id_stops_the_update(own_bucket: Tenant, aws: Callable[..., Any]) -> None:
    reservation = json.loads(own_bucket.output("byo", "reserve"))
    (statement,) = reservation["trust_policy"]["Statement"]
    role = make_role(own_bucket, aws, reservation | {"trust_policy": {"Statement": [{**statement, "Condition": {}}]}})
    own_bucket.environ = {"LAKEWRIGHT_ROLE_PROPAGATION": "0"}

    text = own_bucket.error("up", "--yes", "--engine", "embedded")
    kinds = own_bucket.list_resource_kinds()
    aws("iam").update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(reservation["trust_policy"]))
    own_bucket.up()

    assert "RoleTooOpenError" in text
    assert "can be assumed with another external ID" in text
    assert reservation["external_id"] not in text
    assert "Namespace" not in kinds


def test_role_that_cannot_be_assumed_is_one_error(own_bucket: Tenant, aws: Callable[..., Any]) -> None:
    """Only Lakekeeper can try the role, so the project exists before; none of the tenant's data exists."""
    reservation = json.loads(own_bucket.output("byo", "reserve"))
    (statement,) = reservation["trust_policy"]["Statement"]
    other = {**statement, "Condition": {"StringEquals": {"sts:ExternalId": "of-another-stack"}}}
    make_role(own_bucket, aws, reservation | {"trust_policy": {**reservation["trust_policy"], "Statement": [other]}})
    own_bucket.environ = {"LAKEWRIGHT_ROLE_PROPAGATION": "0"}

    text = own_bucket.error("up", "--yes", "--engine", "embedded")

    assert text.count("error: ") == 2, "an error of the warehouse, and an error of the update"
    assert (
        "The server may be unable to assume `assume_role_arn`. Check the role's trust policy, the external id" in text
    )
    assert reservation["external_id"] not in text
    assert not own_bucket.list_resource_kinds() & {"Warehouse", "RoleProof", "Namespace"}


def test_missing_bucket_is_refused_before_any_creation(own_bucket: Tenant, aws: Callable[..., Any]) -> None:
    reservation = json.loads(own_bucket.output("byo", "reserve"))
    make_role(own_bucket, aws, reservation)
    aws("s3").delete_bucket(Bucket=reservation["bucket"])

    text = own_bucket.error("up", "--yes", "--engine", "embedded")

    assert f"storage.main: bucket `{reservation['bucket']}` does not exist" in text
    assert text.count("does not exist") == 1
    list_resource_kinds = own_bucket.list_resource_kinds() - {"Bootstrap"}  # belongs to the server, not to the tenant
    assert not list_resource_kinds & {"TenantRecord", "Project", "Warehouse", "ExternalId"}


def test_missing_role_names_the_command(own_bucket: Tenant) -> None:
    text = own_bucket.error("up", "--yes", "--engine", "embedded")

    assert "storage.main.role_arn: required" in text
    assert "lakewright byo reserve" in text


def test_reserve_without_such_a_storage_is_refused(make_tenant: Callable[..., Tenant]) -> None:
    text = make_tenant().error("byo", "reserve")

    assert "expected one storage with backend `existing`, or --storage NAME; there are: none" in text
