"""A tenant's maintenance: schedule, jobs, and the owner of what the server can do too."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from lakewright.spec import MaintenanceSpec, SpecError, TenantSpec, parse_spec
from lakewright.spec.quota import sum_amounts

AT_TWO = {"schedule": "0 2 * * *"}


def tenant(maintenance: Any, **changes: Any) -> TenantSpec:
    """Return a tenant with two warehouses."""
    return parse_spec(
        {
            "version": 1,
            "environment": "sandbox",
            "name": "acme",
            "owner": "data@acme.example",
            "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
            "warehouses": [{"name": "executions", "namespaces": ["sales"]}, {"name": "curated"}],
            "maintenance": maintenance,
            **changes,
        },
        "spec",
    )


def maintenance(**changes: Any) -> MaintenanceSpec:
    maintenance_spec = tenant(AT_TWO | changes).maintenance
    assert maintenance_spec is not None
    return maintenance_spec


def mistakes(maintenance: Any, **changes: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        tenant(maintenance, **changes)
    return {problem.path: problem.expected for problem in caught.value.problems}


def test_schedule_is_enough() -> None:
    settings = maintenance()

    assert (settings.jobs, settings.parallel, settings.deadline) == (None, 4, "4h")
    assert settings.defaults() == ()
    assert settings.server_jobs("executions") == ()


@pytest.mark.parametrize(
    "schedule", ["0 2 * * *", "*/15 * * * *", "0 2 1-5,10 jan-mar mon,wed", "5 4 * * sun", "0 0-23/2 * * 1-5"]
)
def test_schedules(schedule: str) -> None:
    assert maintenance(schedule=schedule).schedule == schedule


@pytest.mark.parametrize(
    ("change", "path", "expected"),
    [
        ({"schedule": "0 2 * *"}, "schedule", "five fields.*found 4"),
        ({"schedule": "60 2 * * *"}, "schedule", "minute: expected numbers from 0 to 59"),
        ({"schedule": "0 5-2 * * *"}, "schedule", "hour: expected"),
        ({"schedule": "*/0 2 * * *"}, "schedule", "minute: expected"),
        ({"schedule": "@daily"}, "schedule", "five fields"),
        ({"jobs": ["vacuum"]}, "jobs.0", "expected 'refs', 'retention'"),
        ({"jobs": []}, "jobs", "at least 1"),
        ({"jobs": ["retention", "retention"]}, "jobs", "each job once"),
        ({"parallel": 0}, "parallel", "greater than or equal to 1"),
        ({"deadline": "2d"}, "deadline", "ten minutes to a day"),
        ({"deadline": "5m"}, "deadline", "ten minutes to a day"),
        ({"size": {"memory": "4GiB"}}, "size.memory", "notation of Kubernetes"),
        ({"compaction": {"min_input_files": 1}}, "compaction.min_input_files", "greater than or equal to 2"),
        ({"server": {"nowhere": {}}}, "server.nowhere", "executions, curated"),
        ({"server": {"curated": {"expire_snapshots": "yes"}}}, "server.curated.expire_snapshots", "boolean"),
        ({"server": {"curated": {"vacuum": True}}}, "server.curated.vacuum", "expire_snapshots, remove_orphan_files"),
        (
            {"server": {"curated": {"expire_snapshots": {"enable-expire-snapshots": True}}}},
            "server.curated.expire_snapshots",
            "write `true` or `false` instead",
        ),
        (
            {"jobs": ["retention", "staged-files"], "server": {"curated": {"remove_orphan_files": True}}},
            "server.curated.remove_orphan_files",
            "expected one owner: `maintenance.jobs` has staged-files",
        ),
    ],
)
def test_each_mistake_is_reported_with_its_path(change: dict[str, Any], path: str, expected: str) -> None:
    problems = mistakes(AT_TWO | change)
    at = next((problem_path for problem_path in problems if problem_path.startswith(f"maintenance.{path}")), None)
    assert at is not None, problems
    assert re.search(expected, problems[at]), problems


def test_table_does_not_enable_job_work_at_the_server() -> None:
    on = {"lakekeeper.history.expire.enabled": "true"}
    table = {"name": "executions.sales.orders", "columns": [{"name": "n", "type": "int"}], "properties": on}
    server = {"executions": {"expire_snapshots": True}}

    problems = mistakes(AT_TWO, tables=[table])
    assert "expected one owner" in problems["tables.0.properties.lakekeeper.history.expire.enabled"]
    assert tenant(AT_TWO | {"server": server}, tables=[table]).tables


def test_backups_are_refused_where_the_server_deletes_files() -> None:
    """The server knows nothing of a backup, and deletes files that no snapshot refers to."""
    keep = {"retention": {"keep": 30, "column": "day", "pattern": "", "backup": True}}
    columns = [{"name": "day", "type": "string"}]
    tables = [
        {"name": "executions.sales.orders", "columns": columns, "policies": keep},
        {
            "name": "executions.sales.kept",
            "columns": columns,
            "policies": keep,
            "properties": {"lakekeeper.history.expire.enabled": "false"},
        },
    ]
    tables.append({"name": "executions.sales.others", "columns": columns})
    policies = [
        {"match": "Exec*.sales.oth*", **keep},
        {"match": "executions.logs.*", **keep},
        {"match": "curated.*.*", **keep},
    ]
    on = AT_TWO | {"server": {"executions": {"expire_snapshots": True}}}
    problems = mistakes(on, tables=tables, policies=policies)
    assert problems.keys() == {"tables.0.policies.retention.backup", "policies.0.retention.backup"}, problems
    assert (
        "table executions.sales.others: expected no `backup` where the catalog's server does snapshot-expiration"
        in problems.popitem()[1]
    )
    assert tenant(AT_TWO, tables=tables, policies=policies).policies
    overridden = [*policies, {"match": "executions.sales.*", "retention": {"keep": 30, "column": "day", "pattern": ""}}]
    assert mistakes(on, tables=tables, policies=overridden).keys() == {"tables.0.policies.retention.backup"}


def test_server_side_work_is_enabled_there_and_not_here() -> None:
    settings = maintenance(
        server={
            "executions": {"expire_snapshots": {"max-snapshot-age-ms": 86_400_000}, "remove_orphan_files": True},
            "curated": {"expire_snapshots": False},
        }
    )

    assert settings.server_jobs("executions") == ("snapshot-expiration", "orphan-files", "staged-files")
    assert settings.server_jobs("curated") == ()
    assert settings.server["executions"].queues == {
        "expire_snapshots": {"enable-expire-snapshots": True, "max-snapshot-age-ms": 86_400_000},
        "remove_orphan_files": {"enable-remove-orphan-files": True},
    }
    assert settings.server["curated"].queues == {"expire_snapshots": {"enable-expire-snapshots": False}}


def test_defaults_hold_for_tables_of_every_depth() -> None:
    patterns = maintenance(orphan_files={"older_than_days": 9}, compaction={"target_file_size": "256MiB"}).defaults()

    for namespace in (("a",), ("a", "b", "c", "d", "e")):
        (pattern,) = [item for item in patterns if item.matches("executions", namespace, "t")]
        assert pattern.orphan_files is not None
        assert pattern.orphan_files.older_than_days == 9
        assert pattern.compaction is not None
        assert pattern.compaction.target_file_size == 2**28


@pytest.mark.parametrize(
    "name",
    [
        "spark.master",
        "spark.sql.catalog.executions.uri",
        "spark.sql.extensions",
        "spark.driver.memory",
        "spark.executor.instances",
        "spark.kubernetes.namespace",
        "spark.authenticate",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "hadoop.anything",
    ],
)
def test_spark_properties_that_break_a_run_are_refused(name: str) -> None:
    messages = mistakes({**AT_TWO, "spark_properties": {name: "x"}})
    assert name in messages["maintenance.spark_properties"]


def test_spark_properties_are_allowed() -> None:
    properties = {"spark.sql.shuffle.partitions": "64", "spark.network.timeout": "300s"}
    assert maintenance(spark_properties=properties).spark_properties == properties


def test_cadence_and_time_limit_are_defaults_of_every_table() -> None:
    settings = {"orphan-files": {"every": "14d"}, "compaction": {"timeout": "2h"}}
    pattern = maintenance(job_settings=settings).defaults()[0]
    assert pattern.every("orphan-files") == timedelta(days=14)
    assert pattern.timeout("compaction") == timedelta(hours=2)
    assert pattern.every("compaction") is None


@pytest.mark.parametrize(
    ("change", "path", "expected"),
    [
        ({"task_timeout": "soon"}, "maintenance.task_timeout", "45m, 4h or 7d"),
        ({"budget": "0GiB"}, "maintenance.budget", "500GiB"),
        ({"job_settings": {"compaction": {"every": "1w"}}}, "maintenance.job_settings.compaction.every", "7d"),
    ],
)
def test_invalid_limits(change: Any, path: str, expected: str) -> None:
    assert expected in mistakes(AT_TWO | change)[path]


def test_runners_count_in_the_quota() -> None:
    one, four = (sum_amounts([], maintenance(runners=number)) for number in (1, 4))
    assert (four.pods, four.memory) == (4 * one.pods, 4 * one.memory)


def test_job_with_its_own_size() -> None:
    settings = {"schedules": {"compaction": "0 4 * * *"}, "sizes": {"compaction": {"cpu": "8", "memory": "64Gi"}}}
    spec = maintenance(size={"cpu": "1", "memory": "4Gi"}, **settings)
    assert {cron.job: cron.size.memory for cron in spec.cron_jobs()} == {None: "4Gi", "compaction": "64Gi"}
    assert sum_amounts([], spec).memory == 68 * 2**30
    assert (
        "expected a job of `maintenance.schedules`: none"
        in mistakes({**AT_TWO, "sizes": {"compaction": "large"}})["maintenance.sizes.compaction"]
    )
