"""Documents of a made-up fleet, in the shapes that commands print with `--json`, for tests of the report."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from lakewright.data_checks.result import CheckResult, StackChecks
from lakewright.data_checks.result import to_json as checks_to_json
from lakewright.drift.model import Actor, Difference, DifferenceKind, DriftReport, IgnoredBy, StackDrift
from lakewright.fleet.listing import ListedStack, to_listing_json
from lakewright.fleet.maintenance_runs import to_runs_json
from lakewright.fleet.results import FleetReport, StackResult, StackStatus
from lakewright.fleet.selection import SelectedStack
from lakewright.fleet.spark_reports import SparkReport
from lakewright.fleet.usage import to_usage_json
from lakewright.ownership.limit_mark import LimitMark, ReachedLimit, SuspendedGrant
from lakewright.report.sources import ReportSource, read_source
from lakewright.restrictions.model import ArchivedWarehouse, StackRestrictions
from lakewright.restrictions.model import to_json as restrictions_to_json

NOW = datetime(2026, 11, 24, 9, 30, tzinfo=UTC)
OWNERS = ("analytics@acme.example", "fraud@acme.example", "genomics@acme.example", "logistics@acme.example")
TEAMS = ("orders", "clicks", "ledger", "scores", "cohorts", "assays", "routes", "fleet")
HOSTILE = (
    "<script>window.attacked=1</script>",
    "</script><img src=x onerror=window.attacked=1>",
    '"><svg onload=window.attacked=1>',
    "a\u2028b & <b>bold</b>",
)
"""Names that would be code if a page took them as HTML."""
GIGABYTE = 10**9


def subtract_time(**ago: float) -> str:
    """Return a time before the sample's report, in RFC 3339."""
    return (NOW - timedelta(**ago)).isoformat().replace("+00:00", "Z")


def make_spec(number: int, name: str = "") -> dict[str, Any]:
    """Return the spec of a tenant."""
    team = name or f"{TEAMS[number % len(TEAMS)]}{'' if number < len(TEAMS) else f'-{number:04}'}"
    return {
        "name": team,
        "owner": OWNERS[number // 2 % len(OWNERS)],
        "environment": "staging" if number % 5 == 4 else "production",
        "labels": {"tier": ("gold", "silver")[number % 2], "cost-center": str(4700 + number % 7)},
        "storage": {"main": {"backend": "aws", "bucket": f"acme-{team}-lakehouse", "region": "eu-central-1"}},
        "warehouses": [
            {
                "name": "executions",
                "namespaces": {"preset": "texera"},
                "shares": {"auditor": {"principal_arn": "arn:aws:iam::111122223333:role/audit", "until": "2026-12-04"}}
                if number % 6 == 3
                else {},
            },
            {"name": "curated", "namespaces": [f"{team}.daily", f"{team}.raw", "reference"]},
        ],
        "computing_units": [
            {"name": "notebook", "runtime": "spark", "warehouse": "curated"},
            {"name": "workflows", "runtime": "texera", "warehouses": "all"},
        ],
    }


def make_stacks(count: int, names: tuple[str, ...] = ()) -> list[SelectedStack]:
    """Return the stacks of a fleet. `names` are the names of its first tenants."""
    specs = [make_spec(number, names[number] if number < len(names) else "") for number in range(count)]
    return [SelectedStack(spec["name"], spec) for spec in specs]


def list_fleet_stacks(stacks: list[SelectedStack]) -> dict[str, Any]:
    """Return the document of `fleet list`."""

    def describe(number: int, stack: SelectedStack) -> ListedStack:
        last = {"kind": "update", "result": "failed" if number % 11 == 6 else "succeeded"}
        return ListedStack(
            stack,
            has_file=True,
            has_state=True,
            resources=34 + number % 9,
            updated=subtract_time(hours=5 * number + 2),
            last=last,
        )

    entries = [describe(number, stack) for number, stack in enumerate(stacks)]
    return {**to_listing_json(entries), "at": subtract_time(minutes=3)}


def find_drift(stacks: list[SelectedStack]) -> dict[str, Any]:
    """Return the document of `drift`."""

    def describe(number: int, stack: SelectedStack) -> StackDrift:
        def make_difference(resource: str, path: str, before: Any, live: Any, **more: Any) -> Difference:
            kind = more.pop("kind", DifferenceKind.CHANGED)
            return Difference(
                stack.tenant, stack.name, "urn", "lakekeeper:Warehouse", resource, path, before, live, kind, **more
            )

        actor = Actor("arn:aws:iam::111122223333:user/mallory", subtract_time(hours=7), "cloudtrail")
        differences: list[Difference] = []
        if number % 4 == 1:
            differences.append(
                make_difference(
                    f"{stack.name}-curated", "delete_profile.expiration_seconds", 604800, 86400, actor=actor
                )
            )
        if number % 8 == 1:
            differences.append(
                make_difference(f"lakewright.{stack.name}.curated", "", None, "role", kind=DifferenceKind.UNMANAGED)
            )
        if number % 7 == 2:
            ignored = IgnoredBy("migration to the new bucket", "2026-12-31", "environments/production.yaml")
            differences.append(make_difference(f"{stack.name}-main", "versioning", "true", "false", ignored=ignored))
        return StackDrift(stack.name, stack.tenant, stack.environment, 31, 34, differences)

    groups = [
        {
            "text": "`delete_profile.expiration_seconds` of warehouses changed",
            "stacks": [stack.name for stack in stacks[1:12:4]],
        }
    ]
    report = DriftReport([describe(number, stack) for number, stack in enumerate(stacks)], 4.2, groups)
    return {**report.to_json(), "at": subtract_time(hours=6)}


def run_checks(stacks: list[SelectedStack]) -> dict[str, Any]:
    """Return the document of `check`."""

    def describe(number: int, stack: SelectedStack) -> StackChecks:
        at = subtract_time(hours=1)
        fresh = number % 5 != 2
        checks = [
            CheckResult(
                "checks.0",
                "table curated.daily.rows",
                "newer_than",
                "26h",
                "3h" if fresh else "4 days",
                "passed" if fresh else "failed",
                at,
                "stack",
            ),
            CheckResult("checks.1", "warehouse executions", "max_bytes", "5 TB", "1.2 TB", "passed", at, "stack"),
        ]
        return StackChecks(stack.name, stack.tenant, stack.environment, checks)

    entries = [describe(number, stack) for number, stack in enumerate(stacks) if number % 3 != 0]
    return {**checks_to_json(entries, seconds=2.5), "at": subtract_time(hours=1)}


def list_restrictions(stacks: list[SelectedStack]) -> dict[str, Any]:
    """Return the document of `fleet status`."""

    def describe(number: int, stack: SelectedStack) -> StackRestrictions:
        restrictions = StackRestrictions(stack.name, stack.tenant, stack.environment)
        if number % 6 == 4:
            announced_at = NOW - timedelta(days=3) if number % 12 == 4 else None
            due_at = NOW + timedelta(days=4)
            archive = ArchivedWarehouse("raw", f"id-{number}", NOW - timedelta(days=86), due_at, announced_at)
            restrictions.archives.append(archive)
        if number % 8 == 2:
            part = "warehouse curated"
            grant = SuspendedGrant(part, f"id-{number}", "modify", "role", f"{stack.name}-analysts")
            limit = ReachedLimit(part, "bytes", 80 * GIGABYTE, subtract_time(days=2))
            restrictions.limits = LimitMark(f"lakewright/{stack.name}", (part,), (grant,), (limit,))
        return restrictions

    entries = [describe(number, stack) for number, stack in enumerate(stacks)]
    return {**restrictions_to_json(entries, NOW), "at": subtract_time(hours=1)}


def verify_stacks(stacks: list[SelectedStack]) -> dict[str, Any]:
    """Return the document of `fleet verify`."""

    def describe(number: int, stack: SelectedStack) -> StackResult:
        holds = number % 9 != 5
        check = {
            "probe": "other-tenants",
            "identity": "notebook",
            "warehouse": "curated",
            "attempt": "read a table of another tenant",
        }
        check |= {
            "expected": "denied",
            "found": "denied" if holds else "allowed",
            "evidence": "200",
            "remedy": "" if holds else "remove the grant",
            "holds": holds,
        }
        document = {
            "stack": stack.name,
            "holds": holds,
            "failed_probes": [] if holds else ["other-tenants"],
            "checks": [check],
            "notes": [],
        }
        return StackResult(
            stack, StackStatus.PASSED if holds else StackStatus.FAILED, 3.0, int(not holds), document=document
        )

    report = FleetReport("verify", [describe(number, stack) for number, stack in enumerate(stacks)], 30.0)
    return {**report.to_json(), "at": subtract_time(days=2)}


def measure_fleet(stacks: list[SelectedStack], days_ago: int = 0) -> dict[str, Any]:
    """Return the document of `fleet usage` of some days ago."""

    def describe(number: int, stack: SelectedStack) -> SparkReport:
        live = int((3 + number * 37 % 90) * GIGABYTE * (1 - days_ago / 120))
        sizes = {
            "bytes_live": live,
            "bytes_reclaimable": live // (4 + number % 5),
            "files": 1200 + number,
            "snapshots": 90,
        }
        table = {"table": f"executions.{stack.name}.rows", **sizes, "growth": None}
        total = {
            "tables": 14,
            "views": 1,
            **sizes,
            "growth": {"bytes": live // 12, "since": subtract_time(days=30 + days_ago)},
        }
        warehouse = {
            "warehouse": "executions",
            "owner": None,
            **total,
            "each_table": [table],
            "each_view": [],
            "unread": {},
        }
        report = {
            "tenant": stack.tenant,
            "at": subtract_time(days=days_ago),
            "total": total,
            "owners": [],
            "warehouses": [warehouse],
        }
        return SparkReport(stack, report)

    reports = [describe(number, stack) for number, stack in enumerate(stacks)]
    return {**to_usage_json(reports), "at": subtract_time(days=days_ago, hours=2)}


def list_maintenance_runs(stacks: list[SelectedStack]) -> dict[str, Any]:
    """Return the document of `fleet runs`."""

    def describe(number: int, day: int, job: str, metrics: dict[str, Any], state: str = "SUCCEEDED") -> dict[str, Any]:
        at = subtract_time(days=day, hours=7)
        return {
            "job": job,
            "table": "executions.results.rows",
            "state": state,
            "reason": "due" if state == "SUCCEEDED" else "lease lost",
            "queued_at": at,
            "finished_at": at,
            "seconds": 40.0 + 9 * number % 50 + 11 * day,
            "metrics": metrics,
        }

    reports: list[SparkReport] = []
    for number, stack in enumerate(stacks):
        runs = [
            run
            for day in range(7)
            for run in (
                describe(number, day, "compaction", {"rewritten": 60 + 12 * day, "added": 3, "bytes": 3 * GIGABYTE}),
                describe(
                    number,
                    day,
                    "snapshot-expiration",
                    {"snapshots": 12, "data_files": 40 + day, "manifests": 9},
                    "FAILED" if number % 10 == 4 and day == 1 else "SUCCEEDED",
                ),
            )
        ]
        reports.append(SparkReport(stack, {"runs": runs}))
    return {**to_runs_json(reports), "at": subtract_time(minutes=25)}


def make_sources(count: int, names: tuple[str, ...] = (), history: int = 4) -> list[ReportSource]:
    """Return all sources of a fleet of `count` tenants."""
    stacks = make_stacks(count, names)
    documents = [
        list_fleet_stacks(stacks),
        find_drift(stacks),
        run_checks(stacks),
        list_restrictions(stacks),
        verify_stacks(stacks),
        list_maintenance_runs(stacks),
    ]
    documents += [measure_fleet(stacks, 7 * weeks) for weeks in range(history)]
    return [read_source(json.dumps(document), f"{document['command']}.json") for document in documents]
