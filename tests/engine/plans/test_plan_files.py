"""Plan files: content hash, signature, versions of states, and the comparison of values."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.model.errors import PlanError
from lakewright_engine.model.resources import ResourceReference, SecretValue, Unknown
from lakewright_engine.model.signatures import SECRET, SIGNATURE
from lakewright_engine.plans.comparison import first_mismatch
from lakewright_engine.plans.plan_file import PlanDocument, read_plan, write_plan
from lakewright_engine.plans.state_version import state_version

KEY = b"k" * 32


@pytest.fixture
def document(tmp_path: Path) -> PlanDocument:
    """Return a written plan."""
    body = {
        "engine": {"name": "embedded", "version": "1"},
        "project": "conf",
        "stack": "dev",
        "created": "2026-11-22T10:00:00Z",
        "options": {"refresh": True, "targets": ["**::a"]},
        "state": {"hash": "h", "time": "t"},
        "inputs": {"Pulumi.yaml": "h"},
        "changes": {"create": 1},
        "steps": [],
    }
    return write_plan(tmp_path / "plan.json", body, KEY)


def test_plan_is_read_as_it_was_written(document: PlanDocument) -> None:
    plan = read_plan(document.file)
    plan.verify(KEY)
    assert plan.body == document.body
    assert plan.options.targets == ("**::a",)
    assert stat.S_IMODE(plan.file.stat().st_mode) == 0o600


def test_truncated_plan_is_refused(document: PlanDocument) -> None:
    text = document.file.read_text()
    document.file.write_text(text[: len(text) // 2])
    with pytest.raises(PlanError, match="damaged or truncated"):
        read_plan(document.file)


def test_edited_plan_is_refused(document: PlanDocument) -> None:
    document.file.write_text(document.file.read_text().replace('"dev"', '"prod"'))
    with pytest.raises(PlanError, match="does not match its hash"):
        read_plan(document.file)


def test_resealed_plan_has_a_wrong_signature(document: PlanDocument) -> None:
    """A forger can compute the hash, and cannot compute the signature."""
    forged = write_plan(document.file, {**document.body, "stack": "prod"}, b"another key")
    with pytest.raises(PlanError, match="the signature is wrong"):
        read_plan(forged.file).verify(KEY)
    unsigned = write_plan(document.file, {**document.body, "signature": ""}, None)
    with pytest.raises(PlanError, match="the signature is wrong"):
        read_plan(unsigned.file).verify(KEY)


def test_newer_format_is_refused_by_number(document: PlanDocument) -> None:
    document.file.write_text(json.dumps({**document.body, "lakewright_plan": 2}))
    with pytest.raises(PlanError, match="has format 2; this version of lakewright reads format 1"):
        read_plan(document.file)


@pytest.mark.parametrize("content", ["name: conf\n", '{"version": 3}', "[1]"])
def test_other_file_is_neither_read_nor_overwritten(tmp_path: Path, content: str) -> None:
    file = tmp_path / "Pulumi.yaml"
    file.write_text(content)
    with pytest.raises(PlanError, match="is not a plan"):
        read_plan(file)
    with pytest.raises(PlanError, match="exists and is not a plan"):
        write_plan(file, {}, KEY)
    assert file.read_text() == content


def test_missing_plan_and_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="No such file"):
        read_plan(tmp_path / "plan.json")
    with pytest.raises(PlanError, match="is a folder"):
        write_plan(tmp_path, {}, KEY)


def _deployment(**changes: Any) -> dict[str, Any]:
    secret = {SIGNATURE: SECRET, "ciphertext": changes.pop("ciphertext", "v1:a:b")}
    resource = {"urn": "u", "inputs": {"n": 1, "token": secret}, "modified": "2026", **changes}
    return {"manifest": {"time": "t"}, "resources": [resource]}


def test_state_version_ignores_times_and_ciphertexts() -> None:
    version = state_version(_deployment())
    assert state_version(_deployment(modified="2027", ciphertext="v1:c:d")) == version
    assert state_version(_deployment(inputs={"n": 2})) != version
    assert state_version({**_deployment(), "manifest": {"time": "later"}}) != version
    assert state_version({**_deployment(), "pending_operations": [{"resource": {}, "type": "creating"}]}) != version


@pytest.mark.parametrize(
    ("planned", "actual", "mismatch"),
    [
        ({"a": Unknown()}, {"a": 1}, None),
        ({"a": Unknown()}, {}, None),
        ({"a": [1, Unknown()]}, {"a": [1, 2]}, None),
        ({"a": SecretValue(Unknown())}, {"a": SecretValue("x")}, None),
        ({"a": SecretValue({"b": Unknown(), "c": 1})}, {"a": SecretValue({"b": 2, "c": 1})}, None),
        ({"a": ResourceReference("u", Unknown())}, {"a": ResourceReference("u", "id")}, None),
        ({"a": 1}, {"a": 1.0}, None),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b: planned 1, now 2"),
        ({"a": {"b": 1}}, {"a": {}}, "a.b: planned 1, now nothing"),
        ({}, {"a": 1}, "a: planned nothing, now 1"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1]: planned 2, now 3"),
        ({"a": [1]}, {"a": [1, 2]}, "a: planned [1], now [1, 2]"),
        ({"a": 1}, {"a": True}, "a: planned 1, now true"),
        ({"a": SecretValue("x")}, {"a": SecretValue("y")}, "a: planned a secret, now another secret"),
        ({"a": SecretValue("x")}, {"a": "x"}, "a: planned a secret, now no secret"),
        ({"a": "x"}, {"a": SecretValue("x")}, "a: planned no secret, now a secret"),
        ({"a": SecretValue("x")}, {}, "a: planned a secret, now nothing"),
        ({"a": ResourceReference("u", "i")}, {"a": ResourceReference("v", "i")}, "a: planned u, now v"),
    ],
)
def test_first_mismatch_names_property_and_values(
    planned: dict[str, Any], actual: dict[str, Any], mismatch: str | None
) -> None:
    first = first_mismatch(planned, actual)
    assert (str(first) if first else None) == mismatch


def test_mismatch_ignores_paths_that_the_server_manages() -> None:
    before, after = {"metadata": {"uid": 1}, "status": {"x": [1]}}, {"metadata": {"uid": 2}, "status": {"x": [2]}}
    assert first_mismatch(before, after, ["metadata.uid", "status"]) is None
