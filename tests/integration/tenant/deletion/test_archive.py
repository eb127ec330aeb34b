"""`deletion: archive`: a removed warehouse is read-only, is purged after an announcement, and can be reactivated."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from stat import S_IMODE
from types import ModuleType
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lakewright.cli.options import load_project
from lakewright.costs import archive_collection
from lakewright.deletions import archive_run
from lakewright.drift.detection.run import find_drift
from lakewright.drift.session import ScanSession
from lakewright.environment.loading import load_environment
from lakewright.fleet.selection import SelectedStack, Selection, select
from lakewright.fleet.spark_reports import SparkReport
from lakewright.fleet.states import BackendReader
from lakewright.http.retry import retry_until
from lakewright.lakekeeper.api.catalog import contents
from lakewright.lakekeeper.api.connection.client import Client, ClientPool
from lakewright.lakekeeper.api.connection.errors import BusyError, LakekeeperError
from lakewright.lakekeeper.archive import archive_records, read_only_roles
from lakewright.lakekeeper.archive.archiving import archive_warehouse, reactivate
from lakewright.lakekeeper.archive.read_only_roles import READ_ONLY_POLICY, build_read_only_policy
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.preflight import warehouse_contents
from lakewright.lakekeeper.provider.errors import ArchiveRefusedError
from lakewright.lakekeeper.warehouse import emptying
from lakewright.ownership.archive_mark import ArchiveMark
from lakewright.ownership.mark import Claimant
from lakewright.restrictions.model import StackRestrictions
from lakewright.restrictions.reading import read_restrictions
from lakewright.shares.expiry import StackExpiry, expire_shares
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.clock import Clock
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import TokenAuth
from lakewright_spark.migration.actions import Action, MigrationRoute, migrate_tables
from lakewright_spark.pyiceberg_client.catalog import open_catalog as open_configured_catalog
from lakewright_spark.scheduler.usage_recording import record_usage
from pyiceberg.catalog import Catalog

from tests.integration.tenant.conftest import (
    MakeTenant,
    Tenant,
    aws_client,
    bootstrap,
    enter_project,
    list_changes,
    serve,
    serve_grants,
    write_environment,
)

pytestmark = [
    pytest.mark.stand_in("advances the clock of the server, and signs users in by their names"),
    pytest.mark.timeout(600),
]

ARCHIVED = {"name": "executions", "namespaces": ["results"], "deletion": "archive", "purge_after": "90d"}
OTHER = {"name": "raw", "namespaces": ["landing"], "deletion": "purge"}
GRANTS = [
    {"to": "role:analysts", "privilege": "select", "on": {"warehouse": "executions"}},
    {"to": "role:analysts", "privilege": "modify", "on": {"warehouse": "executions"}},
]


@dataclass
class ArchivingTenant:
    """A tenant on a server whose clock can be advanced."""

    tenant: Tenant
    server: httpx.Client
    clock: Clock
    days: float = 0

    def advance(self, days: float) -> None:
        """Let the server's and this machine's clock be later."""
        self.clock.advance(days * 86_400)
        self.days += days

    def wait_for_purge(self) -> None:
        """Remove the warehouse from the spec, announce its purge, and let the time of the purge come."""
        self.remove_from_spec()
        self.advance(84)
        self.expire()
        self.advance(8)

    def expire(self, *permitted: str, machine_days: float | None = None) -> StackExpiry:
        """Run `lakewright expire` on this machine, whose clock may differ from that of the server."""
        days = self.days if machine_days is None else machine_days
        project = load_project(self.tenant.folder)
        now = datetime.now(UTC) + timedelta(days=days)
        selected = select(project, Selection((self.tenant.name,)))
        return expire_shares(project, selected, clock=lambda: now, permitted=permitted)[0]

    def read_restrictions(self) -> StackRestrictions:
        """Return the archives as `lakewright fleet status` reads them."""
        project = load_project(self.tenant.folder)
        now = datetime.now(UTC) + timedelta(days=self.days)
        return read_restrictions(project, select(project, Selection((self.tenant.name,))), clock=lambda: now)[0]

    def describe_archives(self) -> list[str]:
        """Return the sentences of `lakewright fleet status`, which the drift check has as notes."""
        project = load_project(self.tenant.folder)
        now = datetime.now(UTC) + timedelta(days=self.days)
        notes = find_drift(project, select(project, Selection((self.tenant.name,))), clock=lambda: now).notes
        sentences = self.read_restrictions().describe(now)
        assert [note.removeprefix(f"{self.tenant.name}: ") for note in notes] == sentences
        return sentences

    def remove_from_spec(self) -> dict[str, Any]:
        """Remove the warehouse from the spec and deploy that."""
        self.tenant.spec["warehouses"] = [OTHER]
        self.tenant.spec["grants"] = []
        self.tenant.write()
        return self.tenant.up()

    def declare_again(self, **changes: Any) -> None:
        """Declare the warehouse with `adopt`."""
        self.tenant.spec["warehouses"] = [{**ARCHIVED, "adopt": True, **changes}, OTHER]
        self.tenant.write()

    def list_privileges(self) -> set[str]:
        """Return the privileges of the role `analysts` on the archived warehouse."""
        warehouses = self.server.get("/management/v1/warehouse").json()["warehouses"]
        (warehouse_id,) = [entry["id"] for entry in warehouses if entry["name"] == "executions"]
        path = f"/management/v1/permissions/warehouse/{warehouse_id}/assignments"
        assignments = self.server.get(path).json()["assignments"]
        return {entry["type"] for entry in assignments if "role" in entry}

    def list_warehouses(self) -> set[str]:
        """Return the names of the warehouses on the server."""
        return {entry["name"] for entry in self.server.get("/management/v1/warehouse").json()["warehouses"]}

    def list_records(self) -> dict[str, dict[str, Any]]:
        """Return the roles that record archives and announcements, by the beginning of their names."""
        roles = self.server.get("/management/v1/role").json()["roles"]
        return {"-".join(role["name"].split("-")[:2]): role for role in roles if role["name"].startswith("lakewright-")}


@pytest.fixture
def archiving(
    make_tenant: MakeTenant, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ArchivingTenant]:
    """A deployed tenant with tables in a warehouse with `archive` and in another warehouse."""
    clock = Clock()
    with serve_grants(sandbox, tmp_path, clock) as server:
        bootstrap(server)
        tenant = make_tenant(warehouses=[ARCHIVED, OTHER], grants=GRANTS)
        write_environment(tenant, server)
        server.headers["x-project-id"] = tenant.name
        tenant.up()
        enter_project(tenant, monkeypatch)
        for warehouse, namespace in (("executions", "results"), ("raw", "landing")):
            open_catalog(tenant, warehouse).create_table(
                f"{namespace}.flights", schema=pa.schema([("n", pa.int64())])
            ).append(pa.table({"n": [1, 2, 3]}))
        yield ArchivingTenant(tenant, server, clock)


def open_catalog(tenant: Tenant, warehouse: str) -> Catalog:
    """Return a catalog with the rights of the operator: grants refuse it nothing."""
    from pyiceberg.catalog import load_catalog

    properties = tenant.catalog_config().pyiceberg("raw") | {"warehouse": f"{tenant.name}/{warehouse}"}
    return load_catalog(warehouse, **properties, token="operator")


def read_rows(tenant: Tenant, warehouse: str, namespace: str) -> list[int]:
    """Return the rows of the table of a warehouse."""
    return open_catalog(tenant, warehouse).load_table(f"{namespace}.flights").scan().to_arrow()["n"].to_pylist()


def append_row(tenant: Tenant) -> None:
    """Write to the warehouse with `archive`."""
    open_catalog(tenant, "executions").load_table("results.flights").append(pa.table({"n": [4]}))


def list_objects(aws: Callable[..., Any], tenant: Tenant, warehouse: str) -> list[str]:
    """Return the keys of the files of a warehouse."""
    contents = aws("s3").list_objects_v2(Bucket=tenant.bucket, Prefix=f"{tenant.name}/{warehouse}/").get("Contents")
    return [entry["Key"] for entry in contents or []]


def assert_read_only(archiving: ArchivingTenant) -> None:
    """Check that the data of the warehouse can be read and not be changed, although grants refuse nothing."""
    assert read_rows(archiving.tenant, "executions", "results") == [1, 2, 3]
    with pytest.raises(Exception, match=r"(?i)access.?denied|forbidden|permission"):
        append_row(archiving.tenant)
    assert read_rows(archiving.tenant, "executions", "results") == [1, 2, 3]


def assert_purged(archiving: ArchivingTenant, aws: Callable[..., Any]) -> None:
    """Check that the warehouse and its files no longer exist, and everything else does."""
    assert archiving.list_warehouses() == {"raw"}
    assert list_objects(aws, archiving.tenant, "executions") == []
    assert read_rows(archiving.tenant, "raw", "landing") == [1, 2, 3]
    assert archiving.list_records().keys() == {"lakewright-record"}


def test_removed_warehouse_is_read_only_until_it_is_purged(archiving: ArchivingTenant, aws: Callable[..., Any]) -> None:
    changes = list_changes(archiving.remove_from_spec())

    assert {op for op, kind, _ in changes if kind in {"Warehouse", "Namespace", "Role"}} == {"retain"}
    assert archiving.list_privileges() == {"select"}
    assert_read_only(archiving)

    archiving.advance(82)
    assert [archive.state for archive in archiving.expire().archives] == ["archived"]
    (sentence,) = archiving.describe_archives()
    assert "warehouse `executions` is archived since" in sentence
    assert "(not announced yet)" in sentence
    archiving.advance(2)
    expiry = archiving.expire()
    assert ([archive.state for archive in expiry.archives], expiry.problems) == (["announced"], [])
    assert "deletes the data of archived warehouse `executions` from" in archiving.tenant.output("preview")
    (archive,) = archiving.read_restrictions().archives
    assert archive.announced_at is not None
    assert archive.compute_earliest_purge(datetime.now(UTC)) == expiry.archives[0].purge_at
    assert "(announced)" in archiving.describe_archives()[0]
    archiving.advance(6.9)
    assert [archive.state for archive in archiving.expire().archives] == ["announced"]
    assert_read_only(archiving)

    archiving.advance(0.2)
    expiry = archiving.expire()

    assert ([archive.state for archive in expiry.archives], expiry.problems) == (["purged"], [])
    assert_purged(archiving, aws)
    assert archiving.expire().archives == []
    assert archiving.describe_archives() == []


def test_destroyed_warehouse_is_purged(archiving: ArchivingTenant, aws: Callable[..., Any]) -> None:
    archiving.tenant.spec["warehouses"][1]["deletion"] = "retain"
    archiving.tenant.write()
    archiving.tenant.up()
    archiving.tenant.verb("destroy", "--yes")
    archiving.advance(100)

    assert [archive.state for archive in archiving.expire().archives] == ["announced"]
    assert json.loads(archiving.tenant.output("expire", "--json"))["stacks"][0]["archives"][0]["state"] == "archived"
    status = json.loads(archiving.tenant.output("fleet", "status", "--json"))
    assert (status["command"], status["exit"]) == ("status", 0)
    assert status["stacks"][0]["archives"][0]["announced_at"]
    archiving.advance(7.1)
    expiry = archiving.expire()

    assert ([archive.state for archive in expiry.archives], expiry.problems) == (["purged"], [])
    assert archiving.list_warehouses() == {"raw"}
    assert list_objects(aws, archiving.tenant, "executions") == []
    assert list_objects(aws, archiving.tenant, "raw") != []


@pytest.mark.long
def test_stack_of_another_backend_purges_nothing(
    archiving: ArchivingTenant, aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After `destroy`, nothing but its backend distinguishes the stack from a stack of the same name."""
    tenant = archiving.tenant
    tenant.spec["warehouses"][1]["deletion"] = "retain"
    tenant.write()
    tenant.up()
    tenant.verb("destroy", "--yes")
    archiving.advance(100)
    assert [archive.state for archive in archiving.expire().archives] == ["announced"]
    archiving.advance(8)
    copy = tmp_path / "other-state"
    shutil.copytree(tenant.folder / "state", copy)
    monkeypatch.setenv("PULUMI_BACKEND_URL", copy.as_uri())

    expiry = archiving.expire()

    assert [archive.state for archive in expiry.archives] == ["refused"]
    assert "was archived from another backend of states" in expiry.problems[0]
    assert list_objects(aws, tenant, "executions") != []
    assert [archive.state for archive in archiving.expire("executions").archives] == ["purged"]


@pytest.mark.long
def test_declared_warehouse_is_writable_again(archiving: ArchivingTenant) -> None:
    archiving.remove_from_spec()
    archiving.advance(84)
    archiving.expire()
    archiving.declare_again()
    assert archiving.describe_archives()[0].endswith(" unless `up` runs before, which reactivates it")
    archiving.tenant.up()

    append_row(archiving.tenant)

    assert read_rows(archiving.tenant, "executions", "results") == [4, 1, 2, 3]
    assert archiving.list_records().keys() == {"lakewright-record"}
    archiving.advance(100)
    assert archiving.expire().archives == []
    assert archiving.list_warehouses() == {"executions", "raw"}
    assert archiving.tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}


@pytest.mark.long
def test_renamed_warehouse_is_writable_again(archiving: ArchivingTenant) -> None:
    """The role and the key prefix have the first name, which the spec no longer has."""
    tenant, renamed = archiving.tenant, {**ARCHIVED, "name": "runs"}
    tenant.spec |= {"warehouses": [{**renamed, "renamed_from": "executions"}, OTHER], "grants": []}
    tenant.write()
    tenant.up()
    tenant.spec["warehouses"] = [renamed, OTHER]
    tenant.write()
    tenant.up()
    archiving.remove_from_spec()
    tenant.spec["warehouses"] = [{**renamed, "adopt": True}, OTHER]
    tenant.write()

    previewed, done = tenant.verb("preview"), tenant.up()

    for changes in (list_changes(previewed), list_changes(done)):
        assert ("adopt", "Role", f"lakewright.{tenant.name}.runs") in changes
    open_catalog(tenant, "runs").load_table("results.flights").append(pa.table({"n": [4]}))
    assert read_rows(tenant, "runs", "results") == [4, 1, 2, 3]
    assert archiving.list_records().keys() == {"lakewright-record"}
    assert tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}


@pytest.mark.long
def test_roles_and_tables_are_taken_over_again(archiving: ArchivingTenant) -> None:
    """The server kept role, members and table, and the spec declares them with the warehouse."""
    tenant = archiving.tenant
    body = {"id": "oidc~ann", "name": "ann", "user-type": "human"}
    archiving.server.post("/management/v1/user", json=body).raise_for_status()
    table = {"name": "executions.results.orders", "columns": [{"name": "id", "type": "long"}]}
    view = {"name": "executions.results.latest", "sql": {"spark": "SELECT id FROM orders"}}
    parts = {
        "grants": GRANTS,
        "role_members": {"analysts": {"users": ["oidc~ann"]}},
        "tables": [table],
        "views": [view | {"columns": table["columns"]}],
    }
    tenant.spec |= parts
    tenant.write()
    tenant.up()
    tenant.spec |= {"tables": [], "views": [], "role_members": {}}
    archiving.remove_from_spec()
    archiving.advance(84)
    archiving.expire()

    tenant.spec |= parts
    archiving.declare_again()
    tenant.verb("preview")
    tenant.up()

    append_row(tenant)
    assert archiving.list_privileges() >= {"select", "modify"}
    assert archiving.list_records().keys() == {"lakewright-record"}
    assert tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}


@pytest.mark.long
def test_destroyed_tenant_is_writable_again(archiving: ArchivingTenant) -> None:
    tenant = archiving.tenant
    tenant.spec["warehouses"][1]["deletion"] = "retain"
    tenant.write()
    tenant.up()
    tenant.verb("destroy", "--yes")
    assert "lakewright-archive" in archiving.list_records()

    tenant.spec["adopt"] = True
    tenant.write()
    tenant.up()

    append_row(archiving.tenant)
    assert archiving.list_privileges() == {"select", "modify"}
    assert archiving.list_records().keys() == {"lakewright-record"}


@pytest.mark.pulumi_cli
@pytest.mark.timeout(900)
def test_archive_on_the_cli(archiving: ArchivingTenant, attached_providers: dict[str, str]) -> None:
    tenant = archiving.tenant
    tenant.environ = tenant.environ | attached_providers
    tenant.spec["warehouses"], tenant.spec["grants"] = [OTHER], []
    tenant.write()
    tenant.output("up", "--yes", "--engine", "pulumi")
    assert archiving.list_privileges() == {"select"}
    assert_read_only(archiving)

    archiving.declare_again()
    tenant.output("up", "--yes", "--engine", "pulumi")

    append_row(tenant)
    assert archiving.list_records().keys() == {"lakewright-record"}


def test_clock_alone_purges_nothing(archiving: ArchivingTenant, aws: Callable[..., Any]) -> None:
    """The clock of this machine is ahead of the server's."""
    archiving.remove_from_spec()

    announced = archiving.expire(machine_days=400)
    refused = archiving.expire(machine_days=400)

    assert [archive.state for archive in announced.archives + refused.archives] == ["refused", "refused"]
    assert "the server's time is" in refused.problems[0]
    assert list_objects(aws, archiving.tenant, "executions") != []
    archiving.advance(98)
    assert [archive.state for archive in archiving.expire(machine_days=0).archives] == ["archived"]


def change_mark(archiving: ArchivingTenant, **changes: Any) -> None:
    """Change the record of the archive, as another user of the server may."""
    role = archiving.list_records()["lakewright-archive"]
    mark = json.loads(role["description"]) | changes
    body = {"name": role["name"], "description": json.dumps(mark)}
    archiving.server.post(f"/management/v1/role/{role['id']}", json=body).raise_for_status()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"purge_after_days": 1}, "was changed at"),
        pytest.param({"record": "other"}, "was changed at", marks=pytest.mark.long),
        pytest.param({"bucket": "other"}, "was changed at", marks=pytest.mark.long),
        pytest.param({"version": 2}, "expected an archive mark of version 1", marks=pytest.mark.long),
        ({"stack": "other/other"}, None),
    ],
)
def test_changed_mark_purges_nothing(archiving: ArchivingTenant, changes: dict[str, Any], problem: str | None) -> None:
    archiving.remove_from_spec()
    change_mark(archiving, **changes)
    archiving.advance(200)
    archiving.expire()
    archiving.advance(8)

    expiry = archiving.expire()

    assert [archive.state for archive in expiry.archives] == (["refused"] if problem else [])
    assert problem is None or problem in expiry.problems[0]
    assert_read_only(archiving)


def make_foreign_project(archiving: ArchivingTenant) -> None:
    """Give the project the mark of another stack, as a takeover does."""
    role = archiving.list_records()["lakewright-record"]
    mark = json.loads(role["description"]) | {"stack": "other/other", "record": "other"}
    body = {"name": role["name"], "description": json.dumps(mark)}
    archiving.server.post(f"/management/v1/role/{role['id']}", json=body).raise_for_status()


def protect_table(archiving: ArchivingTenant) -> None:
    """Protect a table of the archived warehouse."""
    warehouses = archiving.server.get("/management/v1/warehouse").json()["warehouses"]
    (warehouse_id,) = [entry["id"] for entry in warehouses if entry["name"] == "executions"]
    table_id = open_catalog(archiving.tenant, "executions").load_table("results.flights").metadata.table_uuid
    path = f"/management/v1/warehouse/{warehouse_id}/table/{table_id}/protection"
    archiving.server.post(path, json={"protected": True}).raise_for_status()


def use_files_elsewhere(archiving: ArchivingTenant) -> None:
    """Fence the table, as a migration does while another catalog uses its files. IAM permits it for a moment."""
    role = f"lakewright.{archiving.tenant.name}.executions"
    iam = aws_client(archiving.tenant.sandbox, "iam")
    policy = iam.get_role_policy(RoleName=role, PolicyName=READ_ONLY_POLICY)["PolicyDocument"]
    iam.delete_role_policy(RoleName=role, PolicyName=READ_ONLY_POLICY)
    with open_catalog(archiving.tenant, "executions").load_table("results.flights").transaction() as transaction:
        transaction.set_properties({"gc.enabled": "false"})
    iam.put_role_policy(RoleName=role, PolicyName=READ_ONLY_POLICY, PolicyDocument=json.dumps(policy))


@pytest.mark.parametrize(
    ("interfere", "problem"),
    [
        pytest.param(make_foreign_project, "has not the mark of the stack", marks=pytest.mark.long),
        pytest.param(protect_table, "protected", marks=pytest.mark.long),
        (use_files_elsewhere, "has `gc.enabled=false`"),
    ],
    ids=["foreign", "protected", "fenced"],
)
def test_purge_is_refused(
    archiving: ArchivingTenant, interfere: Callable[[ArchivingTenant], None], problem: str
) -> None:
    archiving.remove_from_spec()
    archiving.advance(84)
    archiving.expire()
    interfere(archiving)
    archiving.advance(8)

    expiry = archiving.expire()

    assert [archive.state for archive in expiry.archives] == ["refused"]
    assert problem in expiry.problems[0]
    assert_read_only(archiving)


def find_warehouse(archiving: ArchivingTenant) -> dict[str, Any]:
    """Return the warehouse with `archive` as the server describes it."""
    warehouses = archiving.server.get("/management/v1/warehouse").json()["warehouses"]
    return next(entry for entry in warehouses if entry["name"] == "executions")


def require_empty(server: httpx.Client, path: str) -> None:
    """Raise AssertionError while the server lists soft-deleted tables, which it removes in the background."""
    assert server.get(path).json()["tabulars"] == []


@pytest.mark.long
def test_soft_deleted_table_postpones_the_purge(archiving: ArchivingTenant, aws: Callable[..., Any]) -> None:
    archiving.remove_from_spec()
    warehouse_id = find_warehouse(archiving)["id"]
    soft = {"delete-profile": {"type": "soft", "expiration-seconds": 30 * 86_400}}
    archiving.server.post(f"/management/v1/warehouse/{warehouse_id}/delete-profile", json=soft).raise_for_status()
    archiving.advance(84)
    archiving.expire()
    open_catalog(archiving.tenant, "executions").drop_table("results.flights")
    archiving.advance(8)

    expiry = archiving.expire()

    assert [archive.state for archive in expiry.archives] == ["refused"]
    assert "it holds soft-deleted tables or views, which can be restored until" in expiry.problems[0]
    assert "results.flights" in expiry.problems[0]
    assert list_objects(aws, archiving.tenant, "executions") != []
    path = f"/management/v1/warehouse/{warehouse_id}/deleted-tabulars"
    (deleted,) = archiving.server.get(path).json()["tabulars"]
    target = {"targets": [{"type": "table", "id": deleted["id"]}]}
    archiving.server.post(f"{path}/undrop", json=target).raise_for_status()
    assert_read_only(archiving)

    open_catalog(archiving.tenant, "executions").drop_table("results.flights")
    archiving.advance(31)
    retry_until(
        lambda: require_empty(archiving.server, path),
        lambda error: isinstance(error, AssertionError),
        seconds=30,
        every=0.2,
    )
    expiry = archiving.expire()

    assert ([archive.state for archive in expiry.archives], expiry.problems) == (["purged"], [])
    assert_purged(archiving, aws)


@pytest.fixture
def second_server(sandbox: Sandbox, tmp_path: Path) -> Iterator[httpx.Client]:
    """Another Lakekeeper, with the same object store and roles."""
    settings = Settings(
        database=f"sqlite:///{tmp_path / 'second.db'}",
        aws_endpoint=sandbox.aws.endpoint,
        credentials_file=sandbox.credentials_file,
        aws_system_identity=True,
    )
    with serve(create_app(settings)) as endpoint, httpx.Client(base_url=endpoint, timeout=60) as server:
        accepted = {"accept-terms-of-use": True, "is-operator": True}
        server.post("/management/v1/bootstrap", json=accepted).raise_for_status()
        yield server


def create_second_warehouse(archiving: ArchivingTenant, server: httpx.Client) -> CatalogConfig:
    """Create a warehouse at the same place, with a role of its own that the bucket lets in."""
    aws_client(archiving.tenant.sandbox, "s3").delete_bucket_policy(Bucket=archiving.tenant.bucket)
    profile = find_warehouse(archiving)["storage-profile"]
    iam, tenant = aws_client(archiving.tenant.sandbox, "iam"), archiving.tenant
    role = iam.get_role(RoleName=profile["assume-role-arn"].rpartition("/")[2])["Role"]
    rights = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    new_role = iam.create_role(
        RoleName=f"{tenant.name}-second",
        Path="/lakewright/",
        AssumeRolePolicyDocument=json.dumps(role["AssumeRolePolicyDocument"]),
    )["Role"]
    document = json.dumps({"Version": "2012-10-17", "Statement": [rights]})
    iam.put_role_policy(RoleName=new_role["RoleName"], PolicyName="all", PolicyDocument=document)
    external_id = role["AssumeRolePolicyDocument"]["Statement"][0]["Condition"]["StringEquals"]["sts:ExternalId"]
    body = {
        "warehouse-name": "second",
        "project-id": "00000000-0000-0000-0000-000000000000",
        "storage-profile": profile | {"assume-role-arn": new_role["Arn"], "sts-role-arn": new_role["Arn"]},
        "storage-credential": {"type": "s3", "credential-type": "aws-system-identity", "external-id": external_id},
        "delete-profile": {"type": "hard"},
    }
    response = server.post("/management/v1/warehouse", json=body)
    assert response.is_success, response.text
    warehouse = CatalogWarehouse(name="second", id=response.json()["warehouse-id"])
    return CatalogConfig(
        tenant="second",
        uri=f"{str(server.base_url).rstrip('/')}/catalog",
        project_id=body["project-id"],
        warehouses=[warehouse],
    )


def migrate_in_place(archiving: ArchivingTenant, target: CatalogConfig, folder: Path) -> None:
    """Migrate the tables of the warehouse to the end, without copies."""
    auth = TokenAuth(kind="token", token="env:STACK_TOKEN")
    source = archiving.tenant.catalog_config().model_copy(update={"auth": auth})
    route = MigrationRoute(source, "executions", target, "second")
    for action in (Action.REGISTER, Action.CUT_OVER, Action.FINISH):
        result = migrate_tables(route, folder / "ledger.db", action, depth="metadata")
        assert result.error is None, result.error


@pytest.mark.long
def test_table_of_another_catalog_stops_the_purge(
    archiving: ArchivingTenant, second_server: httpx.Client, aws: Callable[..., Any], tmp_path: Path
) -> None:
    """A migration in place gave the table to another Lakekeeper before its warehouse was archived."""
    target = create_second_warehouse(archiving, second_server)
    migrate_in_place(archiving, target, tmp_path)
    archiving.wait_for_purge()

    expiry = archiving.expire()

    assert [archive.state for archive in expiry.archives] == ["refused"]
    assert "`results.flights` of warehouse `second` at" in expiry.problems[0]
    catalog = open_configured_catalog(target, "second")
    assert catalog.load_table("results.flights").scan().to_arrow()["n"].to_pylist() == [1, 2, 3]
    catalog.purge_table("results.flights")
    retry_until(
        lambda: require_no_files(aws, archiving.tenant),
        lambda error: isinstance(error, AssertionError),
        seconds=30,
        every=0.2,
    )
    expiry = archiving.expire()
    assert ([archive.state for archive in expiry.archives], expiry.problems) == (["purged"], [])
    assert_purged(archiving, aws)


def require_no_files(aws: Callable[..., Any], tenant: Tenant) -> None:
    """Raise AssertionError while there are files of the warehouse, which the server deletes in the background."""
    assert list_objects(aws, tenant, "executions") == []


@pytest.mark.long
def test_bucket_of_another_stack_is_not_emptied(archiving: ArchivingTenant, aws: Callable[..., Any]) -> None:
    archiving.remove_from_spec()
    archiving.advance(84)
    archiving.expire()
    tags = {tag["Key"]: tag["Value"] for tag in aws("s3").get_bucket_tagging(Bucket=archiving.tenant.bucket)["TagSet"]}
    tag_set = [{"Key": name, "Value": value} for name, value in (tags | {"lakewright:record": "other"}).items()]
    aws("s3").put_bucket_tagging(Bucket=archiving.tenant.bucket, Tagging={"TagSet": tag_set})
    archiving.advance(8)

    expiry = archiving.expire()

    assert "has not the mark of stack" in expiry.problems[0]
    assert_read_only(archiving)


@pytest.mark.long
def test_other_deletion_of_a_declared_warehouse_archives_nothing(archiving: ArchivingTenant) -> None:
    archiving.tenant.spec["warehouses"] = [{"name": "executions", "namespaces": ["results"]}, OTHER]
    archiving.tenant.write()
    archiving.tenant.up()

    append_row(archiving.tenant)

    assert archiving.list_records().keys() == {"lakewright-record"}


@pytest.mark.long
def test_renamed_warehouse_is_not_archived(archiving: ArchivingTenant) -> None:
    archiving.tenant.spec["warehouses"] = [{**ARCHIVED, "name": "runs", "renamed_from": "executions"}, OTHER]
    archiving.tenant.spec["grants"] = []
    archiving.tenant.write()
    archiving.tenant.up()

    assert archiving.list_records().keys() == {"lakewright-record"}
    assert archiving.list_warehouses() == {"runs", "raw"}


@pytest.mark.long
def test_record_of_a_live_warehouse_purges_nothing(archiving: ArchivingTenant, aws: Callable[..., Any]) -> None:
    """Another user of the server records that a declared warehouse is archived, with the mark of its stack."""
    archiving.remove_from_spec()
    warehouses = archiving.server.get("/management/v1/warehouse").json()["warehouses"]
    (raw_id,) = [entry["id"] for entry in warehouses if entry["name"] == "raw"]
    mark = json.loads(archiving.list_records()["lakewright-archive"]["description"])
    forged = mark | {"warehouse": "raw", "key_prefix": f"{archiving.tenant.name}/raw"}
    body = {"name": f"lakewright-archive-{raw_id}", "description": json.dumps(forged)}
    archiving.server.post("/management/v1/role", json=body).raise_for_status()
    archiving.advance(84)
    archiving.expire()
    archiving.advance(8)

    expiry = archiving.expire()

    states = {archive.warehouse: archive.state for archive in expiry.archives}
    assert states == {"executions": "purged", "raw": "refused"}
    assert "`raw` is in the state of its stack" in expiry.problems[0]
    assert archiving.list_warehouses() == {"raw"}
    assert list_objects(aws, archiving.tenant, "executions") == []
    assert read_rows(archiving.tenant, "raw", "landing") == [1, 2, 3]


def build_mark(archiving: ArchivingTenant, *more_roles: str) -> tuple[str, ArchiveMark]:
    """Return the id of the declared warehouse, and the mark with which its archiving records it."""
    exported = json.loads(archiving.tenant.output("stack", "export"))
    resources = {resource["type"].rsplit(":", 1)[-1]: resource for resource in exported["deployment"]["resources"]}
    record = resources["TenantRecord"]["outputs"]["bucket_tag"]
    (warehouse,) = [
        entry
        for entry in archiving.server.get("/management/v1/warehouse").json()["warehouses"]
        if entry["name"] == "executions"
    ]
    tenant, name = archiving.tenant, archiving.tenant.name
    roles = (f"lakewright.{name}.executions", *more_roles)
    return warehouse["id"], ArchiveMark(
        f"lakewright/{name}", record, "executions", tenant.bucket, f"{name}/executions", 90, roles
    )


def archive_declared(archiving: ArchivingTenant) -> None:
    """Archive the warehouse, as a `destroy` does that is killed before it changes the state."""
    warehouse_id, mark = build_mark(archiving)
    body = {"name": f"lakewright-archive-{warehouse_id}", "description": mark.to_description()}
    archiving.server.post("/management/v1/role", json=body).raise_for_status()
    policy = json.dumps(build_read_only_policy())
    iam = aws_client(archiving.tenant.sandbox, "iam")
    iam.put_role_policy(RoleName=mark.roles[0], PolicyName=READ_ONLY_POLICY, PolicyDocument=policy)


@contextmanager
def open_project(archiving: ArchivingTenant) -> Iterator[tuple[Client, str]]:
    """Yield a client of the server, and the id of the tenant's project."""
    project = load_project(archiving.tenant.folder)
    (stack,) = select(project, Selection((archiving.tenant.name,)))
    session = ScanSession(project)
    try:
        opened = archive_run.open_project(session, ClientPool(shared=session.clients), stack)
        assert opened is not None
        yield opened
    finally:
        session.close()


def archive_by_provider(archiving: ArchivingTenant, *more_roles: str) -> None:
    """Archive the warehouse as the provider does, in the process of the test."""
    warehouse_id, mark = build_mark(archiving, *more_roles)
    aws = load_environment(load_project(archiving.tenant.folder), "sandbox").aws
    bucket = OwnBucket.model_validate(aws.describe_access(mark.bucket, archiving.tenant.sandbox.aws.region))
    with open_project(archiving) as (client, project_id):
        archive_warehouse(client, project_id, warehouse_id, bucket, mark)


def kill_after(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function after whose call the run is killed."""

    def call_and_kill(*arguments: Any) -> None:
        function(*arguments)
        raise KeyboardInterrupt

    return call_and_kill


def archive_until_killed(
    archiving: ArchivingTenant, monkeypatch: pytest.MonkeyPatch, module: ModuleType, function: str
) -> None:
    """Archive the warehouse in a run that is killed after a function of this module."""
    with monkeypatch.context() as patch:
        patch.setattr(module, function, kill_after(getattr(module, function)))
        with pytest.raises(KeyboardInterrupt):
            archive_by_provider(archiving)


@pytest.mark.long
def test_up_after_a_killed_archiving_reactivates(archiving: ArchivingTenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is killed when the roles are limited, and the warehouse is declared as before."""
    archive_until_killed(archiving, monkeypatch, read_only_roles, "limit_roles")
    assert_read_only(archiving)

    archiving.tenant.up()

    append_row(archiving.tenant)
    assert archiving.list_records().keys() == {"lakewright-record"}


@pytest.mark.long
def test_killed_archiving_counts_from_its_end(archiving: ArchivingTenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run is killed before it limits a role, and the warehouse is written until the next run."""
    archive_until_killed(archiving, monkeypatch, archive_records, "write_archive")
    first = archiving.list_records()["lakewright-archive"]["created-at"]
    archiving.advance(30)

    archive_by_provider(archiving)

    second = archiving.list_records()["lakewright-archive"]["created-at"]
    assert datetime.fromisoformat(second) - datetime.fromisoformat(first) >= timedelta(days=30)
    assert_read_only(archiving)


@pytest.mark.long
def test_refused_archiving_leaves_roles_that_write(archiving: ArchivingTenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role does not exist, or IAM refuses a call after it has limited a role."""
    with pytest.raises(ArchiveRefusedError, match="role `missing` of the warehouse does not exist"):
        archive_by_provider(archiving, "missing")
    limit_roles = read_only_roles.limit_roles

    def limit_and_refuse(*arguments: Any) -> None:
        limit_roles(*arguments)
        raise ArchiveRefusedError("IAM responded Throttling")

    monkeypatch.setattr(read_only_roles, "limit_roles", limit_and_refuse)
    with pytest.raises(ArchiveRefusedError, match="Throttling"):
        archive_by_provider(archiving)

    append_row(archiving.tenant)
    assert archiving.list_records().keys() == {"lakewright-record"}


@pytest.mark.long
def test_role_that_left_the_spec_is_limited(archiving: ArchivingTenant) -> None:
    """The stack retains the role with its rights. A reactivation restores them."""
    tenant, iam = archiving.tenant, aws_client(archiving.tenant.sandbox, "iam")
    role = f"lakewright.{tenant.name}.executions.maintenance"
    principal = {"principal_arn": tenant.sandbox.aws.catalog_principal_arn}
    for changes in ({"maintenance_role": principal}, {}):
        tenant.spec["warehouses"] = [ARCHIVED | changes, OTHER]
        tenant.write()
        tenant.up()

    archiving.remove_from_spec()

    assert READ_ONLY_POLICY in iam.list_role_policies(RoleName=role)["PolicyNames"]
    assert role in json.loads(archiving.list_records()["lakewright-archive"]["description"])["roles"]
    archiving.declare_again()
    tenant.up()
    assert READ_ONLY_POLICY not in iam.list_role_policies(RoleName=role)["PolicyNames"]


@pytest.mark.long
def test_unreadable_record_restores_the_declared_roles(archiving: ArchivingTenant) -> None:
    archiving.remove_from_spec()
    change_mark(archiving, version=2)
    archiving.declare_again()

    archiving.tenant.up()

    append_row(archiving.tenant)
    assert archiving.list_records().keys() == {"lakewright-record"}


@pytest.mark.long
def test_reactivation_without_a_bucket_is_refused(archiving: ArchivingTenant) -> None:
    """A stack that declares `backend: existing` cannot restore the roles, and leaves the record."""
    archiving.remove_from_spec()
    warehouse_id, mark = build_mark(archiving)

    with (
        open_project(archiving) as (client, project_id),
        pytest.raises(ArchiveRefusedError, match=rf"its roles \({mark.roles[0]}\) in IAM"),
    ):
        reactivate(client, project_id, warehouse_id, None, Claimant(mark.stack, mark.record), declared_roles=[])

    assert "lakewright-archive" in archiving.list_records()


@pytest.mark.long
def test_announcement_of_an_earlier_archive_is_deleted(archiving: ArchivingTenant) -> None:
    """A user deleted the record of the earlier archive by hand, and not its announcement."""
    warehouse_id, _ = build_mark(archiving)
    with open_project(archiving) as (client, project_id):
        archive_records.announce(client, project_id, warehouse_id, "an earlier purge")

    archiving.remove_from_spec()

    assert archiving.list_records().keys() == {"lakewright-archive", "lakewright-record"}


@pytest.mark.long
def test_declared_warehouse_is_never_purged(archiving: ArchivingTenant) -> None:
    """The state keeps another removed warehouse, so the run looks for archives."""
    archiving.remove_from_spec()
    archiving.advance(84)
    archiving.expire()
    record = archiving.list_records()["lakewright-archive"]
    archiving.declare_again()
    archiving.tenant.up()
    body = {"name": record["name"], "description": record["description"]}
    archiving.server.post("/management/v1/role", json=body).raise_for_status()
    archiving.advance(200)
    archiving.expire()
    archiving.advance(8)

    expiry = archiving.expire()

    assert "is in the state of its stack" in expiry.problems[0]
    append_row(archiving.tenant)
    assert archiving.list_warehouses() == {"executions", "raw"}


@pytest.mark.long
def test_killed_purge_is_completed(
    archiving: ArchivingTenant, aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    archiving.wait_for_purge()

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(emptying, "empty", kill)
        with pytest.raises(KeyboardInterrupt):
            archiving.expire()
    assert archiving.list_warehouses() == {"raw"}
    aws("s3").put_object(Bucket=archiving.tenant.bucket, Key=f"{archiving.tenant.name}/executions/left", Body=b"1")

    expiry = archiving.expire()

    assert ([archive.state for archive in expiry.archives], expiry.problems) == (["purged"], [])
    assert_purged(archiving, aws)


@pytest.mark.long
def test_purge_killed_at_its_end_is_completed(
    archiving: ArchivingTenant, aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is killed between the deletions of the record and the announcement."""
    archiving.wait_for_purge()
    with monkeypatch.context() as patch:
        patch.setattr(archive_records.roles, "delete", kill_after(archive_records.roles.delete))
        with pytest.raises(KeyboardInterrupt):
            archiving.expire()

    expiry = archiving.expire()

    assert (expiry.archives, expiry.problems) == ([], [])
    assert_purged(archiving, aws)


def begin_purge_and_kill(archiving: ArchivingTenant, monkeypatch: pytest.MonkeyPatch, module: Any, step: str) -> None:
    """Let the time of the purge come, and kill the run at a step of it."""
    archiving.wait_for_purge()

    def kill(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, step, kill)
        with pytest.raises(KeyboardInterrupt):
            archiving.expire()


@pytest.mark.long
def test_up_refuses_a_half_purged_warehouse(
    archiving: ArchivingTenant, aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is killed after it dropped the tables and before it deletes the warehouse."""
    begin_purge_and_kill(archiving, monkeypatch, contents, "delete_namespace")
    assert archiving.list_warehouses() == {"executions", "raw"}
    archiving.declare_again()

    for verb in (("preview",), ("up", "--yes")):
        text = " ".join(archiving.tenant.error(*verb).split())
        assert "warehouse `executions` cannot be used: `lakewright expire` has begun to delete its data" in text
        assert "Run `lakewright expire` until it has deleted the warehouse, then run `up`" in text

    assert "lakewright-archive" in archiving.list_records()
    expiry = archiving.expire()
    assert ([archive.state for archive in expiry.archives], expiry.problems) == (["purged"], [])
    assert_purged(archiving, aws)
    archiving.tenant.up()
    assert archiving.list_warehouses() == {"executions", "raw"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "step"),
    [
        (warehouse_contents, "remove"),
        (emptying, "empty"),
    ],
    ids=["before-the-removal", "before-the-emptying"],
)
def test_up_during_a_purge_is_refused(
    archiving: ArchivingTenant, aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, module: Any, step: str
) -> None:
    archiving.wait_for_purge()
    archiving.declare_again()
    delete, errors = getattr(module, step), list[str]()

    def delete_after_update(*arguments: Any) -> None:
        errors.append(archiving.tenant.error("up", "--yes"))
        delete(*arguments)

    monkeypatch.setattr(module, step, delete_after_update)

    expiry = archiving.expire()

    assert "has begun to delete its data" in errors[0]
    assert ([archive.state for archive in expiry.archives], expiry.problems) == (["purged"], [])
    assert_purged(archiving, aws)


@pytest.mark.long
def test_purge_refuses_an_update_that_began_before(archiving: ArchivingTenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The update holds the lock of the stack when the purge begins, and may have read that it had not begun."""
    archiving.wait_for_purge()
    call, backend = archive_records.note_begin, load_project(archiving.tenant.folder).backend()

    with ExitStack() as locks, monkeypatch.context() as patch:

        def call_and_lock(*arguments: Any) -> None:
            call(*arguments)
            locks.enter_context(backend.lock("lakewright", archiving.tenant.name))

        patch.setattr(archive_records, "note_begin", call_and_lock)
        expiry = archiving.expire()

    assert [archive.state for archive in expiry.archives] == ["refused"]
    assert "an update is running" in expiry.problems[0]
    assert_read_only(archiving)
    assert "deletes the data of archived warehouse `executions` from" in archiving.tenant.output("preview")
    archiving.declare_again()
    archiving.tenant.up()
    append_row(archiving.tenant)


def test_archive_of_a_stack_in_an_update_waits(archiving: ArchivingTenant) -> None:
    """The run reports that it did nothing, also where the stack has no access that ends."""
    archiving.wait_for_purge()
    backend = load_project(archiving.tenant.folder).backend()

    with backend.lock("lakewright", archiving.tenant.name):
        expiry = archiving.expire()

    assert expiry.archives == []
    assert "an update is running" in expiry.problems[0]
    assert_read_only(archiving)


@pytest.mark.long
def test_backend_without_locks_needs_a_permission(archiving: ArchivingTenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update of the stack could run unseen, as with states in Google Cloud Storage."""
    archiving.wait_for_purge()
    read = BackendReader.read
    monkeypatch.setattr(BackendReader, "read", lambda *arguments: replace(read(*arguments), reports_locks=False))

    expiry = archiving.expire()

    assert [archive.state for archive in expiry.archives] == ["refused"]
    assert "does not report whether stack" in expiry.problems[0]
    assert f"`lakewright expire --stack {archiving.tenant.name} --purge executions`" in expiry.problems[0]
    assert_read_only(archiving)
    assert [archive.state for archive in archiving.expire("executions").archives] == ["purged"]


@pytest.mark.long
def test_failed_purge_leaves_the_warehouse_read_only(
    archiving: ArchivingTenant, aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    archiving.wait_for_purge()

    def fail(*_: object) -> None:
        raise LakekeeperError("the server is busy")

    with monkeypatch.context() as patch:
        patch.setattr(warehouse_contents, "remove", fail)
        expiry = archiving.expire()

    assert expiry.problems == ["the server is busy"]
    assert_read_only(archiving)

    def time_out(*_: object) -> None:
        raise BusyError("tasks are unfinished", status=409, kind="")

    with monkeypatch.context() as patch:
        patch.setattr(warehouse_contents, "remove", time_out)
        expiry = archiving.expire()

    assert "can write until the next `lakewright expire`: the server has not yet deleted" in expiry.problems[0]
    assert [archive.state for archive in archiving.expire().archives] == ["purged"]
    assert_purged(archiving, aws)


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "step", "states", "deleted"),
    [
        (archive_records, "delete_purged_archive", ["purged", "refused"], "This run deleted nothing of it"),
        (warehouse_contents, "remove", ["refused", "refused"], "Its tables were deleted, and its other files"),
    ],
    ids=["after a purge", "during a purge"],
)
def test_unreadable_state_hides_no_purge(
    archiving: ArchivingTenant,
    monkeypatch: pytest.MonkeyPatch,
    *,
    module: ModuleType,
    step: str,
    states: list[str],
    deleted: str,
) -> None:
    """Two archives are due, and the state is damaged while the first of them is purged."""
    tenant, call = archiving.tenant, getattr(module, step)
    tenant.spec["warehouses"] = [ARCHIVED, OTHER | {"deletion": "archive", "purge_after": "90d"}]
    tenant.write()
    tenant.up()
    tenant.verb("destroy", "--yes")
    archiving.advance(100)
    archiving.expire()
    archiving.advance(8)
    (file,) = (tenant.folder / "state").rglob(f"{tenant.name}.json")
    state = file.read_bytes()

    def call_and_damage(*arguments: Any) -> None:
        call(*arguments)
        file.write_text("{")

    with monkeypatch.context() as patch:
        patch.setattr(module, step, call_and_damage)
        expiry = archiving.expire()

    assert [archive.state for archive in expiry.archives] == states
    assert len(expiry.problems) == states.count("refused")
    assert all("the state of its stack cannot be read" in problem for problem in expiry.problems)
    assert deleted in expiry.problems[0]
    file.write_bytes(state)
    assert {archive.state for archive in archiving.expire().archives} == {"purged"}
    assert archiving.list_warehouses() == set()


@pytest.mark.long
def test_interrupted_purge_remains_interrupted(archiving: ArchivingTenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """IAM limits no role after the user's interrupt."""

    def refuse(*_: object) -> None:
        raise ArchiveRefusedError("IAM responded Throttling")

    monkeypatch.setattr(read_only_roles, "limit_roles", refuse)
    begin_purge_and_kill(archiving, monkeypatch, warehouse_contents, "remove")


@pytest.mark.long
def test_partly_restored_roles_are_limited_again(archiving: ArchivingTenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """IAM refuses to restore the second role, and the third role does not exist.

    The purge has deleted nothing, so `up` reactivates the warehouse.
    """
    tenant, iam = archiving.tenant, aws_client(archiving.tenant.sandbox, "iam")
    archiving.remove_from_spec()
    role = archiving.list_records()["lakewright-archive"]
    mark = json.loads(role["description"])
    second, first_role = f"{tenant.name}-second", iam.get_role(RoleName=mark["roles"][0])["Role"]
    iam.create_role(
        RoleName=second,
        AssumeRolePolicyDocument=json.dumps(first_role["AssumeRolePolicyDocument"]),
        Tags=first_role["Tags"],
    )
    archiving.server.delete(f"/management/v1/role/{role['id']}").raise_for_status()
    body = {"name": role["name"], "description": json.dumps(mark | {"roles": [*mark["roles"], second, "missing"]})}
    archiving.server.post("/management/v1/role", json=body).raise_for_status()
    archiving.advance(84)
    archiving.expire()
    archiving.advance(8)
    restore = read_only_roles.restore_roles

    def restore_first(bucket: OwnBucket, names: Iterable[str], claimant: Claimant) -> None:
        first, *_ = names
        restore(bucket, [first], claimant)
        assert iam.list_role_policies(RoleName=first)["PolicyNames"].count(READ_ONLY_POLICY) == 0
        raise ArchiveRefusedError("IAM responded Throttling")

    with monkeypatch.context() as patch:
        patch.setattr(read_only_roles, "restore_roles", restore_first)
        expiry = archiving.expire()

    assert expiry.problems == ["IAM responded Throttling"]
    assert READ_ONLY_POLICY in iam.list_role_policies(RoleName=mark["roles"][0])["PolicyNames"]
    assert_read_only(archiving)
    archiving.declare_again()
    tenant.up()
    append_row(tenant)


@pytest.mark.long
def test_archives_are_read_where_the_stack_sends_its_token(archiving: ArchivingTenant) -> None:
    """The jobs have another address without TLS. The secret's file is deleted, and begun purges are left out."""
    tenant, endpoint = archiving.tenant, str(archiving.server.base_url).rstrip("/")
    archiving.remove_from_spec()
    write_environment(tenant, archiving.server, catalog_uri="http://catalog.example/catalog")
    project = load_project(tenant.folder)
    selected = select(project, Selection((tenant.name,)))
    secrets: list[Path] = []

    def record(command: Sequence[str], stacks: Sequence[SelectedStack]) -> list[SparkReport]:
        config = json.loads(Path(command[1]).read_text())[tenant.name]["config"]
        assert config["uri"] == f"{endpoint}/catalog"
        secrets.append(Path(config["auth"]["token"].removeprefix("file:")))
        assert (secrets[0].read_text(), S_IMODE(secrets[0].stat().st_mode)) == ("operator", 0o600)
        return [SparkReport(stacks[0], {"days": {"executions": 1}})]

    (archives,) = archive_collection.record_archives(project, selected, record)

    assert (archives.days, archives.problem) == ({"executions": 1}, "")
    assert not secrets[0].parent.exists()
    role = archiving.list_records()["lakewright-archive"]
    name = role["name"].replace("lakewright-archive", "lakewright-purge")
    body = {"name": name, "description": "`lakewright expire` deletes the data of the warehouse"}
    archiving.server.post("/management/v1/role", json=body).raise_for_status()
    assert archive_collection.record_archives(project, selected, record) == []


def test_token_in_the_configuration_of_the_stack(archiving: ArchivingTenant) -> None:
    """The environment's reference leaves out the project of the key, as it does for `up`."""
    tenant = archiving.tenant
    tokens: list[str] = []
    archiving.remove_from_spec()
    tenant.output("config", "set", "lakekeeper_token", "operator", "--secret")
    write_environment(tenant, archiving.server, auth={"kind": "token", "token": "config:lakekeeper_token"})
    tenant.environ["STACK_TOKEN"] = "nobody"
    archiving.advance(84)

    def record(command: Sequence[str], stacks: Sequence[SelectedStack]) -> list[SparkReport]:
        config = json.loads(Path(command[1]).read_text())[tenant.name]["config"]
        tokens.append(Path(config["auth"]["token"].removeprefix("file:")).read_text())
        return [SparkReport(stacks[0], {"days": {"executions": 1}})]

    project = load_project(tenant.folder)
    selected = select(project, Selection((tenant.name,)))
    (archives,) = archive_collection.record_archives(project, selected, record)
    expiry = archiving.expire()

    assert (archives.days, archives.problem, tokens) == ({"executions": 1}, "", ["operator"])
    assert ([archive.state for archive in expiry.archives], expiry.problems) == (["announced"], [])
    assert [archive.warehouse for archive in archiving.read_restrictions().archives] == ["executions"]


@pytest.mark.long
def test_days_of_an_archive_outlive_its_purge(archiving: ArchivingTenant, aws: Callable[..., Any]) -> None:
    """The jobs may not read the archived warehouse, and nothing can write it."""
    tenant = archiving.tenant
    write_environment(tenant, archiving.server, jobs_auth={"kind": "token", "token": "env:STACK_TOKEN"})
    tenant.up()
    config, now = tenant.catalog_config(), datetime.now(UTC)
    catalogs = {name: open_catalog(tenant, name) for name in ("executions", "raw")}
    for age in (3, 2):
        assert record_usage(config, catalogs, now - timedelta(days=age))[1] == []
    archiving.remove_from_spec()

    def list_days() -> dict[str, int]:
        reports = json.loads(tenant.output("fleet", "usage", "--since", "30d", "--prices", "prices.yaml", "--json"))
        days: dict[str, int] = {}
        for row in reports["focus"]:  # a row for each month
            if row["SkuId"] == "storage-live":
                name, number = row["ResourceName"], int(row["ChargeDescription"].split()[-2])
                days[name] = days.get(name, 0) + number
        return days

    archived_at = datetime.fromisoformat(archiving.list_records()["lakewright-archive"]["created-at"])

    def count_archived_days() -> int:
        return (datetime.now(UTC).date() - archived_at.astimezone(UTC).date()).days + 1

    (tenant.folder / "prices.yaml").write_text("currency: EUR\nstorage_gb_month: 1\n")
    assert list_days() == {"raw": 2}

    least = count_archived_days()
    first = json.loads(tenant.output("record-compute", "--json"))["archives"]
    second = json.loads(tenant.output("record-compute", "--json"))["archives"]

    most = count_archived_days()  # midnight may have passed
    added = [entry["days"]["executions"] for entry in (*first, *second)]
    assert 2 + least <= sum(added) <= 2 + most
    assert added[1] <= most - least
    assert list_days() == {"raw": 2, "executions": sum(added)}
    archiving.advance(84)
    archiving.expire()
    archiving.advance(8)
    assert [archive.state for archive in archiving.expire().archives] == ["purged"]
    assert list_days() == {"raw": 2, "executions": sum(added)}
