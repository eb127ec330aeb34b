"""A run that stops starts no further deletions."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from lakewright_engine.display.events import Events
from lakewright_engine.model.errors import DeploymentStoppedError
from lakewright_engine.model.resources import ResourceState, StackSnapshot
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.state.journal import Journal
from lakewright_engine.steps.deployment import Deployment
from pulumi.automation.events import EngineEvent
from stackrunner import Stack

PROGRAM = """
import pulumi
from filestore import FileProvider, root

class Keeper(FileProvider):
    def delete(self, id_, props):
        self._log("delete", id_)
        while (root() / "waits").exists() and not (root() / "interrupted").exists():
            import time
            time.sleep(0.01)
        if (root() / "refuses").exists():
            raise RuntimeError("refused")

class Thing(pulumi.dynamic.Resource):
    pass

for name in "abcdef":
    Thing(Keeper(), name, {"path": f"{name}.json"})
"""


def test_failed_deletion_lets_only_one_batch_of_workers_begin(tmp_path: Path) -> None:
    """As on the CLI: each worker has taken a deletion, and takes no other one."""
    stack = Stack(tmp_path, PROGRAM)
    assert stack.run("up").exit == 0
    (stack.store / "refuses").touch()

    outcome = stack.run("destroy", parallel=2)

    assert outcome.exit == 1
    assert len(outcome.provider_calls) == 2


def test_interrupt_starts_no_further_deletion(tmp_path: Path) -> None:
    stack = Stack(tmp_path, PROGRAM)
    assert stack.run("up").exit == 0
    (stack.store / "waits").touch()
    is_interrupted: list[bool] = []

    def interrupt(event: EngineEvent) -> None:
        if event.resource_pre_event is not None and not is_interrupted:
            is_interrupted.append(True)
            os.kill(os.getpid(), signal.SIGINT)
        if event.diagnostic_event is not None and "was interrupted" in event.diagnostic_event.message:
            (stack.store / "interrupted").touch()

    outcome = stack.run("destroy", parallel=1, on_event=interrupt)

    assert outcome.exit == 1
    assert len(outcome.provider_calls) == 1
    assert len([resource for resource in stack.resources() if resource.type.startswith("pulumi-python:")]) == 5


def test_interrupt_stops_deletions_that_a_failure_does_not() -> None:
    resources = [ResourceState(f"urn:pulumi:dev::conf::t:t:T::{name}", "t:t:T", custom=True) for name in "ab"]
    deployment = Deployment(
        project="conf",
        stack="dev",
        organization="organization",
        root=Path(),
        program=Path(),
        dry_run=True,
        parallel=2,
        config={},
        secret_keys=[],
        journal=Journal(StackSnapshot(resources), None),
        events=Events(lambda _: None, planning=True, refreshing=False),
        resources=resources,
    )
    deployment.fail("a deletion failed")
    deployment.delete(DeploymentStep("delete", resources[0], None), even_if_stopped=True)
    deployment.interrupt()
    with pytest.raises(DeploymentStoppedError):
        deployment.delete(DeploymentStep("delete", resources[1], None), even_if_stopped=True)
    assert deployment.journal.snapshot().resources == [resources[1]]
