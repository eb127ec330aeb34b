"""Requests to S3 by warehouse and UTC day, as CloudWatch has them for buckets with request metrics.

S3 counts the requests of each metrics configuration of a bucket. The id of the configuration of a warehouse is
`TENANT.WAREHOUSE`, and its filter is the warehouse's key prefix. CloudWatch keeps sums of hours for 455 days.
Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/metrics-dimensions.html
"""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast

from lakewright_engine.model.errors import EngineError

from lakewright.errors import LakewrightError
from lakewright.fleet.spark_reports import SparkReport
from lakewright.validation.documents import as_list, as_mapping, as_text

_NAMESPACE, _METRIC = "AWS/S3", "AllRequests"
_DAY = 86_400
_FILTER_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
_MOST_QUERIES = 500
"""Queries in a request, as AWS allows."""


@dataclass(frozen=True)
class MeteredWarehouse:
    """A warehouse whose bucket may have request metrics."""

    stack: str
    warehouse: str
    bucket: str
    region: str | None
    """Region of the bucket; None for the region of the environment."""
    filter_id: str
    """Id of the metrics configuration."""

    @property
    def problem(self) -> str:
        """Why S3 has no such metrics configuration; empty if it can have it."""
        if _FILTER_ID.fullmatch(self.filter_id):
            return ""
        return (
            f"requests of warehouse {self.warehouse} could not be read: S3 has no metrics configuration"
            f" {self.filter_id!r}, as ids have at most 64 letters of ASCII, digits, `.`, `_` and `-`"
        )


Requests = Mapping[tuple[str, str, date], int]
"""Requests by stack, warehouse and UTC day. Days without a value are absent."""


def list_metered_warehouses(stack: str, spec: Mapping[str, Any], region: str | None = None) -> list[MeteredWarehouse]:
    """Return the warehouses of a spec in buckets on AWS that the stack makes. Other buckets are in other accounts.

    Args:
        stack: Name of the stack.
        spec: Its spec, unchecked.
        region: `aws:region` of the stack, for storages without a region.
    """
    storages = as_mapping(spec.get("storage"))
    metered: list[MeteredWarehouse] = []
    for entry in map(as_mapping, as_list(spec.get("warehouses"))):
        default = next(iter(storages), None) if len(storages) == 1 else None
        storage = as_mapping(storages.get(as_text(entry.get("storage")) or default or ""))
        name, bucket = as_text(entry.get("name")), as_text(storage.get("bucket"))
        if storage.get("backend") == "aws" and name and bucket:
            bucket_region = as_text(storage.get("region")) or region
            metered.append(MeteredWarehouse(stack, name, bucket, bucket_region, f"{spec.get('name')}.{name}"))
    return metered


def read_requests(client: Any, warehouses: Sequence[MeteredWarehouse], days: Iterable[date]) -> Requests:
    """Return the requests to the warehouses of one account and region on some days.

    Args:
        client: Client of CloudWatch. It calls `cloudwatch:GetMetricData`.
        warehouses: The warehouses.
        days: The days; the first and the last day limit the request.

    Raises:
        botocore.exceptions.ClientError: CloudWatch refused the call.
    """
    listed_days = sorted(days)
    if not warehouses or not listed_days:
        return {}
    start = datetime.combine(listed_days[0], datetime.min.time(), UTC)
    end = datetime.combine(listed_days[-1], datetime.min.time(), UTC) + timedelta(days=1)
    requests: dict[tuple[str, str, date], int] = {}
    for first in range(0, len(warehouses), _MOST_QUERIES):
        batch = {f"w{index}": warehouse for index, warehouse in enumerate(warehouses[first : first + _MOST_QUERIES])}
        pages = client.get_paginator("get_metric_data").paginate(
            MetricDataQueries=[_build_query(key, warehouse) for key, warehouse in batch.items()],
            StartTime=start,
            EndTime=end,
        )
        for result in (cast(dict[str, Any], entry) for page in pages for entry in page["MetricDataResults"]):
            warehouse = batch[result["Id"]]
            for moment, amount in zip(result["Timestamps"], result["Values"], strict=True):
                key = (warehouse.stack, warehouse.warehouse, moment.astimezone(UTC).date())
                requests[key] = requests.get(key, 0) + round(amount)
    return requests


def _build_query(key: str, warehouse: MeteredWarehouse) -> dict[str, Any]:
    dimensions = {"BucketName": warehouse.bucket, "FilterId": warehouse.filter_id}
    metric = {
        "Namespace": _NAMESPACE,
        "MetricName": _METRIC,
        "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
    }
    return {"Id": key, "MetricStat": {"Metric": metric, "Period": _DAY, "Stat": "Sum"}}


def list_days(report: SparkReport) -> set[date]:
    """Return the days of a report of `lakewright-spark daily-usage`."""
    return {date.fromisoformat(str(as_mapping(row)["day"])) for row in as_list(report.report.get("days"))}


def fill_requests(report: SparkReport, requests: Requests) -> SparkReport:
    """Return a report with the requests of days that have none. Days without a value remain without requests."""

    def fill(row: Mapping[str, Any]) -> Mapping[str, Any]:
        if row.get("requests") is not None:
            return row
        key = (report.stack.name, str(row.get("warehouse")), date.fromisoformat(str(row["day"])))
        return {**row, "requests": requests.get(key)}

    days = [fill(as_mapping(row)) for row in as_list(report.report.get("days"))]
    return replace(report, report={**report.report, "days": days}) if days else report


OpenClient = Callable[[str, str | None], Any]
"""Returns a client of CloudWatch for an environment and a region; None for the region of the environment.

Raises a LakewrightError or an EngineError if the environment cannot be read.
"""
FindRegion = Callable[[str], str | None]
"""Returns `aws:region` of a stack. Raises an EngineError if the stack file cannot be read."""


def add_requests(reports: Sequence[SparkReport], open_client: OpenClient, find_region: FindRegion) -> list[SparkReport]:
    """Return the reports with the requests of CloudWatch. An error is a problem of the stacks that it concerns."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    by_account: dict[tuple[str, str | None], list[MeteredWarehouse]] = {}
    problems: dict[str, list[str]] = {}
    for stack in (report.stack for report in reports if list_days(report)):
        try:
            region = find_region(stack.name)
        except (LakewrightError, EngineError) as error:
            problems.setdefault(stack.name, []).append(_describe_error(error))
            continue
        for warehouse in list_metered_warehouses(stack.name, stack.spec, region):
            # CloudWatch refuses the whole request for an id with other characters.
            if warehouse.problem:
                problems.setdefault(stack.name, []).append(warehouse.problem)
            else:
                by_account.setdefault((stack.environment, warehouse.region), []).append(warehouse)
    days_by_stack = {report.stack.name: list_days(report) for report in reports}
    requests: dict[tuple[str, str, date], int] = {}
    for (environment, region), warehouses in by_account.items():
        days = set[date]().union(*(days_by_stack[warehouse.stack] for warehouse in warehouses))
        try:
            requests |= read_requests(open_client(environment, region), warehouses, days)
        except (BotoCoreError, ClientError, LakewrightError, EngineError) as error:
            for stack_name in dict.fromkeys(warehouse.stack for warehouse in warehouses):
                problems.setdefault(stack_name, []).append(_describe_error(error))
    return [_add_problems(fill_requests(report, requests), problems.get(report.stack.name, [])) for report in reports]


def _describe_error(error: Exception) -> str:
    """Return the problem of an error of botocore, or of an environment or stack file that cannot be read."""
    reason = " ".join(str(error).split())
    code = as_mapping(as_mapping(getattr(error, "response", None)).get("Error")).get("Code")
    advice = ". Allow cloudwatch:GetMetricData" if code in _DENIED else ""
    return f"requests could not be read from CloudWatch: {reason}{advice}"


def _add_problems(report: SparkReport, problems: Sequence[str]) -> SparkReport:
    return replace(report, problem="; ".join(filter(None, (report.problem, *problems)))) if problems else report
