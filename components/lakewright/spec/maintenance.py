"""Maintenance of a tenant's tables: scheduled jobs, and task queues of the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from lakewright_spark.policies.model import (
    JOBS,
    CompactionPolicy,
    Duration,
    JobName,
    JobSettings,
    OrphanFilesPolicy,
    PolicyPattern,
)
from lakewright_spark.policies.server_queues import QUEUES, ServerQueue
from pydantic import AfterValidator, Discriminator, Field, StrictBool, Tag

from lakewright.names.types import MAX_NAMESPACE_DEPTH
from lakewright.spec.identity import IdentitySpec, JobsSecret
from lakewright.spec.job_limits import Budget, SparkProperties
from lakewright.spec.size import Size, SizeChoice
from lakewright.spec.standby import StandbySpec
from lakewright.validation.cron import Cron
from lakewright.validation.quantity import Cpu, Memory, bytes_text, parse_bytes, seconds_between
from lakewright.validation.strict_model import StrictModel

_MIN_EXECUTOR_BYTES = 2**30
"""Bytes of memory, of which Spark needs a third outside the heap."""
_SWITCHES = frozenset(queue.switch for queue in QUEUES)


def parse_deadline(duration: str) -> int:
    """Return the seconds of a duration such as `45m` or `4h`. Raises ValueError."""
    return seconds_between(duration, 600, 86_400, "a time of ten minutes to a day, such as `45m` or `4h`")


def _deadline(value: str) -> str:
    parse_deadline(value)
    return value


def _settings(value: dict[str, Any]) -> dict[str, Any]:
    if switches := sorted(_SWITCHES & value.keys()):
        raise ValueError(f"expected settings without {', '.join(switches)}; write `true` or `false` instead")
    return value


def _form(value: object) -> str:
    return "tag:settings" if isinstance(value, dict) else "tag:switch"


Queue = Annotated[
    Annotated[StrictBool, Tag("tag:switch")]
    | Annotated[dict[str, Any], AfterValidator(_settings), Tag("tag:settings")],
    Discriminator(_form),
]
"""`true`, or settings in Lakekeeper's names: the server does it. `false`: it is turned off on the server."""


class ServerSide(StrictModel):
    """Maintenance that Lakekeeper does in a warehouse, if it has the task queue. The jobs skip it then."""

    expire_snapshots: Queue | None = None
    remove_orphan_files: Queue | None = None

    @property
    def queues(self) -> dict[str, dict[str, Any]]:
        """Configuration of each queue that is set."""
        settings = {queue: getattr(self, queue.name) for queue in QUEUES}
        return {
            queue.name: {queue.switch: value is not False, **(value if isinstance(value, dict) else {})}
            for queue, value in settings.items()
            if value is not None
        }

    @property
    def jobs(self) -> tuple[JobName, ...]:
        """Jobs that the server does."""
        return tuple(job for queue in QUEUES if self._is_on(queue) for job in queue.jobs)

    def _is_on(self, queue: ServerQueue) -> bool:
        # Empty settings are the server's defaults.
        return getattr(self, queue.name) not in (None, False)


class ExecutorsSpec(StrictModel):
    """Spark executors of a run, each in its own pod."""

    count: Annotated[int, Field(ge=1, le=256)] = 2
    """Executors at the start of a run, and the least during it."""
    max_count: Annotated[int, Field(ge=1, le=256)] | None = None
    """Most executors, which Spark adds while tasks wait and removes after a minute without tasks. Default: `count`."""
    cpu: Cpu = "1"
    memory: Memory = "4Gi"
    """Memory of the pod: Spark's heap is what its overhead leaves."""
    scratch: Memory = "10Gi"
    """Disk for shuffles and temporary files."""

    @property
    def limit(self) -> int:
        """Most executors at the same time."""
        return self.max_count or self.count

    @property
    def pod_size(self) -> Size:
        """Size of one executor's pod."""
        return Size(cpu=self.cpu, memory=self.memory, scratch=self.scratch)

    @property
    def heap(self) -> str:
        """`spark.executor.memory`, in MiB. Spark adds an overhead of at least 384 MiB or a tenth to it."""
        total = parse_bytes(self.memory) // 2**20
        return f"{min(total - 384, total * 10 // 11)}m"


def _check_executors(executors: ExecutorsSpec) -> ExecutorsSpec:
    if executors.limit < executors.count:
        raise ValueError(
            f"max_count {executors.max_count}: expected at least `count`, which is {executors.count}; "
            "leave out max_count for a fixed number of executors"
        )
    if parse_bytes(executors.memory) < _MIN_EXECUTOR_BYTES:
        raise ValueError(
            f"expected at least {bytes_text(_MIN_EXECUTOR_BYTES)} of memory for an executor; found {executors.memory}"
        )
    return executors


class RegistrySpec(StrictModel):
    """The registry of executions. Jobs look there whether the execution of a result has ended."""

    secret: JobsSecret
    """Key with the URL of the registry's database, such as `postgresql://USER:PASSWORD@HOST:5432/lakewright`."""
    address: Annotated[
        str, Field(pattern=r"^postgresql://[^\s/@:]+:\d{1,5}$", examples=["postgresql://db.example:5432"])
    ]
    """Address of the database without the credential, which the pods may connect to."""


@dataclass(frozen=True)
class CronJobSpec:
    """Schedule and jobs of one CronJob."""

    job: JobName | None
    """The only job, if it has a schedule of its own."""
    schedule: str
    size: Size
    """Size of its pods."""
    jobs: tuple[JobName, ...] = ()
    """Jobs to run; empty for all that the server does not do."""
    skipped: tuple[JobName, ...] = ()
    """Jobs that other CronJobs run."""


class MaintenanceSpec(StrictModel):
    """Schedule and defaults of the jobs that maintain the tenant's tables."""

    schedule: Cron
    """Cron schedule of five fields, in UTC. A run that is due while another is in progress starts when that run ends,
    or is skipped if that takes more than an hour."""
    schedules: dict[JobName, Cron] = {}
    """Schedules of single jobs, in UTC. Each has its own CronJob, and `schedule` runs the other jobs."""
    jobs: Annotated[list[JobName], Field(min_length=1)] | None = None
    """Jobs to run in every warehouse. Default: all that the server does not do."""
    parallel: Annotated[int, Field(ge=1, le=64)] = 4
    """Number of concurrent tables."""
    deadline: Annotated[str, AfterValidator(_deadline)] = "4h"
    """Maximum time of a run, such as `45m` or `4h`. The next run continues."""
    runners: Annotated[int, Field(ge=1, le=32)] = 1
    """Number of pods of a run, which share the tables. More than one need Kubernetes 1.33."""
    task_timeout: Duration = "15m"
    """Time limit of one job on one table, unless `job_settings` or a policy has another."""
    budget: Budget | None = None
    """Most work of one pod in a run: bytes to rewrite, such as `500GiB`, or the sum of the jobs' times, such as `8h`.
    The tables that wait longest come first, then tables that gain most. Default: what the deadline allows."""
    image: Annotated[str, Field(min_length=1, pattern=r"^\S+$")] | None = None
    """Image with `lakewright-spark` and its jars, by digest unless the environment is a trial. Default: the
    environment's `maintenance_image`, or its image for `spark`."""
    size: SizeChoice = Size(cpu="2", memory="4Gi")
    """Size of a run's pod, which is Spark's driver: `small`, `medium`, `large`, `xlarge`, or amounts. Spark's heap is
    what Python (512 MiB) and the overhead of the JVM (a tenth, at least 384 MiB) leave, at least 640 MiB."""
    sizes: dict[JobName, SizeChoice] = {}
    """Sizes of the pods of jobs with a CronJob of their own in `schedules`. Default: `size`."""
    executors: Annotated[ExecutorsSpec, AfterValidator(_check_executors)] | None = None
    """Executors in pods of their own. Default: the run's pod does all work."""
    spark_properties: SparkProperties = {}
    """Properties of Spark, such as `spark.sql.shuffle.partitions`. Properties of the master, the catalogs, credentials
    and the pods' sizes are refused."""
    registry: RegistrySpec | None = None
    """Registry of executions. Without it, results of executions are not compacted."""
    identity: IdentitySpec | None = None
    """The job's identity at the catalog. Default: the tenant's, or the job's ServiceAccount."""
    standby: dict[str, StandbySpec] = {}
    """Standbys by warehouse. A CronJob copies the tables of the warehouse to another bucket and catalog."""
    server: dict[str, ServerSide] = {}
    """Maintenance that Lakekeeper does, by warehouse."""
    orphan_files: OrphanFilesPolicy | None = None
    """Default for tables without a policy of their own."""
    compaction: CompactionPolicy | None = None
    """Default for tables without a policy of their own."""
    job_settings: dict[JobName, JobSettings] | None = None
    """Cadence and time limit by job, for tables without a policy of their own."""

    def defaults(self) -> tuple[PolicyPattern, ...]:
        """Return the defaults as patterns that match every table. The tenant's policies override them."""
        policies = {"orphan_files": self.orphan_files, "compaction": self.compaction, "job_settings": self.job_settings}
        if not any(policies.values()):
            return ()
        matches = (".".join(["*"] * (2 + depth)) for depth in range(1, MAX_NAMESPACE_DEPTH + 1))
        return tuple(PolicyPattern.model_validate({"match": match, **policies}) for match in matches)

    def server_jobs(self, warehouse: str) -> tuple[JobName, ...]:
        """Return the jobs that the server does in a warehouse."""
        side = self.server.get(warehouse)
        return side.jobs if side else ()

    def cron_jobs(self) -> tuple[CronJobSpec, ...]:
        """Return the CronJobs: one for each of `schedules`, and one for the jobs without a schedule of their own."""
        scheduled = tuple(
            CronJobSpec(job, schedule, self.sizes.get(job, self.size), jobs=(job,))
            for job, schedule in self.schedules.items()
        )
        unscheduled: list[JobName] = [job for job in self.jobs or JOBS if job not in self.schedules]
        if not unscheduled:
            return scheduled
        job_names: tuple[JobName, ...] = tuple(unscheduled) if self.jobs else ()
        skipped: tuple[JobName, ...] = () if self.jobs else tuple(self.schedules)
        return (CronJobSpec(None, self.schedule, self.size, jobs=job_names, skipped=skipped), *scheduled)
