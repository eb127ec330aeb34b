"""Reasons to leave a table alone: switches, locks, replicas, the catalog's server, and running executions."""

from __future__ import annotations

from datetime import datetime

from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.maintenance.registry import JOBS_BY_NAME
from lakewright_spark.policies.model import JobName, PoliciesInForce, TablePolicies
from lakewright_spark.result_uris import ResultUri
from lakewright_spark.table_identifier import TableIdentifier
from lakewright_spark.times import format_time


def reason_to_skip(job: JobName, policy: TablePolicies, now: datetime) -> str | None:
    """Return why the policies hold a job back in any state of the table; None if it may run."""
    if reason := reason_of_server(job, policy):
        return reason
    switches = policy.maintenance
    if switches and (switches.disabled or job in switches.disabled_jobs):
        return "maintenance is switched off" if switches.disabled else f"{job} is switched off"
    if policy.lock and policy.lock.holds(now) and not JOBS_BY_NAME[job].read_only:
        return f"locked since {format_time(policy.lock.since)}" + (
            f": {message}" if (message := policy.lock.message) else ""
        )
    if policy.replica and JOBS_BY_NAME[job].primary_only:
        return "the table is a replica; this job runs on the primary only"
    return None


def reason_of_server(job: JobName, policy: TablePolicies) -> str | None:
    """Return the setting by which the catalog's server does the job itself; None if there is no such setting."""
    setting_source = policy.done_by_server.get(job) if isinstance(policy, PoliciesInForce) else None
    return f"the catalog's server does {job} itself, by {setting_source}" if setting_source else None


def reason_to_wait(job: JobName, table: TableIdentifier, registry: ExecutionRegistry | None) -> str | None:
    """Return why a job waits for a running execution, whose readers page through the table's files.

    Args:
        job: Only jobs with `waits_for_executions` wait.
        table: Only results of executions have to be waited for.
        registry: Knows which executions have ended. Without one, every execution counts as running.
    """
    if not JOBS_BY_NAME[job].waits_for_executions:
        return None
    uri = ResultUri.from_table_name(table.name, table.warehouse)
    if uri is None:
        return None
    run = uri.execution
    record = registry.find(run.workflow, run.execution) if registry else None
    if record is None:
        return f"a result of execution {run.execution}, which no registry reports as ended"
    return None if record.status.has_ended else f"a result of execution {run.execution}, which is {record.status.value}"
