"""Job `compaction`: rewrite small files, and files with many deleted rows, into large files. Rows do not change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.jobs.job import (
    DueDecision,
    Effect,
    History,
    JobMetrics,
    MaintenanceJob,
    due_after_change,
)
from lakewright_spark.maintenance.table.compaction_reasons import (
    WITH_DELETION_VECTORS,
    CompactionBasis,
    converts_deletes,
    find_change,
    find_delete_reason,
)
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.file_groups import CORE_PROPERTIES, FileGroups, choose_groups, count_cores
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line, iterate, sql_map
from lakewright_spark.maintenance.table.rewrite_estimate import (
    LARGEST,
    TableTotals,
    estimate_rewrite,
    read_number,
    rewrites_whole_table,
)
from lakewright_spark.policies.model import CompactionPolicy, PoliciesInForce, TablePolicies
from lakewright_spark.policies.sort_columns import parse_sort_column
from lakewright_spark.table_identifier import literal

_POSITION_DELETES = 1
"""Content of a delete file: Iceberg's value for position deletes."""
_TOTALS = ("total-equality-deletes", "total-delete-files", "total-files-size")
"""Totals in the summary of a snapshot, on which the rewritten files and their groups depend."""
_FEW_MANIFESTS = 20
"""Most manifests of a table that is checked for a single group."""
TIMEOUT = timedelta(minutes=15)
"""Time limit of a run without another: OpenHouse's value."""


@dataclass(frozen=True, kw_only=True)
class CompactionMetrics(JobMetrics):
    """Data files and delete files before and after, and bytes of data files rewritten."""

    rewritten: int = 0
    added: int = 0
    bytes: int = 0
    removed_delete_files: int = 0
    """Delete files that no data file needs any longer."""
    rewritten_delete_files: int = 0
    """Files of position deletes that were merged, or converted to deletion vectors."""
    added_delete_files: int = 0
    failed: int = 0
    """Files whose group could not be written or committed. All other groups were committed."""

    @property
    def failure(self) -> str | None:
        """Return how many files could not be rewritten."""
        return f"{self.failed} files could not be rewritten; all other files were" if self.failed else None


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> CompactionMetrics:
    """Rewrite data files of the wrong size or with many deletes, and then delete files.

    Raises:
        PolicyRefusedError: A column or the condition of the policy does not suit the table, or the table has no sort
            order to use.
    """
    del now  # only sizes and deletes matter
    compaction = policy.compaction or CompactionPolicy()
    order, condition = _order(opened, compaction), _parse_condition(opened, compaction)
    options = _build_options(opened, compaction, _choose_groups(opened, policy))
    if dry_run:
        files, size = _plan(opened, options, condition)
        metrics = CompactionMetrics(rewritten=files, bytes=size, dry_run=True)
    elif opened.java.currentSnapshot() is not None:
        # The procedure plans itself, and returns at once if there is nothing to rewrite.
        metrics = _rewrite_data_files(opened, compaction, options, order)
    else:
        metrics = CompactionMetrics()
    if _may_have_deletes(opened):
        metrics = _rewrite_delete_files(opened, compaction, metrics)
    return metrics


def is_due(facts: TableFacts, policies: TablePolicies, history: History, now: datetime) -> DueDecision:
    """Return whether rows, the policy or the format changed since the last run, and there may be files to rewrite.

    The mean size of the files proves nothing: half of them may be tiny. The job's planner reads the size of each.
    """
    del now
    if facts.snapshot is None:
        return DueDecision(is_due=False, reason="no rows")
    policy = policies.compaction or CompactionPolicy()
    last = history.bases.get("compaction")
    last_basis = CompactionBasis.from_json(last) if last else None
    target, files, size = int(policy.target_file_size), facts.data_files, facts.data_bytes
    is_small = files is not None and size is not None and files < policy.min_input_files and size <= LARGEST * target
    has_reason = (
        policy.replaces_old_partitions
        or find_delete_reason(facts, policy) is not None
        or converts_deletes(facts, last_basis)
    )
    if is_small and not has_reason:
        reason = f"{files} data files with few deletes; at least {policy.min_input_files} are compacted"
        return DueDecision(is_due=False, reason=reason)
    decision = due_after_change("compaction", facts, history)
    change = find_change(facts, policy, CompactionBasis.from_table(facts, policy), last_basis)
    return DueDecision(is_due=True, reason=change) if change and not decision.is_due else decision


def describe_basis(facts: TableFacts, policies: TablePolicies) -> dict[str, Any]:
    """Return what the run depends on beside the rows, for the rule of the next run."""
    return CompactionBasis.from_table(facts, policies.compaction or CompactionPolicy()).to_json()


def keeps_steps(policies: TablePolicies) -> bool:
    """Return whether groups are committed by themselves, so that a cancelled run keeps its completed groups."""
    return (policies.compaction or CompactionPolicy()).partial_progress_commits > 0


def predict(facts: TableFacts, policies: TablePolicies, history: History) -> Effect:
    """Return how many files fewer the table has, and the files and bytes to rewrite."""
    size = TableTotals(
        facts.data_files or 0,
        facts.data_bytes or 0,
        facts.delete_files or 0,
        facts.equality_deletes or 0,
        facts.deleted_share,
        facts.partitions,
        facts.commits_since,
    )
    policy = policies.compaction or CompactionPolicy()
    rewrite = estimate_rewrite(size, facts.additions, policy, history.succeeded.get("compaction"))
    return Effect(rewrite.rewritten - rewrite.added, rewrite.bytes, rewrite.rewritten)


JOB = MaintenanceJob(
    name="compaction",
    run=run,
    is_due=is_due,
    predict=predict,
    primary_only=True,
    waits_for_executions=True,
    deletes_files=True,
    keeps_steps=keeps_steps,
    reads_columns=True,
    describe_basis=describe_basis,
)


def _order(opened: IcebergTable, compaction: CompactionPolicy) -> str:
    """Return the sort order as an argument of the procedure. Empty: none, or the table's own."""
    schema = opened.java.schema()
    if unknown := sorted(name for name in compaction.list_column_names() if schema.findField(name) is None):
        raise PolicyRefusedError(f"table {opened.table}: compaction: no column {', '.join(unknown)}")
    if compaction.strategy == "sort" and not compaction.columns and opened.java.sortOrder().isUnsorted():
        raise PolicyRefusedError(
            f"table {opened.table}: compaction: expected `columns`, since the table has no sort order"
        )
    terms = ", ".join(parse_sort_column(text).sql for text in compaction.columns)
    return f"zorder({terms})" if compaction.strategy == "z-order" else terms


def _parse_condition(opened: IcebergTable, compaction: CompactionPolicy) -> Any:
    """Return Iceberg's filter of the files to rewrite."""
    if compaction.where is None:
        return opened.find_class("org.apache.iceberg.expressions.Expressions").alwaysTrue()
    converter = opened.find_class("org.apache.spark.sql.execution.datasources.SparkExpressionConverter")
    session = cast(Any, opened.spark)._jsparkSession
    try:
        condition = converter.collectResolvedSparkExpression(session, opened.table.sql, compaction.where)
        return converter.convertToIcebergExpression(condition)
    except (Py4JJavaError, PySparkException) as error:
        raise PolicyRefusedError(
            f"table {opened.table}: compaction: expected a condition on the table's columns in `where`, found "
            f"{compaction.where!r}: {first_line(error)}"
        ) from None


def _choose_groups(opened: IcebergTable, policy: TablePolicies) -> FileGroups:
    """Return the groups for the cores of this session and the tables that its runner works on at the same time."""
    parallel_tables = policy.parallel_tables if isinstance(policy, PoliciesInForce) else 1
    # All properties of a session, or of a summary, take as long to read as a small table takes to load.
    session = {name: opened.spark.conf.get(name, None) for name in CORE_PROPERTIES}
    properties = {name: value for name, value in session.items() if value is not None}
    return choose_groups(
        policy.compaction or CompactionPolicy(),
        policy.timeout("compaction") or TIMEOUT,
        cores=count_cores(properties, opened.find_class("java.lang.Runtime").getRuntime().availableProcessors()),
        parallel_tables=parallel_tables,
        table_bytes=read_number(_read_totals(opened), "total-files-size"),
    )


def _build_options(opened: IcebergTable, compaction: CompactionPolicy, groups: FileGroups) -> dict[str, str]:
    """Return the options that select and group the files to rewrite."""
    every = _removes_equality_deletes(opened, compaction) or (
        compaction.replaces_old_partitions and _has_old_partitions(opened)
    )
    return {
        "target-file-size-bytes": str(int(compaction.target_file_size)),
        "min-input-files": str(compaction.min_input_files),
        "max-file-group-size-bytes": str(groups.size),
        "max-concurrent-file-group-rewrites": str(groups.at_once),
        "delete-file-threshold": str(compaction.delete_file_threshold),
        "delete-ratio-threshold": str(compaction.delete_ratio_threshold),
        **({"rewrite-all": "true"} if every else {}),
    }


def _read_totals(opened: IcebergTable) -> dict[str, str]:
    """Return the totals of the current snapshot by their names in its summary; empty without a snapshot."""
    current = opened.java.currentSnapshot()
    if current is None:
        return {}
    summary = current.summary()
    return {name: value for name in _TOTALS if (value := summary.get(name)) is not None}


def _removes_equality_deletes(opened: IcebergTable, compaction: CompactionPolicy) -> bool:
    """Return whether to rewrite all files of a small table, by the summary of its current snapshot."""
    totals = _read_totals(opened)
    equality_deletes, delete_files, size = (read_number(totals, name) or 0 for name in _TOTALS)
    return rewrites_whole_table(equality_deletes, delete_files, size, compaction)


def _has_old_partitions(opened: IcebergTable) -> bool:
    """Return whether the current snapshot has files of earlier partition specs, by its manifests."""
    current, spec = opened.java.currentSnapshot(), opened.java.spec().specId()
    return current is not None and any(
        manifest.partitionSpecId() != spec and _has_files(manifest)
        for manifest in iterate(current.dataManifests(opened.java.io()))
    )


def _has_files(manifest: Any) -> bool:
    """Return whether a manifest has files of its snapshot, and not only the files that the snapshot deleted."""
    return manifest.hasAddedFiles() or manifest.hasExistingFiles()


def _plan(opened: IcebergTable, options: Mapping[str, str], condition: Any) -> tuple[int, int]:
    """Return number and bytes of the files that Iceberg's planner would rewrite."""
    planner = opened.find_class("org.apache.iceberg.actions.BinPackRewriteFilePlanner")(opened.java, condition)
    planner.init(options)
    groups = planner.plan().groups()
    try:
        sizes = [(group.inputFileNum(), group.inputFilesSizeInBytes()) for group in iterate(groups)]
    finally:
        groups.close()
    return sum(files for files, _ in sizes), sum(size for _, size in sizes)


def _has_one_group(opened: IcebergTable, options: Mapping[str, str]) -> bool:
    """Return whether all files of a small table are in one partition of the current spec, by the manifests.

    The planner makes one group of them at most.
    """
    size, current = read_number(_read_totals(opened), "total-files-size"), opened.java.currentSnapshot()
    if size is None or size > int(options["max-file-group-size-bytes"]):
        return False
    spec, manifests = opened.java.spec(), current.dataManifests(opened.java.io())
    if manifests.size() > _FEW_MANIFESTS:
        return False
    values: set[tuple[int, Any]] = set()
    """Position and value of each partition field."""
    for manifest in iterate(manifests):
        if not _has_files(manifest):
            continue
        fields = manifest.partitions()  # None if the writer left them out
        if manifest.partitionSpecId() != spec.specId() or fields is None:
            return False
        for position, field in enumerate(iterate(fields)):
            bounds = field.lowerBound(), field.upperBound()
            if field.containsNull() or field.containsNaN() is not False or None in bounds:
                return False
            values |= {(position, bound) for bound in bounds}
    return len(values) == spec.fields().size()


def _rewrite_data_files(
    opened: IcebergTable, compaction: CompactionPolicy, options: Mapping[str, str], order: str
) -> CompactionMetrics:
    commits = compaction.partial_progress_commits
    if commits and _has_one_group(opened, options):
        # While a group is committed, or waits for its commit, Iceberg's thread for commits in parts uses a core.
        commits = 0
    values = {
        **options,
        "partial-progress.enabled": str(commits > 0).lower(),
        **({"partial-progress.max-commits": commits} if commits else {}),
        # Equality deletes remain otherwise, even if no data file is left that they apply to.
        **({"remove-dangling-deletes": "true"} if _may_have_deletes(opened) else {}),
    }
    strategy = "binpack" if compaction.strategy == "bin-pack" else "sort"
    arguments = {"strategy": literal(strategy), "options": sql_map(values)}
    arguments |= {"sort_order": literal(order)} if order else {}
    arguments |= {"where": literal(compaction.where)} if compaction.where is not None else {}
    row = opened.call("rewrite_data_files", **arguments).collect()[0]
    return CompactionMetrics(
        rewritten=row.rewritten_data_files_count,
        added=row.added_data_files_count,
        bytes=row.rewritten_bytes_count,
        removed_delete_files=row.removed_delete_files_count,
        failed=row.failed_data_files_count,
    )


def _rewrite_delete_files(
    opened: IcebergTable, compaction: CompactionPolicy, metrics: CompactionMetrics
) -> CompactionMetrics:
    """Merge files of position deletes. In format version 3, convert them to deletion vectors."""
    files = opened.read_metadata("delete_files").where(f"content = {_POSITION_DELETES} AND file_format <> 'PUFFIN'")
    options = {"min-input-files": str(compaction.min_input_files)}
    if opened.format_version >= WITH_DELETION_VECTORS:
        options = {"rewrite-all": "true"}
    number = files.count()
    if number == 0 or (number < compaction.min_input_files and "rewrite-all" not in options):
        return metrics
    if metrics.dry_run:
        return replace(metrics, rewritten_delete_files=number)
    row = opened.call("rewrite_position_delete_files", options=sql_map(options)).collect()[0]
    return replace(
        metrics,
        rewritten_delete_files=row.rewritten_delete_files_count,
        added_delete_files=row.added_delete_files_count,
    )


def _may_have_deletes(opened: IcebergTable) -> bool:
    """Return whether the current snapshot may have delete files."""
    current = opened.java.currentSnapshot()
    return current is not None and current.summary().get("total-delete-files") != "0"
