"""Sentences about archived warehouses, and the lines of `lakewright fleet status`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lakewright.restrictions.model import ArchivedWarehouse, StackRestrictions, list_lines

NOW = datetime(2026, 11, 27, tzinfo=UTC)
ARCHIVED_AT, DUE_AT, ANNOUNCED_AT = NOW - timedelta(days=87), NOW + timedelta(days=3), NOW - timedelta(days=4)
TITLE = "warehouse `raw` is archived since 2026-09-01T00:00:00Z"
DELETED = "its data is deleted from 2026-11-30T00:00:00Z on (announced)"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, f"; {DELETED}. To keep it, declare the warehouse with `adopt: true`"),
        ({"is_reactivated": True}, f"; {DELETED} unless `up` runs before, which reactivates it"),
        ({"is_reactivated": True, "due_at": None}, "; the next `up` reactivates it"),
        ({"due_at": None}, " and is never purged"),
        ({"problem": "role `x` was changed"}, " and is not purged: role `x` was changed"),
        ({"is_reactivated": True, "has_begun": True}, "; the deletion of its data has begun"),
    ],
)
def test_sentence_says_when_data_is_deleted(changes: dict[str, Any], text: str) -> None:
    times: dict[str, Any] = {"archived_at": ARCHIVED_AT, "due_at": DUE_AT, "announced_at": ANNOUNCED_AT}
    archive = ArchivedWarehouse("raw", "id", **{**times, **changes})

    assert archive.describe(NOW) == TITLE + text


def test_lines_claim_nothing_about_stacks_that_were_not_read() -> None:
    read, unread = StackRestrictions("acme"), StackRestrictions("beta", problems=["timeout"])

    assert list_lines([unread], NOW) == []
    assert list_lines([read], NOW) == ["No warehouse is archived, and no limit is enforced."]
    assert list_lines([read, unread], NOW) == [
        "No warehouse is archived, and no limit is enforced in the 1 stack that could be read."
    ]
