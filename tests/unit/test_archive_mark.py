"""The mark of an archived warehouse, and the times of its purge."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lakewright.ownership.archive_mark import ArchiveMark, compute_purge_time, parse_archive_mark
from lakewright.ownership.mark import UnreadableMarkError
from lakewright.ownership.record_role import find_archived_warehouse, format_announcement, format_archive_record

ARCHIVED_AT = datetime(2030, 1, 1, tzinfo=UTC)
MARK = ArchiveMark(
    "lakewright/acme", "1f", "main", "acme-lake", "acme/main", 90, ("lakewright.acme.main",), backend="b1"
)
WAREHOUSE_ID = "01a21a9b-3155-7c94-beaa-eba459069fd1"


def test_mark_is_read_as_written() -> None:
    assert parse_archive_mark(MARK.to_description()) == MARK


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"stack": ""},
        {"key_prefix": ""},
        {"purge_after_days": 0},
        {"purge_after_days": True},
        {"purge_after_days": "90"},
        {"roles": "a"},
        {"also": 1},
        {"backend": 1},
    ],
)
def test_other_mark_is_refused(changes: dict[str, Any]) -> None:
    text = json.dumps(json.loads(MARK.to_description()) | changes)

    with pytest.raises(UnreadableMarkError):
        parse_archive_mark(text)


@pytest.mark.parametrize("text", [None, "", "[]", "text", '{"version": 1}'])
def test_text_without_a_mark_is_refused(text: str | None) -> None:
    with pytest.raises(UnreadableMarkError):
        parse_archive_mark(text)


def test_purge_is_announced_for_seven_days() -> None:
    due = MARK.compute_due_time(ARCHIVED_AT)

    assert due == datetime(2030, 4, 1, tzinfo=UTC)
    assert compute_purge_time(due, due - timedelta(days=7)) == due
    assert compute_purge_time(due, due + timedelta(days=1)) == due + timedelta(days=8)


def test_role_names_the_archived_warehouse() -> None:
    assert find_archived_warehouse(format_archive_record(WAREHOUSE_ID).upper()) == WAREHOUSE_ID
    assert find_archived_warehouse(format_announcement(WAREHOUSE_ID)) is None
    assert find_archived_warehouse("lakewright-archive-analysts") is None
