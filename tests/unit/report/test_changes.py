"""The documents of a preview's page: whole policies and manifests before and after, without secrets."""

from __future__ import annotations

import json
from typing import Any

from lakewright.report.changes import build_changes, compare_lines, list_documents
from lakewright_engine.display.report import OperationReport
from lakewright_engine.model.signatures import SECRET, SIGNATURE, UNKNOWN
from pulumi.automation.events import EngineEvent

from tests.fleet_documents import NOW

TOKEN = "s3cr3t-token"
HIDDEN = {SIGNATURE: SECRET, "plaintext": json.dumps(TOKEN)}
URN = "urn:pulumi:acme::lake::{type}::{name}"


def make_policy(*actions: str) -> str:
    statement = {"Effect": "Allow", "Action": [*actions], "Resource": "arn:aws:s3:::acme/*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def make_report(*steps: tuple[str, str, dict[str, Any] | None, dict[str, Any] | None]) -> OperationReport:
    """Return the report of steps: operation, type, inputs before and after."""
    report = OperationReport()
    for number, (op, type_, old, new) in enumerate(steps):
        urn = URN.format(type=type_, name=f"object-{number}")

        def make_state(inputs: dict[str, Any] | None, urn: str = urn, type_: str = type_) -> dict[str, Any] | None:
            state = {"urn": urn, "type": type_, "custom": True, "inputs": inputs, "outputs": {}}
            return None if inputs is None else state

        metadata = {"op": op, "urn": urn, "type": type_, "provider": "", "old": make_state(old), "new": make_state(new)}
        for kind in ("resourcePreEvent", "resOutputsEvent"):
            event: Any = {"sequence": 0, "timestamp": 0, kind: {"metadata": metadata}}
            report.take(EngineEvent.from_json(event))
    return report


def build(report: OperationReport) -> dict[str, Any]:
    return build_changes(report, stack="acme", verb="preview", now=NOW)


def test_policy_is_a_document_of_its_own() -> None:
    old, new = {"policy": make_policy("s3:GetObject"), "role": "r"}, {"policy": make_policy("s3:*"), "role": "r"}
    policy, properties = list_documents("aws:iam/rolePolicy:RolePolicy", old, new)
    lines = policy.to_json()["lines"]

    assert policy.title == "policy"
    assert [line for line in lines if line[0] != " "] == [
        ["-", '        "s3:GetObject"'],
        ["+", '        "s3:*"'],
    ]
    assert [" ", '  "Version": "2012-10-17",'] in lines
    assert properties.before == properties.after == "policy: (see the document)\nrole: r\n"
    assert not properties.to_json()["changed"]


def test_manifest_and_its_configuration_files() -> None:
    manifest = {"kind": "ConfigMap", "data": {"catalog.json": '{"version": 1}', "run.sh": "set -e\nexec spark\n"}}
    catalog, whole = list_documents("kubernetes:core/v1:ConfigMap", {}, manifest)

    assert (catalog.title, catalog.before, catalog.after) == ("data.catalog.json", "", '{\n  "version": 1\n}')
    assert whole.title == "manifest"
    assert "  run.sh: |\n    set -e\n    exec spark\n" in whole.after


def test_deleted_object_loses_every_line() -> None:
    (document,) = list_documents("lakekeeper:Warehouse", {"name": "curated", "tags": ["a"]}, {})

    assert {sign for sign, _ in document.to_json()["lines"]} == {"-"}


def test_order_of_properties_is_no_change() -> None:
    (document,) = list_documents("lakekeeper:Warehouse", {"a": 1, "b": 2}, {"b": 2, "a": 1})

    assert not document.to_json()["changed"]


def test_unknown_and_internal_values() -> None:
    (document,) = list_documents("lakekeeper:Warehouse", {}, {"id": UNKNOWN, "__provider": "gASV"})

    assert document.after == "id: '[unknown]'\n"


def test_page_has_changed_steps_in_order_without_secrets() -> None:
    report = make_report(
        ("same", "aws:s3/bucket:Bucket", {"bucket": "a"}, {"bucket": "a"}),
        ("create", "kubernetes:core/v1:Secret", None, {"stringData": {"token": HIDDEN}}),
        ("delete", "aws:s3/bucket:Bucket", {"bucket": "b"}, None),
        ("update", "pulumi-python:dynamic:Warehouse", {"name": "old"}, {"name": "new"}),
    )
    changes = build(report)

    assert [(step["op"], step["name"]) for step in changes["steps"]] == [
        ("delete", "object-2"),
        ("update", "object-3"),
        ("create", "object-1"),
    ]
    assert [step["dangerous"] for step in changes["steps"]] == [True, False, False]
    assert TOKEN not in json.dumps(changes)
    assert "[secret]" in json.dumps(changes)


def test_very_long_documents_are_replaced_whole() -> None:
    before, after = [f"line {number}" for number in range(15_000)], [f"row {number}" for number in range(15_000)]

    assert len(compare_lines(before, after)) == 30_000
