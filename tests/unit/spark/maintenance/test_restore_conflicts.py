"""A restore's commit is repeated after a conflict that the server reports as an invalid request."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from lakewright_spark.maintenance import restore
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from py4j.protocol import Py4JJavaError

OUTDATED = "Cannot add snapshot with sequence number 3 older than last sequence number 3"


def build_error(message: str) -> Py4JJavaError:
    """Return the error of Iceberg's client for a response with status 400."""
    java = MagicMock(_target_id="o1")
    java.getClass().getName.return_value = "org.apache.iceberg.exceptions.BadRequestException"
    java.toString.return_value = f"org.apache.iceberg.exceptions.BadRequestException: Malformed request: {message}"
    return Py4JJavaError("commit", java)


def commit(monkeypatch: pytest.MonkeyPatch, *results: Any) -> int:
    """Restore a backup whose commits have these results, and return the number of commits."""
    monkeypatch.setattr(restore, "_count_restored_rows", lambda *_: None)
    opened = MagicMock()
    change = opened.java.newOverwrite().conflictDetectionFilter().validateNoConflictingData().validateFromSnapshot()
    change.set().commit.side_effect = results
    restore._commit_once(cast(IcebergTable, opened), "backup", [])
    return change.set().commit.call_count


def test_commit_below_the_last_sequence_number_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert commit(monkeypatch, build_error(OUTDATED), None) == 2


def test_invalid_commit_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Py4JJavaError):
        commit(monkeypatch, build_error("Snapshot already exists for: '3'"), None)
