"""The upkeep of a tenant's tables: jobs that run at times, and what the server does itself."""

from __future__ import annotations

import re
from typing import Annotated, Any

from lakewright_spark.policies.model import CompactionPolicy, JobName, OrphanFilesPolicy, PolicyPattern
from lakewright_spark.policies.server_queues import QUEUES, ServerQueue
from pydantic import AfterValidator, Discriminator, Field, StrictBool, Tag

from lakewright.names.types import MAX_NAMESPACE_DEPTH
from lakewright.spec.computing_unit import Size
from lakewright.validation.cron import Cron
from lakewright.validation.strict_model import StrictModel

_SECONDS = {"m": 60, "h": 3600}
_SWITCHES = frozenset(queue.switch for queue in QUEUES)


def seconds_of(duration: str) -> int:
    """How many seconds `45m` or `4h` are. Raises ValueError."""
    match = re.fullmatch(r"(\d{1,4})([mh])", duration)
    seconds = int(match[1]) * _SECONDS[match[2]] if match else 0
    if not 600 <= seconds <= 86_400:
        raise ValueError("expected a time of ten minutes to a day, such as `45m` or `4h`")
    return seconds


def _deadline(value: str) -> str:
    seconds_of(value)
    return value


def _settings(value: dict[str, Any]) -> dict[str, Any]:
    if switches := sorted(_SWITCHES & value.keys()):
        raise ValueError(f"expected settings without {', '.join(switches)}; write `true` or `false` in their place")
    return value


def _form(value: object) -> str:
    return "tag:settings" if isinstance(value, dict) else "tag:switch"


Queue = Annotated[
    Annotated[StrictBool, Tag("tag:switch")]
    | Annotated[dict[str, Any], AfterValidator(_settings), Tag("tag:settings")],
    Discriminator(_form),
]
"""`true`, or settings under Lakekeeper's own names: the server does it. `false`: it is turned off there."""


class ServerSide(StrictModel):
    """What Lakekeeper does itself in a warehouse, if it has the task queue; the jobs leave that alone then."""

    expire_snapshots: Queue | None = None
    remove_orphan_files: Queue | None = None

    @property
    def queues(self) -> dict[str, dict[str, Any]]:
        """The configuration of each queue that is spoken of."""
        said = {queue: getattr(self, queue.name) for queue in QUEUES}
        return {
            queue.name: {queue.switch: said_ is not False, **(said_ if isinstance(said_, dict) else {})}
            for queue, said_ in said.items()
            if said_ is not None
        }

    @property
    def jobs(self) -> tuple[JobName, ...]:
        """The jobs that the server does."""
        return tuple(job for queue in QUEUES if self._does(queue) for job in queue.jobs)

    def _does(self, queue: ServerQueue) -> bool:
        # Settings may be empty, and mean the server's defaults.
        return getattr(self, queue.name) not in (None, False)


class MaintenanceSpec(StrictModel):
    """When jobs see to the tenant's tables, and what they do by default."""

    schedule: Cron
    """Five fields, in UTC. A run that is still going when the next one is due goes on alone."""
    jobs: Annotated[list[JobName], Field(min_length=1)] | None = None
    """The jobs' own in every warehouse. Default: all that the server does not do."""
    parallel: Annotated[int, Field(ge=1, le=64)] = 4
    """Tables at a time."""
    deadline: Annotated[str, AfterValidator(_deadline)] = "4h"
    """A run ends after so long, `45m` or `4h`; the next one goes on from there."""
    image: Annotated[str, Field(min_length=1, pattern=r"^\S+$")] | None = None
    """With `lakewright-spark` and its jars in, by digest unless the environment is a trial. Default: the environment's
    `maintenance_image`, or that of `spark`."""
    size: Size = Size(cpu="2", memory="4Gi")
    server: dict[str, ServerSide] = {}
    """By warehouse: what Lakekeeper does itself."""
    orphan_files: OrphanFilesPolicy | None = None
    """Of tables that no policy says otherwise of."""
    compaction: CompactionPolicy | None = None
    """Of tables that no policy says otherwise of."""

    def defaults(self) -> tuple[PolicyPattern, ...]:
        """The same as patterns of every table; those of the tenant come after them, and win."""
        if self.orphan_files is None and self.compaction is None:
            return ()
        matches = (".".join(["*"] * (2 + depth)) for depth in range(1, MAX_NAMESPACE_DEPTH + 1))
        return tuple(
            PolicyPattern(match=match, orphan_files=self.orphan_files, compaction=self.compaction) for match in matches
        )

    def server_jobs(self, warehouse: str) -> tuple[JobName, ...]:
        """What the server does in a warehouse."""
        side = self.server.get(warehouse)
        return side.jobs if side else ()
