"""Checks of a tenant's data: what one tenant meets hides no other's results."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import fastavro
import pytest
from lakewright.client_access.role_documents import AwsSettings
from lakewright.credentials import references
from lakewright.data_checks import table_kind
from lakewright.data_checks.newest_rows import find_newest_rows
from lakewright.data_checks.result import NotEvaluatedError, Verdict
from lakewright.data_checks.run import run_checks
from lakewright.data_checks.session import CheckTarget
from lakewright.data_checks.time_bounds import TimeColumn
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.spec import parse_spec
from lakewright.spec.data_check import TableCheck

SPEC = {
    "version": 1,
    "environment": "sandbox",
    "name": "acme",
    "owner": "data@acme.example",
    "storage": {"main": {"backend": "aws", "bucket": "acme-lake", "region": "us-west-2"}},
    "warehouses": [{"name": "main", "namespaces": ["results"]}],
    "checks": [{"table": "main.results.runs"}],
}


def target(stack: str, **server: Any) -> CheckTarget:
    reference = ServerRef(endpoint="http://127.0.0.1:9", **server)
    return CheckTarget(stack, parse_spec(SPEC, stack), reference, AwsSettings(), references.resolve)


def manifest_list() -> bytes:
    fields = [{"name": "manifest_path", "type": "string"}, {"name": "content", "type": "int"}]
    written = io.BytesIO()
    entries = [{"manifest_path": "s3://lake/m.avro", "content": 0}] * 50
    fastavro.writer(written, {"type": "record", "name": "manifest_file", "fields": fields}, entries)
    return written.getvalue()


def test_a_tenant_without_usable_server_hides_no_other() -> None:
    unreachable, unusable = run_checks([target("acme"), target("umbrella", ca_bundle="/absent.pem")])

    assert [check.outcome for check in unreachable.checks] == ["not evaluated"]
    assert unusable.checks == []
    assert unusable.problems[0].startswith("`ca_bundle` /absent.pem cannot be used")


def test_an_unexpected_error_is_a_problem_of_its_tenant() -> None:
    def fail(_reference: str) -> str:
        raise RuntimeError("a defect")

    broken = replace(target("broken", auth={"kind": "token", "token": "env:TOKEN"}), resolve=fail)

    first, second = run_checks([broken, target("acme")])

    assert first.problems == ["unexpected error: RuntimeError: a defect"]
    assert [check.outcome for check in second.checks] == ["not evaluated"]


@pytest.mark.parametrize(
    ("content", "manifest"),
    [(b"", b""), (b"<html>", b""), (manifest_list()[:-30], b""), (manifest_list(), b"Obj\x01")],
    ids=["empty", "not Avro", "cut list", "cut manifest"],
)
def test_damaged_manifests_prove_nothing(content: bytes, manifest: bytes) -> None:
    with pytest.raises(NotEvaluatedError, match="manifest of the table is damaged"):
        find_newest_rows(content, TimeColumn(1, "date"), {}, enough=datetime.now(UTC), read=lambda _: manifest)


NOW = datetime(2027, 1, 31, 12, tzinfo=UTC)
EARLIER = {"operation": "append", "added-records": "100", "total-records": "100"}


def check_table(*summaries: dict[str, str], **assertion: Any) -> Verdict:
    """Return the verdict about a table with a snapshot a day, the newest an hour old."""
    snapshots = [
        {
            "snapshot-id": number,
            "parent-snapshot-id": number - 1,
            "timestamp-ms": int((NOW - timedelta(hours=1, days=len(summaries) - number)).timestamp() * 1000),
            "summary": summary,
        }
        for number, summary in enumerate(summaries, 1)
    ]
    metadata = {"current-snapshot-id": len(summaries), "snapshots": snapshots}
    session = SimpleNamespace(
        now=NOW, load_metadata=lambda _table: metadata, load_all_snapshots=lambda _table: snapshots
    )
    check = TableCheck.model_validate({"table": "main.results.runs", **assertion})
    _, verdict = table_kind.evaluate(check, cast(Any, session))
    return verdict


@pytest.mark.parametrize(
    ("added", "outcome"),
    [
        ({"added-records": "50", "deleted-records": "40"}, "passed"),
        ({"added-records": "90", "deleted-records": "100"}, "not evaluated"),
        ({"added-records": "100", "deleted-records": "100"}, "not evaluated"),
        ({"added-records": "10", "added-position-deletes": "10"}, "not evaluated"),
        ({"added-records": "10", "added-equality-deletes": "10"}, "passed"),
        ({"deleted-records": "100", "total-records": "0"}, "failed"),
        ({"operation": "append", "added-records": "1"}, "passed"),
        ({"operation": "append", "total-records": "100"}, "failed"),
        ({"operation": "append"}, "passed"),
        ({"operation": "replace", "added-records": "100", "deleted-records": "100"}, "failed"),
    ],
)
def test_snapshots_that_add_rows(added: dict[str, str], outcome: str) -> None:
    verdict = check_table(EARLIER, {"operation": "overwrite", **added}, newer_than="2h")

    assert verdict.outcome == outcome
    assert ("check a `column`" in verdict.finding) is (outcome == "not evaluated")


def test_update_after_a_recent_append_hides_no_rows() -> None:
    update = {"operation": "overwrite", "added-records": "100", "deleted-records": "100"}

    assert check_table(EARLIER, update, newer_than="2d").outcome == "passed"
    assert check_table(EARLIER, update, EARLIER, newer_than="2h").outcome == "passed"


@pytest.mark.parametrize(
    ("deletes", "min_rows", "outcome", "finding"),
    [
        ({}, 100, "passed", "100 rows"),
        ({}, 101, "failed", "100 rows"),
        ({"total-position-deletes": "30"}, 70, "passed", "70 to 100 rows"),
        ({"total-position-deletes": "30"}, 71, "not evaluated", "70 to 100 rows, depending on"),
        ({"total-position-deletes": "30"}, 101, "failed", "70 to 100 rows"),
        ({"total-position-deletes": "150"}, 1, "not evaluated", "0 to 100 rows, depending on"),
        ({"total-equality-deletes": "1"}, 1, "not evaluated", "0 to 100 rows, depending on"),
        ({"total-position-deletes": "30", "total-equality-deletes": "1"}, 80, "not evaluated", "0 to 100 rows"),
        ({"total-equality-deletes": "1"}, 101, "failed", "0 to 100 rows"),
    ],
)
def test_rows_with_delete_files(deletes: dict[str, str], min_rows: int, outcome: str, finding: str) -> None:
    verdict = check_table({**EARLIER, **deletes}, min_rows=min_rows)

    assert verdict.outcome == outcome
    assert verdict.finding.startswith(finding)
