"""Grants, members and roles of consumers that end: by `up`, by `lakewright expire`, and by AWS itself."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError
from lakewright.cli.options import load_project
from lakewright.drift.detection.run import find_drift
from lakewright.drift.model import DriftReport
from lakewright.fleet.selection import Selection, select
from lakewright.shares.expiry import StackExpiry, expire_shares

from tests.integration.tenant.conftest import Tenant, enter_project, list_changes, write_environment

DURING, AFTER = datetime(2040, 6, 30, 23, tzinfo=UTC), datetime(2040, 7, 1, tzinfo=UTC)
LAST_DAY = "2040-06-30"
ENDING_GRANT = {"to": "role:analysts", "privilege": "select", "on": {"warehouse": "executions"}, "until": LAST_DAY}
LASTING_GRANT = {"to": "user:oidc~ann", "privilege": "select", "on": {"warehouse": "executions"}}
MEMBERS = {"analysts": {"users": ["oidc~ann", {"user": "oidc~ben", "until": LAST_DAY}]}}

pytestmark = pytest.mark.stand_in("enforces grants, and signs users in by their names")


@pytest.fixture
def tenant(make_tenant: Any, openfga: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Tenant:
    """A tenant that shares a warehouse until a day, as it is during that day."""
    for user in ("oidc~ann", "oidc~ben"):
        body = {"id": user, "name": user, "user-type": "human"}
        openfga.post("/management/v1/user", json=body).raise_for_status()
    tenant = make_tenant(grants=deepcopy([ENDING_GRANT, LASTING_GRANT]), role_members=deepcopy(MEMBERS))
    write_environment(tenant, openfga)
    openfga.headers["x-project-id"] = tenant.name
    set_clock(tenant, DURING)
    tenant.up()
    enter_project(tenant, monkeypatch)
    return tenant


def set_clock(tenant: Tenant, now: datetime) -> None:
    """Let the tenant's program read this time."""
    (tenant.folder / "__main__.py").write_text(
        "from datetime import datetime\n\nfrom lakewright import declare_tenant\n\n"
        f"declare_tenant(clock=lambda: datetime.fromisoformat('{now.isoformat()}'))\n"
    )


def list_access(server: httpx.Client) -> tuple[set[str], set[str]]:
    """Return the principals with `select` on the warehouse, and the members of `analysts`."""
    roles = {role["id"]: role["name"] for role in server.get("/management/v1/role").json()["roles"]}
    warehouse = server.get("/management/v1/warehouse").json()["warehouses"][0]["id"]
    permissions = "/management/v1/permissions"
    grants = server.get(f"{permissions}/warehouse/{warehouse}/assignments").json()["assignments"]
    analysts = next(role_id for role_id, name in roles.items() if name == "analysts")
    members = server.get(f"{permissions}/role/{analysts}/assignments").json()["assignments"]
    return (
        {entry.get("user") or roles[entry["role"]] for entry in grants if entry["type"] == "select"} & NAMED,
        {entry["user"] for entry in members if entry["type"] == "assignee"},
    )


NAMED = {"analysts", "oidc~ann"}
EVERYONE = ({"analysts", "oidc~ann"}, {"oidc~ann", "oidc~ben"})
LASTING = ({"oidc~ann"}, {"oidc~ann"})


def expire(tenant: Tenant, now: datetime) -> StackExpiry:
    """Remove what has ended, as the cluster's job does at a time."""
    project = load_project(tenant.folder)
    return expire_shares(project, select(project, Selection((tenant.name,))), clock=lambda: now)[0]


def compare(tenant: Tenant, now: datetime) -> DriftReport:
    """Return the drift of the tenant at a time."""
    project = load_project(tenant.folder)
    return find_drift(project, select(project, Selection((tenant.name,))), clock=lambda: now)


def test_up_removes_what_has_ended(tenant: Tenant, openfga: httpx.Client) -> None:
    assert list_access(openfga) == EVERYONE

    set_clock(tenant, AFTER)
    result = tenant.up()

    assert (result["changes"]["delete"], result["changes"]["update"]) == (1, 1)
    assert list_access(openfga) == LASTING
    assert tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}


def test_job_removes_what_has_ended_and_nothing_else(tenant: Tenant, openfga: httpx.Client) -> None:
    before = (tenant.folder / "state").rglob("*.json")
    states = {file: file.read_bytes() for file in before}

    assert expire(tenant, DURING).removed == []
    assert list_access(openfga) == EVERYONE
    expiry = expire(tenant, AFTER)

    assert [(name, principal.partition(" ")[0]) for name, principal in expiry.removed] == [
        (f"{tenant.name}-analysts", "user"),
        (f"{tenant.name}-role-analysts-select-warehouse-executions", "role"),
    ]
    assert list_access(openfga) == LASTING
    assert expire(tenant, AFTER).removed == []
    assert {file: file.read_bytes() for file in states} == states


def test_ended_shares_are_no_drift(tenant: Tenant, openfga: httpx.Client) -> None:
    assert compare(tenant, AFTER).stacks[0].drift == []
    expire(tenant, AFTER)

    assert compare(tenant, AFTER).stacks[0].drift == []
    differences = [*compare(tenant, DURING).differences()]
    during = [(item.resource.removeprefix(tenant.name), item.property) for item in differences]
    assert sorted(during) == [("-analysts", "users"), ("-role-analysts-select-warehouse-executions", "")]
    assert list_access(openfga) == LASTING


@pytest.mark.long
def test_later_end_renews_what_was_removed(tenant: Tenant, openfga: httpx.Client) -> None:
    expire(tenant, AFTER)
    tenant.spec["grants"][0]["until"] = "2041-06-30"
    tenant.spec["role_members"]["analysts"]["users"][1]["until"] = "2041-06-30"
    tenant.write()
    set_clock(tenant, AFTER)

    tenant.up()

    assert list_access(openfga) == EVERYONE
    assert compare(tenant, AFTER).stacks[0].drift == []


@pytest.mark.long
def test_user_of_a_unit_remains_a_member(make_tenant: Any, openfga: httpx.Client) -> None:
    """The unit is a member of its role without an end, whatever the spec says about its user."""
    unit = {"name": "cu", "runtime": "spark", "warehouse": "executions", "identity": {"client_id": "acme-cu"}}
    ending = {"executions-writer": {"users": [{"user": "oidc~acme-cu", "until": LAST_DAY}]}}
    tenant = make_tenant(computing_units=[unit], role_members=ending)
    jobs = {"kind": "client-credentials", "token_url": "https://idp.example/token", "client_id": "jobs-{tenant}"}
    jobs_auth = jobs | {"client_secret": "file:/run/clients/{tenant}"}
    write_environment(tenant, openfga, jobs_auth=jobs_auth, jobs_subject="{client_id}")
    set_clock(tenant, DURING)
    tenant.up()

    members = next(
        entry for entry in json.loads(tenant.output("grants", "--json"))["shares"] if entry["kind"] == "member"
    )

    assert (members["principal"], members["until"]) == ("user:oidc~acme-cu", None)
    set_clock(tenant, AFTER)
    assert tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}


def test_job_leaves_a_stack_that_is_updated(tenant: Tenant, openfga: httpx.Client) -> None:
    locks = tenant.folder / "state" / ".pulumi" / "locks" / "organization" / "lakewright" / tenant.name
    locks.mkdir(parents=True, exist_ok=True)
    lock = {"pid": 1, "username": "ann", "hostname": "elsewhere", "timestamp": "2040-07-01T00:00:00Z"}
    (locks / "a.json").write_text(json.dumps(lock))

    expiry = expire(tenant, AFTER)

    assert expiry.removed == []
    assert "an update is running" in expiry.problems[0]
    assert list_access(openfga) == EVERYONE


@pytest.mark.long
def test_grant_of_a_retained_warehouse_ends_with_its_stack(tenant: Tenant, openfga: httpx.Client) -> None:
    tenant.spec["warehouses"][0]["deletion"] = "retain"
    tenant.write()
    tenant.up()

    set_clock(tenant, AFTER)
    tenant.up()

    assert list_access(openfga) == LASTING


def list_holders(server: httpx.Client, warehouse_id: str, name: str) -> set[str]:
    """Return the names of the roles with `select` on a table of the namespace `results`."""
    roles = {role["id"]: role["name"] for role in server.get("/management/v1/role").json()["roles"]}
    tables_path = f"/catalog/v1/{warehouse_id}/namespaces/results/tables/{name}"
    table_id = server.get(tables_path).raise_for_status().json()["metadata"]["table-uuid"]
    permissions = f"/management/v1/permissions/warehouse/{warehouse_id}/table/{table_id}/assignments"
    grants = server.get(permissions).raise_for_status().json()["assignments"]
    return {roles[entry["role"]] for entry in grants if entry["type"] == "select"}


def test_grants_on_a_renamed_table_end(
    make_tenant: Any, openfga: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server keeps grants by the id of a table: a rename by the spec or by a job keeps them."""
    table = {"name": "executions.results.runs", "columns": [{"name": "id", "type": "long"}]}
    lasting, ending, removed = (
        {"to": f"role:{role}", "privilege": "select", "on": {"warehouse": "executions", "table": "results.runs"}}
        for role in ("analysts", "consumers", "auditors")
    )
    ending["until"] = LAST_DAY
    tenant = make_tenant(tables=[table], grants=deepcopy([lasting, ending, removed]))
    write_environment(tenant, openfga)
    openfga.headers["x-project-id"] = tenant.name
    set_clock(tenant, DURING)
    warehouse_id = tenant.up()["outputs"]["warehouse_ids"]["executions"]
    enter_project(tenant, monkeypatch)
    assert list_holders(openfga, warehouse_id, "runs") == {"analysts", "consumers", "auditors"}

    tenant.spec["tables"] = [table | {"name": "executions.results.jobs", "renamed_from": table["name"]}]
    renamed = {"warehouse": "executions", "table": "results.jobs"}
    tenant.spec["grants"] = [lasting | {"on": renamed}, ending | {"on": renamed}]
    tenant.write()
    tenant.up()

    assert list_holders(openfga, warehouse_id, "jobs") == {"analysts", "consumers"}
    assert tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}

    source, destination = ({"namespace": ["results"], "name": name} for name in ("jobs", "tasks"))
    body = {"source": source, "destination": destination}
    openfga.post(f"/catalog/v1/{warehouse_id}/tables/rename", json=body).raise_for_status()
    expiry = expire(tenant, AFTER)

    assert [name for name, _ in expiry.removed] == [
        f"{tenant.name}-role-consumers-select-table-executions.results.jobs"
    ]
    assert list_holders(openfga, warehouse_id, "tasks") == {"analysts"}


def test_grants_lists_what_ends(tenant: Tenant) -> None:
    tenant.spec["adopt"] = {"until": "2040-06-01"}
    tenant.write()

    document = json.loads(tenant.output("grants", "--expiring", "99999d", "--json"))
    everything = json.loads(tenant.output("grants", "--json"))["shares"]

    assert [(entry["kind"], entry["principal"], entry["on"], entry["until"]) for entry in document["shares"]] == [
        ("adopt", "adopt", tenant.name, "2040-06-02T00:00:00Z"),
        ("grant", "role:analysts", "warehouse executions", "2040-07-01T00:00:00Z"),
        ("member", "user:oidc~ben", "role analysts", "2040-07-01T00:00:00Z"),
    ]
    assert ("user:oidc~ann", None) in {(entry["principal"], entry["until"]) for entry in everything}
    assert "expected a number of hours, days or weeks" in tenant.error("grants", "--expiring", "soon")


def test_aws_ends_the_role_of_a_consumer(make_tenant: Any, aws: Any) -> None:
    """The program's clock is in the past, so that the role exists after its end, which AWS decides about."""
    tenant = make_tenant()
    set_clock(tenant, datetime(2000, 1, 1, tzinfo=UTC))
    name = f"{tenant.name}-consumer"
    arn = aws("iam").create_user(UserName=name)["User"]["Arn"]
    key = aws("iam").create_access_key(UserName=name)["AccessKey"]
    consumer = aws("sts", {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]})
    share = {"principal_arn": arn, "until": "9000-01-01"}
    tenant.spec["warehouses"][0]["shares"] = {"audit": share}
    tenant.write()
    role = tenant.up()["outputs"]["roles_of_others"]["executions"]["share-audit"]
    external_id = json.loads(tenant.output("external-ids", "--json"))[f"{tenant.name}-executions.share-audit"]
    request = {"RoleArn": role, "RoleSessionName": "audit", "ExternalId": external_id}
    session = consumer.assume_role(**request)["Credentials"]
    files = aws(
        "s3",
        {
            "aws_access_key_id": session["AccessKeyId"],
            "aws_secret_access_key": session["SecretAccessKey"],
            "aws_session_token": session["SessionToken"],
        },
    )
    location = {"Bucket": tenant.bucket, "Key": f"{tenant.name}/executions/a"}
    aws("s3").put_object(**location, Body=b"rows")
    assert files.get_object(**location)["Body"].read() == b"rows"

    share["until"] = "2001-01-01T00:00:00Z"
    tenant.write()
    tenant.up()

    with pytest.raises(ClientError, match="AccessDenied"):
        files.get_object(**location)
    with pytest.raises(ClientError, match="AccessDenied"):
        consumer.assume_role(**request)
    entry = next(
        entry for entry in json.loads(tenant.output("grants", "--json"))["shares"] if entry["kind"] == "aws role"
    )
    assert (entry["principal"], entry["until"], entry["ended"]) == ("audit", "2001-01-01T00:00:00Z", True)
    set_clock(tenant, datetime(2001, 1, 1, tzinfo=UTC))
    assert ("delete", "Role", f"lakewright.{tenant.name}.executions.share-audit") in list_changes(tenant.up())


def test_permission_to_adopt_ends(make_tenant: Any, aws: Any) -> None:
    tenant = make_tenant(adopt={"until": LAST_DAY})
    aws("s3").create_bucket(Bucket=tenant.bucket)

    set_clock(tenant, AFTER)
    refused = tenant.error("up", "--yes", "--engine", "embedded")
    set_clock(tenant, DURING)
    changes = list_changes(tenant.up("--adopt", f"bucket={tenant.bucket}"))

    assert "BucketAlreadyOwnedByYou" in refused
    assert ("adopt", "Bucket", f"{tenant.name}-main") in changes
