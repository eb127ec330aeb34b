"""Whatever happened to a table: no job deletes a file that a snapshot, branch or tag still refers to, or a row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lakewright_spark.catalog_policies import JOBS

from .conftest import DAY, Maintained

pytestmark = pytest.mark.spark

EXAMPLES = 40 if os.environ.get("LAKEWRIGHT_FULL") else 1
_STEPS = ("append", "overwrite", "delete", "branch", "tag", "write branch", "fail")
_names = count()


@pytest.mark.timeout(60 * EXAMPLES + 240)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    steps=st.lists(st.sampled_from(_STEPS), min_size=5, max_size=10).map(lambda found: ["append", *found, "fail"]),
    jobs=st.permutations([job for job in JOBS if job not in {"retention", "statistics"}]),
)
def test_what_is_referred_to_stays_byte_by_byte(
    made: Callable[..., Maintained], steps: list[str], jobs: list[str]
) -> None:
    table = made(f"random_{next(_names)}", "(n int) USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    table.allow(history={"versions": 2}, orphan_files={"older_than_days": 1}, compaction={"min_input_files": 2})
    for number, step in enumerate(steps):
        _take(table, step, number)
    refs = table.column("SELECT name FROM THIS.refs")
    rows = {ref: _rows(table, ref) for ref in refs}
    before = table.objects()
    for job in [*jobs, *jobs]:
        table.job(job)
        _all_there(table, before)
        table.now += 4 * DAY
    assert table.column("SELECT name FROM THIS.refs") == refs
    assert {ref: _rows(table, ref) for ref in refs} == rows
    lost = [path for path in table.objects() if "/data/lost-" in path]
    assert lost == [], "and what nothing refers to is gone in the end"


def _take(table: Maintained, step: str, number: int) -> None:
    if step == "append":
        table.do(f"INSERT INTO THIS VALUES ({number}), ({number + 100})")
    elif step == "overwrite":
        table.do(f"INSERT OVERWRITE THIS VALUES ({number})")
    elif step == "delete":
        table.do(f"DELETE FROM THIS WHERE n >= 100 AND n < {100 + number}")
    elif step in {"branch", "tag"}:
        table.do(f"ALTER TABLE THIS CREATE {step} {step}_{number}")
    elif step == "fail":
        table.lose(f"lost-{number}.parquet")
    else:
        branches = sorted(table.column("SELECT name FROM THIS.refs WHERE type = 'BRANCH' AND name <> 'main'"))
        if branches:
            table.do(f"INSERT INTO THIS.branch_{branches[-1]} VALUES ({1000 + number})")


def _rows(table: Maintained, ref: str) -> list[int]:
    return sorted(table.column(f"SELECT n FROM THIS VERSION AS OF '{ref}'"))


def _referred(table: Maintained) -> Iterator[str]:
    for query in (
        "SELECT file_path FROM THIS.all_data_files",
        "SELECT file_path FROM THIS.all_delete_files",
        "SELECT path FROM THIS.all_manifests",
        "SELECT manifest_list FROM THIS.snapshots",
        "SELECT file FROM THIS.metadata_log_entries",
    ):
        yield from table.column(query)


def _all_there(table: Maintained, before: dict[str, str]) -> None:
    table.spark.catalog.refreshTable(table.sql)
    now, referred = table.objects(), set(_referred(table))
    assert referred <= now.keys()
    assert {path: before[path] for path in referred if path in before} == {
        path: now[path] for path in referred if path in before
    }
