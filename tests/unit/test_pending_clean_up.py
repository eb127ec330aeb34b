"""Interrupted creations in the Pulumi CLI's state are removed once they are completed, but not by a preview."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from lakewright.cli.engines.pulumi_cli import write_pending_creations
from pulumi.automation import Deployment, Stack

URN = "urn:pulumi:acme::lakehouse::pulumi-python:dynamic/lakekeeper:Warehouse::acme-executions"
RESOURCE = {"urn": URN, "type": "pulumi-python:dynamic/lakekeeper:Warehouse", "inputs": {}}
PENDING = {"resource": RESOURCE, "type": "creating"}


@dataclass
class RecordedStack:
    """A stack whose exported states are given, the last one repeatedly; it keeps what is imported."""

    states: list[dict[str, Any]]
    imported: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def export_stack(self) -> Deployment:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return Deployment(version=3, deployment=state)

    def import_stack(self, state: Deployment) -> None:
        self.imported.append(state.deployment or {})


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
