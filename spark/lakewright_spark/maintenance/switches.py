"""What every maintenance job has in common: its metrics, and the reasons to leave a table alone. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.policies.model import Job, PoliciesInForce, TablePolicies
from lakewright_spark.result_uris import ResultUri
from lakewright_spark.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from lakewright_spark.maintenance.table.iceberg import IcebergTable


_OF_THE_PRIMARY = frozenset({"retention", "snapshot-expiration", "compaction", "rewrite-manifests"})
_CHANGES_NOTHING = frozenset({"statistics", "orphan-files"})


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What a job did; with `dry_run`, what it would have done. Bytes and counts of the job's own are in subclasses."""

    state: Literal["SUCCEEDED", "SKIPPED"] = "SUCCEEDED"
    reason: str = ""
    """Why it was skipped, or what whoever reads this should know."""
    dry_run: bool = False

    @property
    def failure(self) -> str | None:
        """What a job that came to its end could not do; None if it did all."""
        return None


class JobRun(Protocol):
    """One job on one table. `now` is the instant (UTC) that ages are counted from."""

    def __call__(self, opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> Metrics: ...


def reason_to_skip(job: Job, policy: TablePolicies, now: datetime) -> str | None:
    """Why a job leaves the table alone, whatever state that is in; None if it may run."""
    if reason := reason_of_server(job, policy):
        return reason
    switches = policy.maintenance
    if switches and (switches.disabled or job in switches.disabled_jobs):
        return "maintenance is switched off" if switches.disabled else f"{job} is switched off"
    if policy.lock and policy.lock.holds(now) and job not in _CHANGES_NOTHING:
        return f"locked since {policy.lock.since.isoformat()}" + (
            f": {message}" if (message := policy.lock.message) else ""
        )
    if policy.replica and job in _OF_THE_PRIMARY:
        return "a replica: this is done where it is copied from"
    return None


def reason_of_server(job: Job, policy: TablePolicies) -> str | None:
    """Why a job is not the jobs' to do: the catalog's server does it."""
    where = policy.done_by_server.get(job) if isinstance(policy, PoliciesInForce) else None
    return f"the catalog's server does {job} itself, by {where}" if where else None


def switched_off(properties: Mapping[str, str], switch: str) -> bool:
    """Whether a switch of Iceberg's that is on by default is off: it reads every word but `true` so."""
    value = properties.get(switch)  # without a default: a map of Java's has none
    return value is not None and value.lower() != "true"


def options(values: dict[str, Any]) -> str:
    """Options of a procedure, as Spark SQL's map of texts."""
    return "map(" + ", ".join(f"'{key}', '{value}'" for key, value in values.items()) + ")"


def reason_to_wait(table: TableIdentifier, registry: ExecutionRegistry | None) -> str | None:
    """Why a result is not to be compacted; None for other tables, and once its execution is known to have ended."""
    uri = ResultUri.of_table(table.name, table.warehouse)
    if uri is None:
        return None
    run = uri.execution
    record = registry.find(run.workflow, run.execution) if registry else None
    if record is None:
        return f"a result of execution {run.execution}: no registry says that it has ended"
    return None if record.status.ended else f"a result of execution {run.execution}, which is {record.status.value}"
