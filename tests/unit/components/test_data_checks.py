"""Checks of a tenant's data: what one tenant meets hides no other's results."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest
from lakewright.client_access.role_documents import AwsSettings
from lakewright.credentials import references
from lakewright.data_checks.newest_rows import find_newest_rows
from lakewright.data_checks.result import NotEvaluatedError
from lakewright.data_checks.run import run_checks
from lakewright.data_checks.session import CheckTarget
from lakewright.data_checks.time_bounds import TimeColumn
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.spec import parse_spec

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
