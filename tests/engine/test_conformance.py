"""The embedded engine behaves as recordings of the Pulumi CLI, step by step."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.model.resources import SecretValue
from lakewright_engine.state.checkpoint import FIELDS
from stackrunner import RunOutcome, Stack

CASES = Path(__file__).parent / "cases"
UNORDERED = ("dependencies",)
IDENTITY = "<id>"
REFUSAL = "RuntimeError: the store refused the object"
"""The message with which filestore.py fails."""


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.iterdir() if path.is_dir()))
def test_case_matches_recording(name: str, tmp_path: Path) -> None:
    case = json.loads((CASES / name / "case.json").read_text())
    expected = json.loads((CASES / name / "expected.json").read_text())
    stack = Stack(tmp_path, (CASES / name / "program.py").read_text())
    secrets: dict[str, str] = {}
    for number, (step, expected_step) in enumerate(zip(case["steps"], expected, strict=True), 1):
        prepare(stack, step)
        secrets |= step.get("config", {})
        before = stack.resources()
        outcome = stack.run(*step["run"], env=step.get("env"))
        context = f"{name}, step {number}: {' '.join(step['run'])}\n" + "\n".join(outcome.messages)
        assert outcome.exit == expected_step["exit"], context
        assert sorted(map(key, outcome.steps)) == sorted(map(key, expected_step["steps"])), context
        assert sorted(outcome.provider_calls) == sorted(expected_step["provider_calls"]), context
        assert outcome.files == expected_step["files"], context
        assert outcome.outputs == expected_step["outputs"], context
        assert [op.type for op in stack.list_pending_operations()] == expected_step["pending_operations"], context
        assert messages_match(outcome, expected_step["message"]), context
        after = stack.resources()
        assert normal(after) == normalize_recorded(expected_step["resources"], secrets), context
        if not expected_step["provider_calls"] and "refresh" not in step["run"][0]:
            assert providers(before) == providers(after) or not before, context
        assert_forced_order(outcome, before, after, context)


def prepare(stack: Stack, step: dict[str, Any]) -> None:
    for name, value in step.get("config", {}).items():
        stack.set_config(name, value, secret=name in step.get("secrets", []))
    for file, content in step.get("write", {}).items():
        (stack.store / file).write_text(json.dumps(content))
    for file in step.get("remove", []):
        (stack.store / file).unlink()


def key(step: dict[str, str]) -> tuple[str, ...]:
    return step["op"], step["type"], step["name"]


def messages_match(outcome: RunOutcome, recorded_messages: list[str]) -> bool:
    """Return whether the errors of the recording are reported. A recording has the first line of each error.

    A provider's traceback is recorded by its first line and reported by its last line, for the same resource.
    """
    reported = {message.removeprefix("error: ").partition("\n")[0] for message in outcome.messages}
    errors = {line.split("error: ", 1)[1] for line in recorded_messages if "error: " in line}
    tracebacks = {error for error in errors if error.startswith("Traceback")}
    failed = {line.split()[2] for line in recorded_messages if " **creating failed** error: Traceback" in line}
    diagnostics = [event.diagnostic_event for event in outcome.events if event.diagnostic_event is not None]
    refused = {
        diagnostic.urn.rsplit("::", 1)[-1]
        for diagnostic in diagnostics
        if REFUSAL in diagnostic.message and "\n" not in diagnostic.message.strip()
    }
    return errors - tracebacks <= reported and bool(tracebacks) == bool(failed) and failed == refused


def normal(resources: list[Any]) -> dict[str, Any]:
    """Return resources by URN as JSON fields, without ids of providers."""
    result: dict[str, Any] = {}
    for state in resources:
        body = {json_key: getattr(state, field) for json_key, field in FIELDS.items() if json_key not in IGNORED}
        result[state.urn] = blind({k: v for k, v in body.items() if v or k == "custom"})
    return result


IGNORED = ("created", "modified", "sourcePosition", "stackTrace")


def normalize_recorded(resources: list[dict[str, Any]], secrets: dict[str, str]) -> dict[str, Any]:
    return {resource["urn"]: blind({k: v for k, v in resource.items() if v or k == "custom"}) for resource in resources}


def blind(body: dict[str, Any]) -> dict[str, Any]:
    body = {k: sorted(v) if k in UNORDERED else plain(v, k) for k, v in body.items()}
    if body["type"].startswith("pulumi:providers:"):
        body["id"] = IDENTITY
    if "provider" in body:
        body["provider"] = body["provider"].rsplit("::", 1)[0]
    return body


def plain(value: Any, key: str = "") -> Any:
    """Replace secrets by a marker. Their content is compared in the files of the provider."""
    if isinstance(value, SecretValue) or (isinstance(value, dict) and "ciphertext" in value):
        return IDENTITY
    if key == "__provider":
        return bool(value)
    if isinstance(value, dict):
        return {k: plain(v, k) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def providers(resources: list[Any]) -> dict[str, Any]:
    return {state.urn: state.inputs["__provider"] for state in resources if "__provider" in state.inputs}


def assert_forced_order(outcome: RunOutcome, before: list[Any], after: list[Any], context: str) -> None:
    """Check that a dependency is created or updated before its dependents, and deleted after them."""
    depends = {state.urn: {*state.dependencies, state.parent} for state in [*before, *after]}
    by_name = {urn.rsplit("::", 1)[-1]: urn for urn in depends}
    changes = [step for step in outcome.steps if step["op"] in ("create", "update", "create-replacement", "same")]
    for first, second in combinations(changes, 2):
        assert by_name.get(second["name"]) not in depends.get(by_name.get(first["name"], ""), set()), context
    deleted = [step for step in outcome.steps if step["op"] == "delete"]
    for first, second in combinations(deleted, 2):
        assert by_name.get(first["name"]) not in depends.get(by_name.get(second["name"], ""), set()), context
