"""Interrupted creations in the Pulumi CLI's state are removed once they are completed, but not by a preview."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from lakewright.cli.engines.pulumi_cli import write_pending_creations
from pulumi.automation import CommandError, CommandResult, Stack

URN = "urn:pulumi:acme::lakehouse::pulumi-python:dynamic/lakekeeper:Warehouse::acme-executions"
RESOURCE = {"urn": URN, "type": "pulumi-python:dynamic/lakekeeper:Warehouse", "inputs": {}}
PENDING = {"resource": RESOURCE, "type": "creating"}


@dataclass
class RecordedStack:
    """A stack whose exported states are given, the last one repeatedly; it keeps what is imported."""

    states: list[dict[str, Any]]
    refuses: bool = False
    """Whether imports fail."""
    imported: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    files: list[Path] = field(default_factory=list[Path])
    """Files that were imported."""
    name: str = "acme"
    work_dir: str = "."
    env_vars: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def workspace(self) -> RecordedStack:
        return self

    @property
    def pulumi_command(self) -> RecordedStack:
        return self

    def run(self, arguments: list[str], _folder: str, _environment: dict[str, str]) -> CommandResult:
        command, *options = arguments[1:]
        if command == "import":
            self.files.append(Path(options[1]))
            self.imported.append(json.loads(self.files[0].read_text())["deployment"])
            if self.refuses:
                raise CommandError(CommandResult("", "error: the stack is locked", 1))
            return CommandResult("", "", 0)
        assert (command, options) == ("export", ["--stack", "acme"]), "secrets remain encrypted"
        exported = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return CommandResult(json.dumps({"version": 3, "deployment": exported}), "", 0)


def state(*, is_made: bool) -> dict[str, Any]:
    return {"resources": [RESOURCE] if is_made else [], "pending_operations": [PENDING]}


def run(stack: RecordedStack, *, clears: bool = True, fails: bool = False) -> None:
    with write_pending_creations(cast(Stack, stack), clears=clears):
        if fails:
            raise RuntimeError("the run failed")


def read_imported_operations(stack: RecordedStack) -> list[Any]:
    assert len(stack.imported) == 1
    return stack.imported[0]["pending_operations"]


def test_completed_creation_is_removed() -> None:
    stack = RecordedStack([state(is_made=False), state(is_made=True)])
    run(stack)
    assert read_imported_operations(stack) == []


def test_completed_creation_is_removed_after_a_failure() -> None:
    stack = RecordedStack([state(is_made=False), state(is_made=True)])
    with pytest.raises(RuntimeError, match="the run failed"):
        run(stack, fails=True)
    assert read_imported_operations(stack) == []


def test_completed_creation_is_removed_by_destroy() -> None:
    stack = RecordedStack([state(is_made=True), state(is_made=False)])
    run(stack)
    assert read_imported_operations(stack) == []


def test_incomplete_creation_stays() -> None:
    stack = RecordedStack([state(is_made=False)])
    run(stack)
    assert not stack.imported


def test_preview_does_not_write_the_state() -> None:
    stack = RecordedStack([state(is_made=True)])
    run(stack, clears=False)
    assert not stack.imported


def test_state_that_another_run_changes_is_not_written() -> None:
    stack = RecordedStack([state(is_made=True), state(is_made=True), {**state(is_made=True), "metadata": {}}])
    run(stack)
    assert not stack.imported


@pytest.mark.parametrize("refuses", [True, False])
def test_no_file_of_the_state_remains(*, refuses: bool) -> None:
    stack = RecordedStack([state(is_made=False), state(is_made=True)], refuses=refuses)
    if refuses:
        with pytest.raises(CommandError, match="the stack is locked"):
            run(stack)
    else:
        run(stack)
    assert stack.files
    assert not any(file.exists() or file.parent.exists() for file in stack.files)
