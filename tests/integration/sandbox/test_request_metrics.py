"""Requests to S3 from CloudWatch: with a right to read, by warehouse and day, and absent where S3 counts none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from lakewright.costs.store_requests import add_requests, list_metered_warehouses, read_requests
from lakewright.environment.loading import load_environment
from lakewright.fleet.selection import SelectedStack
from lakewright.fleet.spark_reports import SparkReport
from lakewright.validation.documents import as_text
from lakewright_engine.project.project import PulumiProject

from tests.integration.sandbox.conftest import ACCOUNT, Aws, AwsClock, allow, expect_refusal
from tests.tenant_project import create_project

SPEC: dict[str, Any] = {
    "name": "acme",
    "environment": "production",
    "storage": {
        "main": {"backend": "aws", "bucket": "acme-lake", "region": "us-east-1"},
        "own": {"backend": "existing", "bucket": "their-lake", "region": "us-east-1"},
    },
    "warehouses": [
        {"name": "executions", "storage": "main"},
        {"name": "raw", "storage": "main"},
        {"name": "theirs", "storage": "own"},
    ],
}
READ = allow("cloudwatch:GetMetricData")


@pytest.fixture
def counted(aws_with_clock: tuple[Aws, AwsClock]) -> Iterator[Aws]:
    """An AWS whose S3 counted requests of one metrics configuration. Only AWS writes to `AWS/S3`."""
    from moto.cloudwatch.models import cloudwatch_backends

    backend = cloudwatch_backends[ACCOUNT]["us-east-1"]
    for hour, amount, filter_id in (
        (datetime(2026, 11, 26, 23, tzinfo=UTC), 100, "acme.executions"),
        (datetime(2026, 11, 27, 0, tzinfo=UTC), 7, "acme.executions"),
        (datetime(2026, 11, 27, 23, tzinfo=UTC), 5, "acme.executions"),
        (datetime(2026, 11, 27, 5, tzinfo=UTC), 999, "other.executions"),
    ):
        datum = {
            "MetricName": "AllRequests",
            "Timestamp": hour.replace(tzinfo=None),  # moto has times in UTC without a zone
            "Value": amount,
            "Unit": "Count",
            "Dimensions": [{"Name": "BucketName", "Value": "acme-lake"}, {"Name": "FilterId", "Value": filter_id}],
        }
        backend.put_metric_data("AWS/S3", [datum])
    yield aws_with_clock[0]
    backend.metric_data.clear()


def make_report(stack: str = "acme", **changes: Any) -> SparkReport:
    days = [
        {"day": day, "warehouse": warehouse, "requests": None}
        for day in ("2026-11-26", "2026-11-27")
        for warehouse in ("executions", "raw", "theirs")
    ]
    return SparkReport(SelectedStack(stack, SPEC | changes), {"days": days})


def add(client: Any, *reports: SparkReport) -> list[SparkReport]:
    """Return the reports with the requests that a client reads. Stacks have no region."""
    return add_requests(reports, lambda _environment, _region: client, lambda _stack: None)


def test_requests_are_summed_by_day(counted: Aws) -> None:
    _, key = counted.user(READ)
    warehouses = list_metered_warehouses("acme", SPEC)

    requests = read_requests(counted.client("cloudwatch", key), warehouses, [date(2026, 11, 26), date(2026, 11, 27)])

    assert [warehouse.warehouse for warehouse in warehouses] == ["executions", "raw"]
    assert requests == {
        ("acme", "executions", date(2026, 11, 26)): 100,
        ("acme", "executions", date(2026, 11, 27)): 12,
    }


def test_days_without_metrics_have_no_requests(counted: Aws) -> None:
    _, key = counted.user(READ)

    (report,) = add(counted.client("cloudwatch", key), make_report())

    amounts = [(row["day"][-2:], row["warehouse"], row["requests"]) for row in report.report["days"]]
    assert amounts == [
        ("26", "executions", 100),
        ("26", "raw", None),
        ("26", "theirs", None),
        ("27", "executions", 12),
        ("27", "raw", None),
        ("27", "theirs", None),
    ]
    assert report.problem == ""


@pytest.mark.parametrize(
    ("storage", "stack", "expected"),
    [("eu-west-1", "eu-central-1", "eu-west-1"), (None, "eu-central-1", "eu-central-1"), (None, None, None)],
    ids=["storage", "stack", "environment"],
)
def test_region_of_the_storage_precedes_the_stack(
    counted: Aws, storage: str | None, stack: str | None, expected: str | None
) -> None:
    _, key = counted.user(READ)
    main = SPEC["storage"]["main"] | {"region": storage}
    regions: list[tuple[str, str | None]] = []

    def open_client(environment: str, region: str | None) -> Any:
        regions.append((environment, region))
        return counted.client("cloudwatch", key)

    add_requests([make_report(storage={"main": main})], open_client, lambda _stack: stack)

    assert regions == [("production", expected)]


def test_refusal_is_a_problem_of_the_stack(counted: Aws) -> None:
    _, key = counted.user(allow("s3:*"))
    client = counted.client("cloudwatch", key)
    with expect_refusal("AccessDeniedException", "cloudwatch:GetMetricData"):
        read_requests(client, list_metered_warehouses("acme", SPEC), [date(2026, 11, 27)])

    (report,) = add(client, make_report())

    assert "Allow cloudwatch:GetMetricData" in report.problem
    assert {row["requests"] for row in report.report["days"]} == {None}


def test_unreadable_files_are_problems_of_their_stacks(counted: Aws, tmp_path: Path) -> None:
    """The environment of one stack is missing, and the file of another stack is no YAML."""
    _, key = counted.user(READ)
    create_project(tmp_path / "project", {"lakekeeper": {"endpoint": "http://127.0.0.1:9"}})
    (tmp_path / "project" / "tenants" / "Pulumi.initech.yaml").write_text("config: [")
    project = PulumiProject.load(tmp_path / "project")

    def open_client(environment: str, _region: str | None) -> Any:
        load_environment(project, environment)
        return counted.client("cloudwatch", key)

    def find_region(stack: str) -> str | None:
        return as_text(project.stack_config(stack).values.get("aws:region"))

    stacks = [("globex", "missing"), ("initech", "sandbox"), ("acme", "sandbox")]
    globex, initech, acme = add_requests(
        [make_report(name, environment=environment) for name, environment in stacks], open_client, find_region
    )

    assert re.match(r"requests could not be read from CloudWatch: .*missing\.yaml", globex.problem)
    assert re.match(r"requests could not be read from CloudWatch: .*Pulumi\.initech\.yaml", initech.problem)
    assert acme.problem == ""
    assert {row["requests"] for row in acme.report["days"]} == {100, 12, None}


@pytest.mark.parametrize("name", ["ergebnisse-ä", "a" * 60])
def test_ids_that_s3_refuses_are_problems(counted: Aws, name: str) -> None:
    """The requests of the other warehouses are read."""
    _, key = counted.user(READ)
    warehouses = [{"name": "executions", "storage": "main"}, {"name": name, "storage": "main"}]

    (report,) = add(counted.client("cloudwatch", key), make_report(warehouses=warehouses))

    assert report.problem.startswith(f"requests of warehouse {name} could not be read")
    assert [row["requests"] for row in report.report["days"] if row["warehouse"] == "executions"] == [100, 12]


def test_other_errors_need_no_right(counted: Aws) -> None:
    client = counted.client("cloudwatch", {"AccessKeyId": "AKIA0000000000000000", "SecretAccessKey": "deleted"})

    (report,) = add(client, make_report())

    assert "could not be read from CloudWatch" in report.problem
    assert "Allow" not in report.problem


def test_users_write_no_metrics_of_aws(counted: Aws) -> None:
    with expect_refusal("UnknownOperationException"):
        counted.client("cloudwatch").put_metric_data(
            Namespace="AWS/S3", MetricData=[{"MetricName": "AllRequests", "Value": 1}]
        )
