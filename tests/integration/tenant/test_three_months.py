"""Three months of a tenant on a moved clock: a limit is reached and left, a share ends, an archive is purged.

The servers are real HTTP and S3. Every fourth day, a user writes, the commands of the cluster run, and the usage of the
day is recorded, whose costs are compared with the objects in S3, to the byte. LAKEWRIGHT_FULL=1 records each of the 92
days. CloudWatch's requests come from moto, as clients cannot write them.
"""

from __future__ import annotations

import os
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import httpx
import pyarrow as pa
import pytest
from lakewright.cli.options import load_project
from lakewright.cli.stack_reports import read_stack_reports
from lakewright.costs.cost_report import DAYS_COMMAND, CostReport, Grouping
from lakewright.costs.prices import Prices
from lakewright.costs.store_requests import add_requests
from lakewright.drift.detection.run import find_drift
from lakewright.fleet.selection import SelectedStack, Selection, select
from lakewright.fleet.spark_reports import SparkReport
from lakewright.limits.enforcement import enforce_limits
from lakewright.limits.stack_enforcement import StackEnforcement
from lakewright.shares.expiry import StackExpiry, expire_shares
from lakewright_sandbox.aws import ACCOUNT_ID
from lakewright_sandbox.lakekeeper.protocol.clock import Clock
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.cli.usage import limits_to_json
from lakewright_spark.maintenance.jobs.statistics import TABLES
from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.pyiceberg_client.limit_checks import list_limit_uses
from lakewright_spark.pyiceberg_client.usage import measure, measure_usage
from lakewright_spark.scheduler.archived_usage import ArchivedWarehouses, record_archived_usage
from lakewright_spark.scheduler.run_log.compute_usage import PodDay, write_pod_days
from lakewright_spark.scheduler.run_log.ops_tables import append
from lakewright_spark.scheduler.usage_recording import record_usage
from moto import mock_aws
from moto.cloudwatch.models import cloudwatch_backends
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from tests.integration.tenant.conftest import (
    MakeTenant,
    Tenant,
    bootstrap,
    enter_project,
    serve_grants,
    write_environment,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.stand_in("advances the clock of the server, and signs users in by their names"),
    pytest.mark.timeout(1800),
]

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
DAYS = 92
ARCHIVED_ON = 10
PURGED_ON = 54
"""Active day on which the commands of the cluster purge the archive."""
ACTIVE_DAYS = range(2, DAYS, 4)
RECORDED_DAYS = range(1, DAYS) if FULL else ACTIVE_DAYS
EXPIRED_DAYS = range(10, DAYS, 8)
"""Days on which snapshots of the tables in `ops` are expired, as each night of maintenance does."""
DROPPED_ON, LOST_ON, CLEANED_ON = 20, 30, 60
"""Days on which a table is dropped, a file is lost, and the file is deleted."""
DROPPED_DAYS = range(DROPPED_ON, DROPPED_ON + 8)
"""Days on which the server still has the table, which is dropped in the afternoon, for seven days."""
ROWS = pa.table({"n": pa.array([n * 0x9E3779B97F4A7C15 % 2**63 for n in range(10_000)], pa.int64())})
"""Rows of a day, which take about 80 KB."""
LIMIT = 1_200_000
WRITING_GRANTS = 3
"""Grants of `create` and `modify`: of the role `analysts`, and two of the role `executions-writer`."""
OLD = {"name": "old", "namespaces": ["results"], "deletion": "archive", "purge_after": "40d"}
PRICES = {"storage_gb_month": "1000000", "cu_hour": "0.25", "requests_1000": "0.4", "maintenance_hour": "7"}
RAW = {"name": "raw", "namespaces": ["landing"], "soft_delete_days": 7}

Amounts = dict[tuple[str, str, str], Fraction]
"""Amounts by day, warehouse and SKU."""


@dataclass
class SimulatedTenant:
    """A tenant whose days pass: on its server, in its program, and in the commands of the cluster."""

    tenant: Tenant
    server: httpx.Client
    clock: Clock
    start: datetime
    now: datetime
    config: CatalogConfig
    """Configuration that the last update exported."""
    amounts: Amounts = field(default_factory=Amounts)
    """Expected amounts: bytes as S3 lists them, hours of pods, and requests."""
    lost_file: str | None = None
    """Key of a file that no table has."""
    dropped_table: str = ""
    """Key prefix of the data files of the dropped table."""
    removed_tables: set[str] = field(default_factory=set[str])
    """Key prefixes of the data files of tables that no longer exist."""

    def begin_day(self, day: int) -> None:
        """Let the day begin."""
        moment = self.start + timedelta(days=day)
        self.clock.advance((moment - self.now).total_seconds())
        self.now = moment
        program = "from datetime import datetime\n\nfrom lakewright import declare_tenant\n\n"
        program += f"declare_tenant(clock=lambda: datetime.fromisoformat('{moment.isoformat()}'))\n"
        (self.tenant.folder / "__main__.py").write_text(program)

    def open(self, warehouse: str, user: str) -> Catalog:
        """Return a catalog with the rights of a user."""
        properties = self.config.pyiceberg("executions")
        del properties["auth"]
        return load_catalog(warehouse, **properties | {"warehouse": f"{self.tenant.name}/{warehouse}", "token": user})

    @property
    def day(self) -> str:
        """UTC day."""
        return f"{self.now:%F}"

    def update(self) -> None:
        """Deploy the spec, and read the configuration that the update exports."""
        self.tenant.write()
        self.tenant.up()
        self.config = self.tenant.catalog_config()

    def record_day(self, aws: Callable[..., Any]) -> None:
        """Record hours and usage of the day, as `record-compute` and `maintain` do, and the amounts that S3 has."""
        number = (self.now - self.start).days
        catalogs = {warehouse.name: open_catalog(self.config, warehouse.name) for warehouse in self.config.warehouses}
        if number in EXPIRED_DAYS:
            for catalog in catalogs.values():
                expire_ops(catalog)
        if number % 3 == 0:
            seconds = 900 * (number % 7 + 1)
            pod = PodDay(day=self.day, unit="notebook", pod=f"pod-{number}", seconds=seconds)
            write_pod_days(catalogs["executions"], [pod], self.now)
            self.amounts[self.day, "executions", "compute"] = Fraction(seconds, 3600)
        self.count_amounts(aws, *catalogs)
        _, problems = record_usage(self.config, catalogs, self.now)
        assert problems == []

    def count_amounts(self, aws: Callable[..., Any], *warehouses: str) -> None:
        """Let the day have the amounts of these warehouses that S3 has."""
        sizes = self.list_objects(aws)
        for warehouse in warehouses:
            orphan = sizes.get(self.lost_file or "", 0) if warehouse == "raw" else 0
            # The files remain in S3: the drop does not request a purge.
            is_kept = (self.now - self.start).days in DROPPED_DAYS and warehouse == "raw"
            dropped = sum_sizes(sizes, self.dropped_table) if is_kept else 0
            self.amounts |= {
                (self.day, warehouse, "storage"): Fraction(self.sum_data(sizes, warehouse) - orphan),
                (self.day, warehouse, "storage-orphan"): Fraction(orphan),
                (self.day, warehouse, "storage-soft-deleted"): Fraction(dropped),
            }

    def record_archive(self) -> int:
        """Record the days of the archived warehouse, as `record-compute` does. Return the number of added rows."""
        roles = self.server.get("/management/v1/role").json()["roles"]
        (record,) = [role for role in roles if role["name"].startswith("lakewright-archive-")]
        warehouse_id = record["name"].removeprefix("lakewright-archive-")
        config = self.config.model_copy(update={"warehouses": [CatalogWarehouse(name="old", id=warehouse_id)]})
        archives = ArchivedWarehouses(config, {"old": datetime.fromisoformat(record["created-at"])})
        added, problems = record_archived_usage(self.config, archives, self.now)
        assert problems == []
        return added["old"]

    def list_objects(self, aws: Callable[..., Any]) -> dict[str, int]:
        """Return the bytes of each object of the tenant's bucket by key."""
        pages = aws("s3").get_paginator("list_objects_v2").paginate(Bucket=self.tenant.bucket)
        return {entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", ())}

    def sum_data(self, sizes: Mapping[str, int], warehouse: str) -> int:
        """Return the bytes of the data files of a warehouse's tables."""
        removed = tuple(self.removed_tables)
        prefix = f"{self.tenant.name}/{warehouse}/"
        return sum(
            size
            for key, size in sizes.items()
            if key.startswith(prefix) and "/data/" in key and not key.startswith(removed)
        )

    def drop_table(self) -> None:
        """Drop a table in the afternoon, whose size is recorded, and which the server keeps for seven days."""
        self.clock.advance(timedelta(hours=12).total_seconds())
        self.now += timedelta(hours=12)
        catalog = self.open("raw", "operator")
        table = catalog.load_table("landing.dropped")
        size = measure(table)
        row = {column.split()[0]: None for column in TABLES.columns.split(",")}
        row |= {"table_uuid": str(table.metadata.table_uuid), "collected_at": self.now}
        append(catalog, TABLES, [row | {"all_bytes": size.bytes_live + size.bytes_reclaimable}])
        self.dropped_table = find_data_prefix(table)
        self.removed_tables.add(self.dropped_table)
        catalog.drop_table("landing.dropped")

    def lose_file(self) -> None:
        """Write a file that no table has, and record it as a candidate of job `orphan-files`."""
        catalog = self.open("raw", "operator")
        table = catalog.load_table("landing.events")
        path = f"{table.location()}/data/lost.parquet"
        with table.io.new_output(path).create() as stream:
            stream.write(bytes(12_345))
        uuid = str(table.metadata.table_uuid)
        row = {"table_name": "raw.landing.events", "table_uuid": uuid, "file_path": path, "first_seen": self.now}
        append(catalog, CANDIDATES, [row])
        self.lost_file = path.split("/", 3)[3]

    def enforce_limits(self) -> StackEnforcement:
        """Enforce limits by the usage of this moment."""

        def measure_limits(stacks: Sequence[SelectedStack]) -> list[SparkReport]:
            uses = list_limit_uses(self.config, measure_usage(self.config, self.now))
            return [SparkReport(stack, {"limits": limits_to_json(uses)}) for stack in stacks]

        project = load_project(self.tenant.folder)
        selected = select(project, Selection((self.tenant.name,)))
        return enforce_limits(project, selected, measure_limits, clock=lambda: self.now)[0]

    def expire(self) -> StackExpiry:
        """Remove what has ended, as `lakewright expire` does."""
        project = load_project(self.tenant.folder)
        return expire_shares(project, select(project, Selection((self.tenant.name,))), clock=lambda: self.now)[0]

    def find_drift(self) -> list[str]:
        """Return the names of resources with drift."""
        project = load_project(self.tenant.folder)
        report = find_drift(project, select(project, Selection((self.tenant.name,))), clock=lambda: self.now)
        return [difference.resource for difference in report.differences()]


@pytest.fixture
def simulated(
    make_tenant: MakeTenant, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SimulatedTenant]:
    """A tenant that is deployed 92 days ago."""
    now = datetime.now(UTC).replace(hour=3, minute=0, second=0, microsecond=0)
    clock = Clock()
    clock.advance((now - datetime.now(UTC)).total_seconds())
    # Lakekeeper refuses changes that are a minute older than the newest snapshot.
    monkeypatch.setattr("pyiceberg.table.snapshots.time", SimpleNamespace(time=lambda: clock.now() / 1_000_000))
    start = now - timedelta(days=DAYS)
    with serve_grants(sandbox, tmp_path, clock) as server:
        bootstrap(server)
        for user in ("ann", "ben"):
            body = {"id": f"oidc~{user}", "name": user, "user-type": "human"}
            server.post("/management/v1/user", json=body).raise_for_status()
        end = f"{start + timedelta(days=20):%F}"
        on = {"warehouse": "executions"}
        tenant = make_tenant(
            warehouses=[
                {"name": "executions", "namespaces": ["results"], "limits": {"bytes": str(LIMIT), "enforce": True}},
                RAW,
                OLD,
            ],
            grants=[
                {"to": "role:analysts", "privilege": "select", "on": on},
                {"to": "role:analysts", "privilege": "modify", "on": on},
                {"to": "user:oidc~ann", "privilege": "select", "on": on, "until": end},
            ],
            role_members={"analysts": {"users": ["oidc~ben"]}},
        )
        write_environment(tenant, server, jobs_auth={"kind": "token", "token": "env:STACK_TOKEN"})
        server.headers["x-project-id"] = tenant.name
        enter_project(tenant, monkeypatch)
        empty = CatalogConfig(tenant=tenant.name, uri=str(server.base_url), project_id=tenant.name, warehouses=[])
        simulated = SimulatedTenant(tenant, server, clock, start, now, empty)
        simulated.begin_day(0)
        simulated.update()
        tables = ("executions.results.flights", "old.results.flights", "raw.landing.events", "raw.landing.dropped")
        for warehouse, _, table in (name.partition(".") for name in tables):
            simulated.open(warehouse, "operator").create_table(table, schema=ROWS.schema).append(ROWS)
        yield simulated


def can_read(catalog: Catalog) -> bool:
    """Return whether a user may read the table."""
    try:
        return catalog.load_table("results.flights").scan().to_arrow().num_rows > 0
    except NoSuchTableError:  # the server hides tables that a user may not see
        return False


def try_append(catalog: Catalog) -> bool:
    """Append the rows of a day. Return whether the user may."""
    try:
        catalog.load_table("results.flights").append(ROWS)
    except OSError as refused:
        if "ACCESS_DENIED" not in str(refused):
            raise
        return False  # the credentials of readers do not write
    return True


def replace_table(simulated: SimulatedTenant) -> None:
    """Delete the data, as the owner, who can still do so."""
    catalog = simulated.open("executions", "operator")
    simulated.removed_tables.add(find_data_prefix(catalog.load_table("results.flights")))
    catalog.purge_table("results.flights")
    catalog.create_table("results.flights", schema=ROWS.schema).append(ROWS)


def find_data_prefix(table: Table) -> str:
    """Return the key prefix of a table's data files."""
    return f"{table.location().split('/', 3)[3]}/data/"


def sum_sizes(sizes: Mapping[str, int], prefix: str) -> int:
    """Return the bytes of the objects under a key prefix."""
    return sum(size for key, size in sizes.items() if key.startswith(prefix))


def expire_ops(catalog: Catalog) -> None:
    """Expire earlier snapshots of the tables in `ops`, and delete the files that only these snapshots have."""
    for name in catalog.list_tables("ops"):
        table = catalog.load_table(name)
        current = table.current_snapshot()
        earlier = {snapshot.snapshot_id for snapshot in table.snapshots() if snapshot != current}
        earlier_files = set(table.inspect.all_data_files()["file_path"].to_pylist())
        if earlier:
            table.maintenance.expire_snapshots().by_ids(sorted(earlier)).commit()
        for path in earlier_files - {*table.inspect.data_files()["file_path"].to_pylist()}:
            table.io.delete(path)


def add_cloudwatch_requests(simulated: SimulatedTenant, reports: list[SparkReport]) -> list[SparkReport]:
    """Return the reports with requests that CloudWatch counted for one warehouse on some days."""
    tenant = simulated.tenant
    dimensions = {"BucketName": tenant.bucket, "FilterId": f"{tenant.name}.executions"}
    with mock_aws():
        for number in RECORDED_DAYS[::5]:
            day = simulated.start + timedelta(days=number)
            datum = {
                "MetricName": "AllRequests",
                "Timestamp": day.replace(tzinfo=None),  # moto has times in UTC without a zone
                "Value": 1000 + number,
                "Unit": "Count",
                "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
            }
            cloudwatch_backends[ACCOUNT_ID]["us-east-1"].put_metric_data("AWS/S3", [datum])
            simulated.amounts[f"{day:%F}", "executions", "requests"] = Fraction(1000 + number)
        client = boto3.client("cloudwatch", "us-east-1", aws_access_key_id="key", aws_secret_access_key="secret")
        return add_requests(reports, lambda _environment, _region: client, lambda _stack: None)


def assert_costs_are_exact(simulated: SimulatedTenant) -> None:
    """Compare amounts and costs of the rows of FOCUS with what S3 and the cluster had on each day."""
    project = load_project(simulated.tenant.folder)
    selected = select(project, Selection((simulated.tenant.name,)))
    reports = [*read_stack_reports(project, (*DAYS_COMMAND, "--since", f"{DAYS + 1}d"), selected)]
    reports = add_cloudwatch_requests(simulated, reports)
    assert [report.problem for report in reports] == [""]
    prices = Prices.model_validate({"currency": "EUR", **PRICES})
    document = CostReport(reports, Grouping("month"), prices).to_json()

    days_with_rows = {*RECORDED_DAYS, *range(ARCHIVED_ON, PURGED_ON + 1)}
    assert sum(group["days"] for group in document["groups"]) == len(days_with_rows)
    consumed, billed = dict[tuple[str, str, str], Fraction](), dict[tuple[str, str, str], Fraction]()
    for row in document["focus"]:
        # Live and reclaimable bytes are in the same files of S3.
        sku = "storage" if row["SkuId"] in {"storage-live", "storage-reclaimable"} else row["SkuId"]
        key = (row["BillingPeriodStart"][:7], row["ResourceName"], sku)
        unit = 10**9 if row["ConsumedUnit"] == "GB-Days" else 1
        consumed[key] = consumed.get(key, Fraction()) + Fraction(row["ConsumedQuantity"]) * unit
        billed[key] = billed.get(key, Fraction()) + Fraction(row["BilledCost"])
    amounts, costs = dict[tuple[str, str, str], Fraction](), dict[tuple[str, str, str], Fraction]()
    for (day, warehouse, sku), amount in simulated.amounts.items():
        key = (day[:7], warehouse, sku)
        amounts[key] = amounts.get(key, Fraction()) + amount
        costs[key] = costs.get(key, Fraction()) + amount * compute_price(sku, day)
    maintenance = {key for key in consumed if key[2] == "maintenance"}
    assert {key: amount for key, amount in consumed.items() if key not in maintenance} == amounts
    assert {consumed[key] for key in maintenance} == {0}, "no job runs"
    # Each row is rounded to twelve digits, and the bytes of tables have two rows.
    digits = Fraction(1, 10**12)
    assert {key for key, cost in costs.items() if abs(cost - billed[key]) > digits} == set()
    assert sum(costs.values()) > 0


def compute_price(sku: str, day: str) -> Fraction:
    """Return the price of a byte on a day, of a request, or of an hour."""
    if sku.startswith("storage"):
        year, month, _ = map(int, day.split("-"))
        return Fraction(PRICES["storage_gb_month"]) / 10**9 / monthrange(year, month)[1]
    return Fraction(PRICES["cu_hour"]) if sku == "compute" else Fraction(PRICES["requests_1000"]) / 1000


def make_changes(simulated: SimulatedTenant, day: int, aws: Callable[..., Any]) -> None:
    """Make the changes of a day that users and jobs make once."""
    if day == ARCHIVED_ON:
        simulated.tenant.spec["warehouses"].remove(OLD)
        simulated.update()
    elif day == DROPPED_ON:
        simulated.drop_table()
    elif day == LOST_ON:
        simulated.lose_file()
    elif day == CLEANED_ON:
        aws("s3").delete_object(Bucket=simulated.tenant.bucket, Key=simulated.lost_file)


def test_three_months_of_a_tenant(simulated: SimulatedTenant, aws: Callable[..., Any]) -> None:
    tenant = simulated.tenant
    ann, ben = simulated.open("executions", "ann"), simulated.open("executions", "ben")
    archives: list[str] = []
    ended_on: list[int] = []
    full_days: list[int] = []
    archived_rows = left_on = 0
    for day in range(1, DAYS):
        simulated.begin_day(day)
        make_changes(simulated, day, aws)
        is_archived = day >= ARCHIVED_ON and "purged" not in archives
        if is_archived:
            simulated.count_amounts(aws, "old")
        if day not in ACTIVE_DAYS:
            if day in RECORDED_DAYS:
                simulated.record_day(aws)
            continue
        assert try_append(ben) is not bool(full_days), "writers write until the limit is enforced"
        simulated.record_day(aws)
        archived_rows += simulated.record_archive() if is_archived else 0
        used = simulated.sum_data(simulated.list_objects(aws), "executions")

        enforcement, expiry = simulated.enforce_limits(), simulated.expire()

        assert (enforcement.problems, expiry.problems) == ([], [])
        assert [limit.used for limit in enforcement.limits] == [used]
        assert enforcement.full_parts == (("warehouse executions",) if used >= LIMIT else ())
        is_first_full_day = used >= LIMIT and not full_days
        assert len(enforcement.suspended) == (WRITING_GRANTS if is_first_full_day else 0)
        archives += [archive.state.value for archive in expiry.archives]
        ended_on += [day] if expiry.removed else []
        assert can_read(ann) is not bool(ended_on)
        full_days += [day] if used >= LIMIT else []
        if len(full_days) == 3:
            assert simulated.find_drift() == []
            replace_table(simulated)
            assert len(simulated.enforce_limits().restored) == WRITING_GRANTS
            left_on = day
            full_days.clear()

    assert ended_on == [22], "the first run after the last day, which is day 20"
    assert ARCHIVED_ON < left_on < DAYS
    assert simulated.find_drift() == []
    assert archives == [*["archived"] * 9, *["announced"] * 2, "purged"]
    earlier_days = [day for day in RECORDED_DAYS if day < ARCHIVED_ON]
    assert archived_rows == len(earlier_days) + PURGED_ON - ARCHIVED_ON + 1, "each day of the archive has a row"
    names = {entry["name"] for entry in simulated.server.get("/management/v1/warehouse").json()["warehouses"]}
    assert names == {"executions", "raw"}
    assert "Contents" not in aws("s3").list_objects_v2(Bucket=tenant.bucket, Prefix=f"{tenant.name}/old/")
    dropped_days = [key for key, size in simulated.amounts.items() if key[2] == "storage-soft-deleted" and size]
    lost_days = [key for key, size in simulated.amounts.items() if key[2] == "storage-orphan" and size]
    assert len(lost_days) == len([day for day in RECORDED_DAYS if LOST_ON <= day < CLEANED_ON])
    assert len(dropped_days) == len({*RECORDED_DAYS} & {*DROPPED_DAYS}), (
        "the server keeps dropped tables for seven days"
    )
    assert_costs_are_exact(simulated)
