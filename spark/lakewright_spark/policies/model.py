"""Table policies: models, table properties, and patterns of table names."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeGuard, get_args

from pydantic import (
    AfterValidator,
    ByteSize,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from lakewright_spark.documented_model import DocumentedModel
from lakewright_spark.policies.date_pattern import DEFAULT_PATTERN, validate_pattern
from lakewright_spark.policies.sort_columns import parse_sort_column
from lakewright_spark.suggestions import suggest_name

PREFIX = "lakewright.policy."
"""Table properties with this prefix hold one policy each, as JSON; they override patterns."""

Unit = Literal["hour", "day", "month", "year"]
JobName = Literal[
    "refs",
    "retention",
    "snapshot-expiration",
    "orphan-files",
    "staged-files",
    "compaction",
    "rewrite-manifests",
    "statistics",
    "engine-statistics",
]
JOBS: tuple[JobName, ...] = get_args(JobName)
"""In run order."""

MiB, TiB = 2**20, 2**40
LEAST_TARGETS = 2
"""Least size of a group of files that is compacted, as a multiple of the target size. Files that are compacted for
their size are smaller than 0.75 times the target size, so a full group has more than the target size."""
_MILLENNIUM: Mapping[Unit, int] = {"hour": 8_766_000, "day": 365_250, "month": 12_000, "year": 1_000}
"""Longest retention in units, within the range of the calendar."""
_CENTURY = 36_525
"""Days."""


def _is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


class _Policy(DocumentedModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, raw: Any) -> Any:
        """Report unknown keys together with the valid keys."""
        if _is_mapping(raw) and (unknown := sorted(str(key) for key in raw if key not in cls.model_fields)):
            raise ValueError(
                f"unknown key {', '.join(unknown)}; expected some of {', '.join(cls.model_fields)}"
                f"{suggest_name(unknown[0], cls.model_fields)}"
            )
        return raw

    @model_serializer(mode="wrap")
    def _omit_unset_fields(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in serialize(self).items() if value is not None}


class RetentionPolicy(_Policy):
    """Rows older than a number of units are deleted, whole partitions at a time."""

    keep: Annotated[int, Field(ge=1)]
    """Keep this many complete units; the current unit is always kept."""
    unit: Unit = "day"
    """Unit of `keep`. For a table partitioned by time, it must be the unit of its partitions.

    A table that is partitioned by the values of a date column can have every unit but `hour`."""
    column: str
    pattern: str | None = None
    """Format of a text column with the date, such as `yyyy-MM-dd`, which "" stands for. Only without time partitions.

    Files whose smallest or largest text is not a date of this format are kept and reported."""
    backup: bool = False
    """Keep the files of deleted rows, and list them in a manifest under the table's location."""
    backup_days: Annotated[int, Field(ge=1, le=_CENTURY)] | None = None
    """Delete the manifests of backups after this many days. `orphan-files` finds their files then. Default: never."""

    @model_validator(mode="after")
    def _check_range(self) -> RetentionPolicy:
        if self.keep > (max_units := _MILLENNIUM[self.unit]):
            raise ValueError(f"keep: expected at most {max_units} units of a {self.unit}, found {self.keep}")
        return self

    @model_validator(mode="after")
    def _check_pattern(self) -> RetentionPolicy:
        if self.pattern is not None:
            validate_pattern(self.pattern or DEFAULT_PATTERN, self.unit)
        return self


class HistoryPolicy(_Policy):
    """Snapshots to keep: at most this old, and at most this many.

    The table's own `history.expire.*` properties override both.
    """

    max_age_days: Annotated[int, Field(ge=1, le=_CENTURY)] | None = None
    """Maximum age of a snapshot in days. Default: five days, as in Iceberg."""
    versions: Annotated[int, Field(ge=2, le=100)] | None = None
    """Maximum number of snapshots. Unpublished writes that are staged for an audit (`wap.id`) expire by age only.

    So do the snapshots of `main` since the last commit of a Spark stream, which finds its last batch there after a
    crash. A stream without a commit for five days, or for the maximum age if that is less, counts as ended."""
    longest_run_hours: Annotated[int, Field(ge=1, le=_CENTURY * 24)] | None = None
    """Time that readers and writers of the table may take. Default: 24.

    A snapshot is kept for this long after it was replaced, and so is a file that no snapshot refers to yet."""

    @model_validator(mode="after")
    def _check_not_empty(self) -> HistoryPolicy:
        if not self.model_dump():
            raise ValueError("expected `max_age_days`, `versions` or `longest_run_hours`")
        return self


class OrphanFilesPolicy(_Policy):
    """Files of the table's location that no snapshot refers to; their age has to exceed the longest write."""

    older_than_days: Annotated[int, Field(ge=1, le=_CENTURY)] = 7
    listing: str | None = None
    """Table or view in Spark SQL that lists the files of the location, such as `ops_data.inventory.daily`.

    It has the columns `file_path` (address, such as `s3://bucket/path/file`) and `last_modified` (timestamp). Default:
    Spark's executors list the store. `staged-files` always lists the store again before it deletes a file."""


class StagedFilesPolicy(_Policy):
    """Time for which a file remains a candidate before it is deleted."""

    older_than_days: Annotated[int, Field(ge=1, le=_CENTURY)] = 3


class CompactionPolicy(_Policy):
    """Rewrite small files into large files."""

    strategy: Literal["bin-pack", "sort", "z-order"] = "bin-pack"
    columns: tuple[str, ...] = ()
    """Columns to sort or z-order by. Default of `sort`: the table's own sort order.

    `sort` takes nested names, transforms, directions and the place of nulls, such as `address.city`, `days(ts) desc` or
    `bucket(16, id) asc nulls last`. `z-order` takes names of top-level columns."""
    where: str | None = None
    """Condition of Spark SQL, such as `day >= current_date() - 7`. Other files are left alone."""
    target_file_size: Annotated[ByteSize, Field(ge=MiB, le=TiB)] = ByteSize(512 * MiB)
    min_input_files: Annotated[int, Field(ge=2, le=1_000_000)] = 5
    delete_file_threshold: Annotated[int, Field(ge=1, le=1_000_000)] = 5
    """Rewrite a data file to which at least this many delete files apply, whatever its size."""
    equality_delete_threshold: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Rewrite all files of a table with equality deletes and at least this many delete files, if the table has at most
    1.8 times the target file size and the policy has no `where`. Larger tables have `delete_file_threshold` only."""
    delete_ratio_threshold: Annotated[float, Field(gt=0, le=1)] = 0.3
    """Rewrite a data file of which at least this part is deleted, by delete files of this data file alone."""
    rewrite_old_partitions: bool = False
    """Write files of earlier partition specs again by the current spec.

    As long as there are such files, a run rewrites all files of the table. Without effect if the policy has `where`,
    since the condition may leave such files, and each run would rewrite all files again."""
    partial_progress_commits: Annotated[int, Field(ge=0, le=100)] = 10
    """Maximum number of commits, each of which is kept if a later commit fails; 0 for a single commit."""
    max_group_size: Annotated[ByteSize, Field(ge=MiB, le=TiB)] | None = None
    """Most bytes of the files that are rewritten together, at least twice `target_file_size`. The tables in work share
    the cores, and each core has a group. Default: all groups in work take half the job's time limit at 2 MiB per
    second. With two cores, four tables and two hours, a group has 1800 MiB."""

    @property
    def replaces_old_partitions(self) -> bool:
        """Return whether files of earlier partition specs are written again. Some would remain with `where`."""
        return self.rewrite_old_partitions and self.where is None

    def list_column_names(self) -> list[str]:
        """Return the full names of the columns to sort by."""
        return [parse_sort_column(text).name for text in self.columns]

    @model_validator(mode="after")
    def _check_columns(self) -> CompactionPolicy:
        if self.strategy == "z-order" and not self.columns:
            raise ValueError("z-order: expected `columns`")
        if self.strategy == "bin-pack" and self.columns:
            raise ValueError("bin-pack: expected no `columns`; `sort` and `z-order` have them")
        for text in self.columns:
            if not parse_sort_column(text).is_plain and self.strategy == "z-order":
                raise ValueError(f"z-order: expected names of top-level columns, found {text!r}")
        return self

    @model_validator(mode="after")
    def _check_group_size(self) -> CompactionPolicy:
        least = ByteSize(LEAST_TARGETS * self.target_file_size)
        if self.max_group_size is not None and self.max_group_size < least:
            raise ValueError(
                f"max_group_size: expected at least twice `target_file_size`, {least.human_readable()}, found "
                f"{self.max_group_size.human_readable()}: smaller groups may hold too few files to be rewritten"
            )
        return self


class RefPolicy(_Policy):
    """A branch or a tag of the table, which is created at the current snapshot."""

    type: Literal["branch", "tag"]
    max_age_days: Annotated[int, Field(ge=1, le=_CENTURY)] | None = None
    """Remove the branch or tag when its snapshot is this old. A tag is created again then. Default: never.

    Its snapshot expires at the earliest one longest run later (`history.longest_run_hours`)."""
    min_snapshots: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Number of snapshots of the branch that are always kept. Default: as on `main`."""
    max_snapshot_age_days: Annotated[int, Field(ge=1, le=_CENTURY)] | None = None
    """Age of the branch's other snapshots at which they expire. Default: as on `main`."""

    @property
    def max_age(self) -> timedelta | None:
        """Age at which the branch or tag expires."""
        return timedelta(days=self.max_age_days) if self.max_age_days else None

    @property
    def max_snapshot_age(self) -> timedelta | None:
        """Age at which snapshots of the branch expire."""
        return timedelta(days=self.max_snapshot_age_days) if self.max_snapshot_age_days else None

    @model_validator(mode="after")
    def _check_tag(self) -> RefPolicy:
        if self.type == "tag" and (self.min_snapshots or self.max_snapshot_age_days):
            raise ValueError("tag: expected no `min_snapshots` and `max_snapshot_age_days`, which only branches have")
        return self


def _check_ref_name(name: str) -> str:
    if name == "main":
        raise ValueError("main: expected another name; policy `history` has the retention of `main`")
    return name


RefName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\s]+$"), AfterValidator(_check_ref_name)]


class EngineStatisticsPolicy(_Policy):
    """Statistics that query engines read. They are files of the table, by Iceberg's own procedures."""

    partitions: bool = True
    """Compute rows, files and bytes by partition, from the files that changed (`compute_partition_stats`)."""
    columns: Literal["none", "all"] | tuple[str, ...] = "none"
    """Columns whose distinct values are estimated (`compute_table_stats`), which reads the whole table: `all`, or
    names of columns."""


_DURATION = re.compile(r"(\d{1,4})([mhd])")
_UNITS: Mapping[str, timedelta] = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def parse_duration(text: str) -> timedelta:
    """Return the duration of a text such as `45m`, `4h` or `7d`. Raises ValueError for other texts.

    >>> str(parse_duration("7d"))
    '7 days, 0:00:00'
    """
    match = _DURATION.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise ValueError("expected a duration such as 45m, 4h or 7d")
    return int(match[1]) * _UNITS[match[2]]


def _check_duration(text: str) -> str:
    parse_duration(text)
    return text


Duration = Annotated[str, AfterValidator(_check_duration), Field(examples=["7d"])]
"""Minutes, hours or days, such as `45m`, `4h` or `7d`."""


class JobSettings(_Policy):
    """Settings of one maintenance job."""

    every: Duration | None = None
    """Time between two successful runs, such as `7d`. A job is due after two thirds of it, or all but eight hours,
    whichever is later. Default: `7d` for `orphan-files` and `engine-statistics`, otherwise every night on which the
    table needs the job."""
    timeout: Duration | None = None
    """Time limit of one run, such as `2h`. A compaction then begins no further group of files, and its groups in work
    have half of the limit more. Default: that of the runner (`--task-timeout`, 15 minutes)."""


class Lock(_Policy):
    """A lock on the table: no job changes the table while the lock is in force."""

    message: str = ""
    since: datetime
    expires_in_days: Annotated[int, Field(ge=1, le=_CENTURY)] | None = None
    """Days until the lock expires. Default: it remains until it is removed."""

    @model_validator(mode="after")
    def _check_zone(self) -> Lock:
        if self.since.tzinfo is None:
            raise ValueError("since: expected an instant with a zone, as in 2026-01-31T12:00:00Z")
        return self

    def holds(self, now: datetime) -> bool:
        """Return whether the lock is in force."""
        return self.expires_in_days is None or now - self.since < timedelta(days=self.expires_in_days)


class MaintenanceSwitches(_Policy):
    """Jobs that do not run on the table."""

    disabled: bool = False
    """Disable all jobs."""
    disabled_jobs: tuple[JobName, ...] = ()


class RankingPolicy(_Policy):
    """Turn of the table among other tables with due jobs."""

    weight: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Multiplies the gain of the table among tables that have waited equally many days."""


class TablePolicies(_Policy):
    """Policies of a table. Jobs use their defaults for policies that are not set."""

    retention: RetentionPolicy | None = None
    history: HistoryPolicy | None = None
    orphan_files: OrphanFilesPolicy | None = None
    staged_files: StagedFilesPolicy | None = None
    compaction: CompactionPolicy | None = None
    column_tags: dict[str, tuple[Literal["PII", "HC"], ...]] | None = None
    """Tags by column: personal data (`PII`), highly confidential data (`HC`)."""
    sharing: bool | None = None
    """Whether principals other than the warehouse's owner may have rights on the table. Default: they may."""
    replica: bool | None = None
    """The table is a copy of a table in another catalog, so that jobs do not delete its rows and snapshots."""
    lock: Lock | None = None
    maintenance: MaintenanceSwitches | None = None
    ranking: RankingPolicy | None = None
    job_settings: dict[JobName, JobSettings] | None = None
    """Cadence and time limit by job."""
    refs: dict[RefName, RefPolicy] | None = None
    """Branches and tags by name. Job `refs` creates them, sets their retention, and removes what it created before and
    is no longer declared. Other branches and tags are left alone."""
    engine_statistics: EngineStatisticsPolicy | None = None
    """Statistics for query engines, computed after changes, at most once a week. Default: none."""

    def every(self, job: JobName) -> timedelta | None:
        """Return the cadence that a policy sets for a job; None for the job's own."""
        settings = (self.job_settings or {}).get(job)
        return parse_duration(settings.every) if settings and settings.every else None

    def timeout(self, job: JobName) -> timedelta | None:
        """Return the time limit that a policy sets for runs of a job; None for the runner's."""
        settings = (self.job_settings or {}).get(job)
        return parse_duration(settings.timeout) if settings and settings.timeout else None

    def properties(self) -> dict[str, str]:
        """Return the table properties that hold these policies."""
        values = self.model_dump(mode="json", include=set(POLICIES))
        return {to_property_name(name): json.dumps(values[name]) for name in POLICIES if name in values}

    def column_mistakes(self, columns: Collection[str]) -> list[str]:
        """Return a sentence for each policy that names columns which the table does not have."""
        columns_by_policy = {
            "column_tags": self.column_tags or {},
            "compaction": self.compaction.list_column_names() if self.compaction else (),
        }
        missing_columns = {
            policy: [name for name in names if name not in columns] for policy, names in columns_by_policy.items()
        }
        return [
            f"{policy}: expected columns of the table, {', '.join(columns)}; there is no {', '.join(unknown)}"
            for policy, unknown in missing_columns.items()
            if unknown
        ]

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> TablePolicies:
        """Return the policies among a table's properties. Raises ValueError for an unknown or unreadable policy."""
        values: dict[str, Any] = {}
        for key, text in properties.items():
            if key.startswith(PREFIX):
                try:
                    values[key.removeprefix(PREFIX).replace("-", "_")] = json.loads(text)
                except json.JSONDecodeError:
                    raise ValueError(f"{key}: expected JSON") from None
        return cls.model_validate(values)

    def override(self, other: TablePolicies) -> TablePolicies:
        """Return the policies of both; a policy that is set here replaces the policy of `other`."""
        mine = {name: value for name in POLICIES if (value := getattr(self, name)) is not None}
        theirs = {name: getattr(other, name) for name in POLICIES}
        return TablePolicies.model_construct(**{**theirs, **mine})


POLICIES: tuple[str, ...] = tuple(TablePolicies.model_fields)


class PoliciesInForce(TablePolicies):
    """Effective policies of a table, and the jobs that the catalog's server runs on it."""

    done_by_server: dict[JobName, str] = {}
    """The server's jobs, and the setting that enables each job."""
    default_timeout: timedelta | None = None
    """Time limit of runs without another: the runner's."""
    parallel_tables: int = 1
    """Number of tables that the runner works on at the same time."""

    def timeout(self, job: JobName) -> timedelta | None:
        """Return the time limit of a job's runs, by a policy or else by the runner."""
        return super().timeout(job) or self.default_timeout


def to_property_name(policy: str) -> str:
    """Return the table property of this policy, such as `lakewright.policy.orphan-files`."""
    return PREFIX + policy.replace("_", "-")


_LEVEL = re.compile(r"`[^`]+`|[^.`]+")


def _levels(text: str) -> list[str]:
    return [part.strip("`") for part in _LEVEL.findall(text)]


def _match(value: str) -> str:
    if len(_levels(value)) < 3 or _LEVEL.sub("", value).strip("."):
        raise ValueError("expected WAREHOUSE.NAMESPACE.TABLE, where the namespace may have several levels")
    if ".." in value or value.startswith(".") or value.endswith("."):
        raise ValueError("expected text between the dots; `*` stands for any")
    return value


class PolicyPattern(TablePolicies):
    """Policies of the tables that match a pattern."""

    match: Annotated[str, AfterValidator(_match)]
    """WAREHOUSE.NAMESPACE.TABLE; `*` stands for any text within a level; backquotes around a part with a dot in it."""

    def matches(self, warehouse: str, namespace: tuple[str, ...], table: str) -> bool:
        """Return whether the pattern matches a table. Case is ignored, as in Lakekeeper."""
        pattern_levels, levels = _levels(self.match), (warehouse, *namespace, table)
        return len(pattern_levels) == len(levels) and all(
            _like(pattern, text) for pattern, text in zip(pattern_levels, levels, strict=True)
        )


def _like(pattern: str, text: str) -> bool:
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), text, re.IGNORECASE | re.DOTALL) is not None
