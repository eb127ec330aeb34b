"""Random stacks that claim each other's tenants change nothing of another stack, and lose no kept data.

The short form runs with every `make test`; `make test-all` takes 2,000 steps.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from lakewright_sandbox.runtime.state import Sandbox

from .machine import RandomOwners
from .observed import Observer
from .stack_slots import CommandServer

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
LIVES, STEPS = (50, 40) if FULL else (5, 40)


def run_machine(machine: type[RandomOwners], *, lives: int, steps: int) -> None:
    """Run a machine with the same examples in every run, and with new ones under `make test-all`.

    A failing example is not made smaller: that takes hundreds of commands.
    """
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=lives,
            stateful_step_count=steps,
            deadline=None,
            derandomize=not FULL,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(7200 if FULL else 600)
def test_no_stack_changes_what_another_one_owns(
    sandbox: Sandbox, commands: CommandServer, observer: Observer, tmp_path: Path
) -> None:
    class Owners(RandomOwners):
        codes = []

    Owners.sandbox, Owners.server, Owners.observer, Owners.folder = sandbox, commands, observer, tmp_path
    run_machine(Owners, lives=LIVES, steps=STEPS)

    assert {("up", 0), ("up", -9), ("destroy", 0)} <= {*Owners.codes}, "runs succeed, and some are killed"
