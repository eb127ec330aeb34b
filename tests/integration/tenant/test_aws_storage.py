"""Storage on AWS: roles by purpose, tags, access logs, lifecycle, and roles that keep their path."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import pulumi_aws
import pyarrow as pa
import pytest
from lakewright.aws.bucket_policy import log_bucket_policy
from lakewright.ownership.mark import MARK_TAGS

from tests.integration.tenant.conftest import list_changes

pytestmark = [pytest.mark.timeout(300), pytest.mark.stand_in("makes buckets, keys and roles on AWS")]

ROWS = pa.table({"n": [1, 2, 3]})
COST_TAGS = {"cost-center": "4711", "team": "data platform"}


def write_and_read(tenant: Any) -> list[int]:
    table = tenant.catalog("executions").create_table("results.flights", schema=ROWS.schema)
    table.append(ROWS)
    return table.scan().to_arrow()["n"].to_pylist()


def aws_resources(tenant: Any) -> list[dict[str, Any]]:
    """Return the AWS resources in the stack's state."""
    state = json.loads(tenant.output("stack", "export"))
    return [resource for resource in state["deployment"]["resources"] if resource["type"].startswith("aws:")]


def takes_tags(token: str) -> bool:
    """Return whether the resource class of a type token has tags."""
    module, name = token.split(":")[1].split("/", maxsplit=1)[0], token.rsplit(":", 1)[-1]
    resource = getattr(getattr(pulumi_aws, module), name)
    return "tags" in inspect.signature(resource._internal_init).parameters


def declare_all_features(tenant: Any, principal: str) -> None:
    """Give the tenant every feature of the backend."""
    tenant.spec["labels"] = {"stage": "test"}
    tenant.spec["storage"] = {
        "main": {
            "backend": "aws",
            "bucket": tenant.bucket,
            "encryption": {"kms": "own"},
            "access_logs": {"bucket": f"{tenant.name}-logs", "owner": "stack", "deletion": "purge"},
        }
    }
    tenant.spec["warehouses"] = [
        {
            "name": "executions",
            "namespaces": ["results"],
            "deletion": "purge",
            "vending_role": True,
            "token_seconds": 7200,
            "maintenance_role": {"principal_arn": principal},
            "shares": {"bi": {"principal_arn": principal}},
            "lifecycle": {"noncurrent_version_days": 90, "intelligent_tiering_days": 0},
        },
        {"name": "scratch", "deletion": "purge"},
    ]
    file = tenant.folder / "environments" / "sandbox.yaml"
    settings = f"aws: {{tags: {json.dumps(COST_TAGS)}}}\nlakekeeper: {{principal_has_session_tags: true}}\n"
    file.write_text(file.read_text() + settings)
    tenant.write()


def rewrite_role_as_earlier_version(tenant: Any, iam: Any, lakekeeper: Any, role: str) -> None:
    """Move a role to the path `/`, in IAM, in Lakekeeper and in the state, whose record has no path afterwards."""
    old_role = iam.get_role(RoleName=role)["Role"]
    rights = iam.get_role_policy(RoleName=role, PolicyName="warehouse-prefix")["PolicyDocument"]
    iam.delete_role_policy(RoleName=role, PolicyName="warehouse-prefix")
    iam.delete_role(RoleName=role)
    new_role = iam.create_role(
        RoleName=role,
        AssumeRolePolicyDocument=json.dumps(old_role["AssumeRolePolicyDocument"]),
        Description=old_role["Description"],
        Tags=old_role["Tags"],
    )["Role"]
    iam.put_role_policy(RoleName=role, PolicyName="warehouse-prefix", PolicyDocument=json.dumps(rights))
    warehouse = tenant.catalog_config().warehouse("executions").id
    profile = lakekeeper.get(f"/management/v1/warehouse/{warehouse}").json()["storage-profile"]
    external_id = json.loads(tenant.output("external-ids", "--json"))[f"{tenant.name}-executions"]
    credential = {"type": "s3", "credential-type": "aws-system-identity", "external-id": external_id}
    body = {"storage-profile": profile | {"assume-role-arn": new_role["Arn"]}, "storage-credential": credential}
    lakekeeper.post(f"/management/v1/warehouse/{warehouse}/storage", json=body).raise_for_status()
    state = tenant.folder / "state" / ".pulumi" / "stacks" / "lakewright" / f"{tenant.name}.json"
    text = state.read_text().replace(old_role["Arn"], new_role["Arn"]).replace(old_role["RoleId"], new_role["RoleId"])
    document = json.loads(text)
    for resource in document["checkpoint"]["latest"]["resources"]:
        for values in (resource.get("inputs") or {}, resource.get("outputs") or {}):
            if values.get("path") == "/lakewright/":
                values["path"] = "/"
            for warehouse_record in (
                values.get("warehouses", {}).values() if resource["type"].endswith("Record") else ()
            ):
                warehouse_record.pop("role_path", None)
    state.write_text(json.dumps(document))


@pytest.mark.long
def test_tenant_with_every_feature(make_tenant: Callable[..., Any], aws: Callable[..., Any], lakekeeper: Any) -> None:
    """All resources that AWS can tag are tagged, and the last `destroy` deletes everything."""
    tenant = make_tenant()
    declare_all_features(tenant, tenant.sandbox.aws.catalog_principal_arn)

    outputs = tenant.up()["outputs"]

    resources = aws_resources(tenant)
    tagged = [resource for resource in resources if takes_tags(resource["type"])]
    assert {resource["type"] for resource in tagged} == {"aws:s3/bucket:Bucket", "aws:kms/key:Key", "aws:iam/role:Role"}
    tenant_tags = {"lakewright:tenant": tenant.name, "lakewright:owner": "tests", "stage": "test"}
    for resource in tagged:
        tags = {key: value for key, value in resource["outputs"]["tags"].items() if key not in MARK_TAGS}
        assert tags == COST_TAGS | tenant_tags, resource["urn"]
    profile = lakekeeper.get(f"/management/v1/warehouse/{outputs['warehouse_ids']['executions']}").json()
    storage = profile["storage-profile"]
    role = f"arn:aws:iam::123456789012:role/lakewright/lakewright.{tenant.name}.executions"
    assert (storage["assume-role-arn"], storage["sts-role-arn"]) == (role, f"{role}.vending")
    assert storage["sts-token-validity-seconds"] == 7200
    assert outputs["roles_of_others"] == {
        "executions": {"maintenance": f"{role}.maintenance", "share-bi": f"{role}.share-bi"}
    }
    assert (
        aws("iam").get_role(RoleName=f"lakewright.{tenant.name}.executions.vending")["Role"]["MaxSessionDuration"]
        == 7200
    )
    trust = aws("iam").get_role(RoleName=f"lakewright.{tenant.name}.scratch")["Role"]["AssumeRolePolicyDocument"]
    assert [statement["Sid"] for statement in trust["Statement"]] == ["CatalogAssumes", "CatalogTagsSessions"]
    rules = aws("s3").get_bucket_lifecycle_configuration(Bucket=tenant.bucket)["Rules"]
    versions = {
        rule["Filter"]["Prefix"]: rule["NoncurrentVersionExpiration"]["NoncurrentDays"]
        for rule in rules
        if rule["ID"].startswith("old-versions")
    }
    assert versions == {f"{tenant.name}/executions/": 90, f"{tenant.name}/scratch/": 30}
    assert write_and_read(tenant) == [1, 2, 3]
    logs = aws("s3").list_objects_v2(Bucket=f"{tenant.name}-logs", Prefix=f"{tenant.bucket}/")
    assert logs["KeyCount"] > 0
    tenant.verb("preview", "--refresh", "--expect-no-changes")
    counts_by_name = {
        item["name"]: item["counts"] for item in tenant.verb("destroy", "--preview-only")["deleted_contents"]
    }
    [counts] = [counts for name, counts in counts_by_name.items() if name.startswith("Bucket ")]
    assert counts["access log"] > 0
    assert counts.keys() == {"access log"}
    tenant.verb("destroy", "--yes")
    buckets = {bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]}
    assert not buckets & {tenant.bucket, f"{tenant.name}-logs"}
    roles = [role["RoleName"] for role in aws("iam").list_roles()["Roles"]]
    assert not [name for name in roles if f".{tenant.name}." in name]


def test_missing_objects_are_refused_before_any_creation(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    """One report names the missing log bucket, the missing boundary and the missing principals."""
    tenant = make_tenant()
    missing = "arn:aws:iam::123456789012:role/missing"
    tenant.spec["storage"]["main"]["access_logs"] = {"bucket": f"{tenant.name}-missing", "owner": "platform"}
    tenant.spec["warehouses"][0] |= {
        "maintenance_role": {"principal_arn": missing},
        "shares": {"bi": {"principal_arn": missing}, "partner": {"principal_arn": "arn:aws:iam::210987654321:root"}},
    }
    tenant.write()
    file = tenant.folder / "environments" / "sandbox.yaml"
    boundary = "arn:aws:iam::123456789012:policy/missing"
    file.write_text(file.read_text() + f"aws: {{permissions_boundary: '{boundary}'}}\n")

    text = tenant.error("up", "--yes", "--engine", "embedded")

    assert "4 mistakes" in text
    assert (
        f"storage.main.access_logs.bucket: expected a bucket of this account; there is no bucket `{tenant.name}" in text
    )
    assert f"aws.permissions_boundary: expected the ARN of a managed policy that exists (found {boundary})" in text
    for path in ("maintenance_role", "shares.bi"):
        assert f"warehouses.0.{path}.principal_arn: expected a user or role that exists" in text
    assert tenant.bucket not in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]
    assert not tenant.list_resource_kinds() - {"Stack"}


def test_missing_catalog_principal_is_refused_in_the_preview(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    tenant = make_tenant()
    file = tenant.folder / "environments" / "sandbox.yaml"
    principal = "arn:aws:iam::123456789012:role/lakekeeper-of-nobody"
    file.write_text(file.read_text() + f"lakekeeper: {{principal_arn: '{principal}'}}\n")

    text = tenant.error("preview", "--engine", "embedded")

    assert f"`lakekeeper.principal_arn` of the environment is {principal}, and there is no such role" in text
    assert tenant.bucket not in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]


@pytest.mark.long
def test_logs_are_written_to_the_bucket_of_the_platform(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    """The platform's policy decides; without `access_logs` the logs end, and the bucket is kept."""
    tenant, s3 = make_tenant(), aws("s3")
    logs = f"{tenant.name}-platform-logs"
    s3.create_bucket(Bucket=logs)
    tenant.spec["storage"]["main"]["access_logs"] = {"bucket": logs, "owner": "platform"}
    tenant.write()

    refused = tenant.error("up", "--yes", "--engine", "embedded")
    policy = log_bucket_policy(logs, "us-east-1", "123456789012", [f"{tenant.name}-*"])
    s3.put_bucket_policy(Bucket=logs, Policy=json.dumps(policy))
    tenant.up()

    assert "must either provide the necessary permissions to the logging service" in refused
    assert write_and_read(tenant) == [1, 2, 3]
    assert s3.list_objects_v2(Bucket=logs, Prefix=f"{tenant.bucket}/")["KeyCount"] > 0
    del tenant.spec["storage"]["main"]["access_logs"]
    tenant.write()
    tenant.up()
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=tenant.bucket)
    tenant.verb("preview", "--refresh", "--expect-no-changes")


@pytest.mark.long
def test_role_of_an_earlier_version_keeps_its_path(
    make_tenant: Callable[..., Any], aws: Callable[..., Any], lakekeeper: Any
) -> None:
    """The state of an earlier version has no path: `up` replaces nothing, and a new warehouse gets the path."""
    tenant = make_tenant()
    iam, role = aws("iam"), f"lakewright.{tenant.name}.executions"
    tenant.up()
    rewrite_role_as_earlier_version(tenant, iam, lakekeeper, role)

    preview = tenant.verb("preview", "--refresh")
    tenant.spec["warehouses"].append({"name": "scratch", "deletion": "purge"})
    tenant.write()
    steps = tenant.up()["steps"]

    assert not {step["op"] for step in preview["steps"]} & {"replace", "create-replacement", "delete-replaced"}
    assert not [step for step in steps if "replace" in step["op"]]
    paths = {name: iam.get_role(RoleName=name)["Role"]["Path"] for name in (role, f"lakewright.{tenant.name}.scratch")}
    assert paths == {role: "/", f"lakewright.{tenant.name}.scratch": "/lakewright/"}
    assert write_and_read(tenant) == [1, 2, 3]
    tenant.verb("preview", "--refresh", "--expect-no-changes")


@pytest.mark.long
def test_renamed_warehouse_keeps_all_its_roles(make_tenant: Callable[..., Any], aws: Callable[..., Any]) -> None:
    """The roles, their external IDs and the log bucket are kept; the log bucket outlives the stack."""
    tenant, iam = make_tenant(), aws("iam")
    principal = {"principal_arn": tenant.sandbox.aws.catalog_principal_arn}
    tenant.spec["storage"]["main"]["access_logs"] = {"bucket": f"{tenant.name}-logs", "owner": "stack"}
    tenant.spec["warehouses"][0] |= {"vending_role": True, "maintenance_role": principal, "shares": {"bi": principal}}
    tenant.write()
    before = tenant.up()["outputs"]
    ids = json.loads(tenant.output("external-ids", "--json"))
    tenant.spec["warehouses"][0] |= {"name": "runs", "renamed_from": "executions"}
    tenant.write()

    steps = tenant.up()["steps"]

    assert not {step["op"] for step in steps} - {"same", "update", "read"}, "no resource is created or replaced"
    after = json.loads(tenant.output("stack", "output", "--json"))
    assert after["roles_of_others"]["runs"] == before["roles_of_others"]["executions"]
    renamed = json.loads(tenant.output("external-ids", "--json"))
    assert renamed == {name.replace("-executions", "-runs"): value for name, value in ids.items()}
    tenant.spec["warehouses"][0] |= {"vending_role": False, "shares": {}}
    tenant.write()
    tenant.up()
    names = [role["RoleName"] for role in iam.list_roles()["Roles"] if f".{tenant.name}." in role["RoleName"]]
    assert sorted(names) == [f"lakewright.{tenant.name}.executions", f"lakewright.{tenant.name}.executions.maintenance"]
    tenant.verb("destroy", "--yes")
    assert f"{tenant.name}-logs" in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]


def test_adopt_takes_over_log_buckets_of_the_tenant_only(
    make_tenant: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    """`purge` would delete the contents of another bucket."""
    tenant, s3 = make_tenant(adopt=True), aws("s3")
    logs = f"{tenant.name}-logs"
    s3.create_bucket(Bucket=logs)
    s3.put_object(Bucket=logs, Key="of-someone-else", Body=b"x")
    tenant.spec["storage"]["main"]["access_logs"] = {"bucket": logs, "owner": "stack", "deletion": "purge"}
    tenant.write()

    refused = tenant.error("up", "--yes", "--engine", "embedded")
    tenant.run("destroy", "--yes", "--engine", "embedded")

    assert "BucketAlreadyOwnedByYou" in refused
    assert s3.list_objects_v2(Bucket=logs)["Contents"][0]["Key"] == "of-someone-else"
    s3.put_bucket_tagging(Bucket=logs, Tagging={"TagSet": [{"Key": "lakewright:tenant", "Value": tenant.name}]})
    assert ("adopt", "Bucket", f"{tenant.name}-main-logs") in list_changes(tenant.up())
