"""No job changes a row or deletes a referenced file of a table with delete files, branches and types of format 3."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from lakewright_spark.policies.model import JOBS, JobName

from tests.spark.maintenance.conftest import DAY, Maintained
from tests.spark.maintenance.delete_files import delete_by_equality

pytestmark = [pytest.mark.long, pytest.mark.spark]

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
EXAMPLES = 12 if FULL else 2
"""Hypothesis draws examples in the full form only, beside the two explicit examples."""
STEPS = ("append", "delete", "delete by equality", "update", "branch", "tag", "write branch", "upgrade")
IN_TURN = [job for job in JOBS if job not in {"retention", "statistics"}]
TYPES = {
    "v": ("variant", """parse_json('{"a": [1]}')"""),
    "s": ("struct<v: variant>", "named_struct('v', parse_json('2'))"),
    "u": ("void", "NULL"),
    "t": ("timestamp_ntz", "timestamp_ntz'2026-01-01 00:00:00.000001'"),
    "b": ("binary", "X'00ff'"),
}
"""Columns of every type that Spark writes with Iceberg 1.12, beside numbers. `test_other_types` has more types: Spark
refuses times in nanoseconds, and its switch for geometry and geography is off."""
_names = count()


def take(table: Maintained, step: str, number: int) -> None:
    """Apply one step; a step whose target does not exist does nothing."""
    values = ", ".join(value for _, value in TYPES.values()) if has_types(table) else ""
    row = f"({100 + number}, {number % 2}{', ' + values if values else ''})"
    if step == "append":
        table.do(f"INSERT INTO THIS VALUES {row}")
    elif step == "delete":
        table.do(f"DELETE FROM THIS WHERE n = {number}")
    elif step == "delete by equality":
        delete_by_equality(table, 10 + number, number % 2)
    elif step == "update":
        table.do(f"UPDATE THIS SET n = n + 1000 WHERE n = {20 + number}")
    elif step == "upgrade":
        table.do("ALTER TABLE THIS SET TBLPROPERTIES ('format-version' = '3')")
    elif step == "write branch":
        if branches := table.column("SELECT name FROM THIS.refs WHERE type = 'BRANCH' AND name <> 'main'"):
            table.do(f"INSERT INTO THIS.branch_{min(branches)} VALUES {row}")
    else:
        table.do(f"ALTER TABLE THIS CREATE {step} {step}_{number}")


def has_types(table: Maintained) -> bool:
    return "v" in table.spark.table(table.sql).columns


def read_rows(table: Maintained) -> dict[str, list[str]]:
    """Return the rows of each branch and tag as text."""
    columns = "n, k, to_json(v), to_json(s.v), u, t, hex(b)" if has_types(table) else "n, k"
    names = table.column("SELECT name FROM THIS.refs")
    return {
        name: sorted(
            str(tuple(row)) for row in table.do(f"SELECT {columns} FROM THIS VERSION AS OF '{name}'").collect()
        )
        for name in names
    }


def list_referenced_files(table: Maintained) -> set[str]:
    """Return the data and delete files, manifests and manifest lists that a snapshot refers to."""
    queries = ("file_path FROM THIS.all_files", "path FROM THIS.all_manifests", "manifest_list FROM THIS.snapshots")
    return {path for query in queries for path in table.column(f"SELECT {query}")}


@pytest.mark.usefixtures("variant_columns")
@pytest.mark.timeout(120 * EXAMPLES + 240)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, *([Phase.generate] if FULL else [])],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    version=st.sampled_from((2, 3)),
    steps=st.lists(st.sampled_from(STEPS), min_size=4, max_size=8),
    jobs=st.permutations(IN_TURN),
)
@example(
    version=3,
    steps=["delete", "branch", "delete by equality", "update", "write branch", "tag", "append"],
    jobs=["orphan-files", "compaction", "snapshot-expiration", "rewrite-manifests", "staged-files"],
)
@example(
    version=2,
    steps=["append", "delete", "branch", "delete by equality", "upgrade", "update", "write branch", "append"],
    jobs=["snapshot-expiration", "compaction", "orphan-files", "rewrite-manifests", "staged-files"],
)
def test_rows_and_files_of_every_format_survive_jobs(
    create_table: Callable[..., Maintained], version: int, steps: list[str], jobs: list[JobName]
) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items()) if version == 3 else ""
    values = ", ".join(value for _, value in TYPES.values()) if version == 3 else ""
    modes = ", ".join(f"'write.{change}.mode' = 'merge-on-read'" for change in ("delete", "update"))
    table = create_table(
        f"formats_{next(_names)}",
        f"(n int, k int{', ' + columns if columns else ''}) USING iceberg PARTITIONED BY (k) "
        f"TBLPROPERTIES ('format-version' = '{version}', {modes})",
    )
    table.do(f"INSERT INTO THIS SELECT int(id), int(id % 2){', ' + values if values else ''} FROM range(40)")
    for number, step in enumerate(steps):
        take(table, step, number)
    table.set_policies(
        history={"versions": 2},
        orphan_files={"older_than_days": 1},
        staged_files={"older_than_days": 1},
        compaction={"min_input_files": 2, "delete_file_threshold": 1},
    )
    rows = read_rows(table)
    # The second turn deletes what the first turn found; a long run repeats all jobs.
    for turn in (jobs, jobs if FULL else ["staged-files"]):
        for job in turn:
            assert table.job(job).failure is None, job
        assert list_referenced_files(table) <= table.objects().keys()
        table.now += 4 * DAY
    assert read_rows(table) == rows
