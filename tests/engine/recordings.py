"""Recordings of the Pulumi CLI running programs, in `recorded/NAME.json`.

`LAKEWRIGHT_RECORD=1 pytest tests/engine/test_recorded.py -k "cli_does and PART_OF_A_NAME"`, with `pulumi` on the PATH,
records the selected programs again. Review the difference before committing it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from lakewright_engine.display.report import OperationReport
from lakewright_engine.model.signatures import SECRET, SIGNATURE
from lakewright_engine.state.secrets import PassphraseManager
from programs.edge_cases import PROGRAMS as ODD_PROGRAMS
from programs.hooks import PROGRAMS as HOOK_PROGRAMS
from programs.options import HEADER, PROGRAMS, Scenario
from programs.replacements import PROGRAMS as REPLACEMENT_PROGRAMS
from programs.targets import PROGRAMS as TARGET_PROGRAMS
from stackrunner import RunOutcome, Stack

FOLDER = Path(__file__).parent / "recorded"
SCENARIOS = {**PROGRAMS, **ODD_PROGRAMS, **HOOK_PROGRAMS, **REPLACEMENT_PROGRAMS, **TARGET_PROGRAMS}

Recording = list[dict[str, Any]]
"""An object for each command: `command`, `exit`, `steps`, `calls`, `files`, `outputs`, `pending`, `resources`."""

_NOT_COMPARED = ("created", "modified", "sourcePosition", "stackTrace")
_UNORDERED = ("dependencies", "replaceWith")


def read_recording(name: str) -> Recording:
    return json.loads(find_recording_file(name).read_text())


def write(name: str, steps: Recording) -> None:
    FOLDER.mkdir(exist_ok=True)
    find_recording_file(name).write_text(json.dumps(steps, indent=1, sort_keys=True) + "\n")


def create_stack(scenario: Scenario, folder: Path) -> Stack:
    return Stack(folder, HEADER + scenario.program)


def play(scenario: Scenario, stack: Stack, number: int, *, cli: bool) -> tuple[dict[str, Any], list[str]]:
    """Run the scenario's command of a number (from 1). Return its effects and its messages."""
    command = scenario.commands[number - 1]
    run = stack.cli if cli else stack.run
    outcome = run(*command.split(), env={"STEP": str(number)})
    return json.loads(json.dumps({"command": command, **_effects(stack, outcome)})), outcome.messages


def _effects(stack: Stack, outcome: RunOutcome) -> dict[str, Any]:
    """Return a command's effects that do not depend on timing. Which steps a failure prevents does."""
    exit_code = outcome.exit if outcome.exit in (0, 7) else 1
    deployment = stack.deployment()
    steps = _steps(outcome) if exit_code == 0 else None
    return {
        "exit": exit_code,
        "steps": steps,
        "calls": sorted(outcome.provider_calls) if exit_code == 0 else None,
        "files": outcome.files,
        "outputs": outcome.outputs,
        "pending": [
            [operation["type"], operation["resource"]["urn"]]
            for operation in deployment.get("pending_operations") or []
        ],
        "resources": _resources(deployment.get("resources") or [], stack.secrets()),
    }


def _steps(outcome: RunOutcome) -> list[dict[str, Any]]:
    """Return the steps sorted. Only dependencies order steps, and the state shows whether the order was right."""
    report = OperationReport()
    for event in outcome.events:
        report.add(event)
    steps = report.to_json({}, 0)["steps"]
    steps_to_compare = [{key: step[key] for key in ("op", "urn", "keys", "result") if step.get(key)} for step in steps]
    return sorted(steps_to_compare, key=lambda step: json.dumps(step, sort_keys=True))


def _resources(resources: list[dict[str, Any]], secrets: PassphraseManager) -> list[dict[str, Any]]:
    normalized = [_normalize(resource, secrets) for resource in resources]
    return sorted(normalized, key=lambda resource: (resource["urn"], bool(resource.get("delete"))))


def _normalize(body: dict[str, Any], secrets: PassphraseManager) -> dict[str, Any]:
    """Return a resource with decrypted secrets and without times, positions, provider ids and versions of hashes."""
    body = {key: _plain(key, value, secrets) for key, value in body.items() if key not in _NOT_COMPARED}
    for key in _UNORDERED:
        if key in body:
            body[key] = sorted(body[key])
    if "propertyDependencies" in body:
        body["propertyDependencies"] = {key: sorted(urns or []) for key, urns in body["propertyDependencies"].items()}
    if body["type"].startswith("pulumi:providers:"):
        body["id"] = "<id>"
    if body.get("provider"):
        body["provider"] = body["provider"].rpartition("::")[0]
    return body


def _plain(key: str, value: Any, secrets: PassphraseManager) -> Any:
    if key == "__provider" and isinstance(value, str):
        return "<provider>"
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return {"secret": _plain_inside(json.loads(secrets.decrypt(value["ciphertext"])))}
        return {name: _plain(name, item, secrets) for name, item in value.items()}
    return [_plain("", item, secrets) for item in value] if isinstance(value, list) else value


def _plain_inside(value: Any) -> Any:
    """Return a value inside of a secret, where secrets are not encrypted."""
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return {"secret": _plain_inside(json.loads(value.get("ciphertext") or value["plaintext"]))}
        return {name: _plain_inside(item) for name, item in value.items()}
    return [_plain_inside(item) for item in value] if isinstance(value, list) else value


def find_recording_file(name: str) -> Path:
    return FOLDER / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.json"
