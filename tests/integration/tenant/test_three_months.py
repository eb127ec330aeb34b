"""Three months of a tenant on a moved clock: a limit is reached and left, a share ends, an archive is purged.

The servers are real HTTP and S3. The costs are compared with the objects in S3, to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lakewright.cli.options import load_project
from lakewright.drift.detection.run import find_drift
from lakewright.fleet.selection import SelectedStack, Selection, select
from lakewright.fleet.spark_reports import SparkReport
from lakewright.limits.enforcement import enforce_limits
from lakewright.limits.stack_enforcement import StackEnforcement
from lakewright.shares.expiry import StackExpiry, expire_shares
from lakewright_sandbox.lakekeeper.protocol.clock import Clock
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.cli.usage import limits_to_json
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.pyiceberg_client.limit_checks import list_limit_uses
from lakewright_spark.pyiceberg_client.usage import measure_usage
from lakewright_spark.scheduler.usage_recording import record_usage
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError

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
    pytest.mark.timeout(900),
]

DAYS = 92
ARCHIVED_ON = 10
DAYS_WITH_ROWS = range(2, DAYS, 4)
ROWS = pa.table({"n": pa.array([n * 0x9E3779B97F4A7C15 % 2**63 for n in range(10_000)], pa.int64())})
"""Rows of a day, which take about 80 KB."""
LIMIT = 1_200_000
WRITING_GRANTS = 3
"""Grants of `create` and `modify`: of the role `analysts`, and two of the role `executions-writer`."""
OLD = {"name": "old", "namespaces": ["results"], "deletion": "archive", "purge_after": "40d"}


@dataclass
class SimulatedTenant:
    """A tenant whose days pass: on its server, in its program, and in the commands of the cluster."""

    tenant: Tenant
    server: httpx.Client
    clock: Clock
    start: datetime
    now: datetime
    live_bytes: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """Bytes of all data files of a warehouse, as S3 lists them, by day and warehouse."""

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
        properties = self.tenant.catalog_config().pyiceberg("executions")
        del properties["auth"]
        return load_catalog(warehouse, **properties | {"warehouse": f"{self.tenant.name}/{warehouse}", "token": user})

    def record_day(self, aws: Callable[..., Any]) -> None:
        """Record the usage of the day, as `maintain` does, and what S3 has of it."""
        config = self.tenant.catalog_config()
        for warehouse in config.warehouses:
            self.live_bytes[f"{self.now:%F}", warehouse.name] = self.list_bytes(aws, warehouse.name)
        catalogs = {warehouse.name: open_catalog(config, warehouse.name) for warehouse in config.warehouses}
        _, problems = record_usage(config, catalogs, self.now)
        assert problems == []

    def list_bytes(self, aws: Callable[..., Any], warehouse: str) -> int:
        """Return the bytes of the data files of the tables of a warehouse, from S3."""
        catalog = self.open(warehouse, "operator")
        names = [name for space in catalog.list_namespaces() for name in catalog.list_tables(space)]
        total = 0
        for name in names:
            _, _, bucket, key = catalog.load_table(name).location().split("/", 3)
            pages = aws("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{key}/data/")
            total += sum(entry["Size"] for page in pages for entry in page.get("Contents", ()))
        return total

    def enforce_limits(self) -> StackEnforcement:
        """Enforce limits by the usage of this moment."""
        config = self.tenant.catalog_config()

        def measure(stacks: Sequence[SelectedStack]) -> list[SparkReport]:
            uses = list_limit_uses(config, measure_usage(config, self.now))
            return [SparkReport(stack, {"limits": limits_to_json(uses)}) for stack in stacks]

        project = load_project(self.tenant.folder)
        selected = select(project, Selection((self.tenant.name,)))
        return enforce_limits(project, selected, measure, clock=lambda: self.now)[0]

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
        simulated = SimulatedTenant(tenant, server, clock, start, now)
        simulated.begin_day(0)
        tenant.up()
        for warehouse in ("executions", "old"):
            simulated.open(warehouse, "operator").create_table("results.flights", schema=ROWS.schema).append(ROWS)
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
    catalog.purge_table("results.flights")
    catalog.create_table("results.flights", schema=ROWS.schema).append(ROWS)


def assert_costs_are_exact(simulated: SimulatedTenant) -> None:
    """Compare the rows of FOCUS with what S3 had on each day."""
    options = ("--since", f"{DAYS + 1}d", "--prices", "prices.yaml", "--json")
    (simulated.tenant.folder / "prices.yaml").write_text("currency: EUR\nstorage_gb_month: 1000000\n")
    report = json.loads(simulated.tenant.output("fleet", "usage", *options))
    charged: dict[str, Decimal] = {}
    for row in report["focus"]:
        if row["ServiceName"] == "Iceberg storage":
            month = row["BillingPeriodStart"][:7]
            charged[month] = charged.get(month, Decimal()) + Decimal(row["ConsumedQuantity"]) * 10**9
    stored: dict[str, Decimal] = {}
    for (day, warehouse), size in simulated.live_bytes.items():
        if warehouse == "executions":
            stored[day[:7]] = stored.get(day[:7], Decimal()) + size
    assert charged == stored
    assert sum(group["days"] for group in report["groups"]) == len(DAYS_WITH_ROWS)
    assert all(Decimal(row["BilledCost"] or 0) >= 0 for row in report["focus"])


def test_three_months_of_a_tenant(simulated: SimulatedTenant, aws: Callable[..., Any]) -> None:
    tenant = simulated.tenant
    ann, ben = simulated.open("executions", "ann"), simulated.open("executions", "ben")
    archives: list[str] = []
    ended_on: list[int] = []
    full_days: list[int] = []
    left_on = 0
    for day in DAYS_WITH_ROWS:
        simulated.begin_day(day)
        if day == ARCHIVED_ON:
            tenant.spec["warehouses"].remove(OLD)
            tenant.write()
            tenant.up()
        assert try_append(ben) is not bool(full_days), "writers write until the limit is enforced"
        simulated.record_day(aws)
        used = simulated.list_bytes(aws, "executions")

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
    assert {entry["name"] for entry in simulated.server.get("/management/v1/warehouse").json()["warehouses"]} == {
        "executions"
    }
    assert "Contents" not in aws("s3").list_objects_v2(Bucket=tenant.bucket, Prefix=f"{tenant.name}/old/")
    assert_costs_are_exact(simulated)
