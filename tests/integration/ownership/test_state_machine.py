"""Random stacks that claim each other's tenants change nothing of another stack, and lose no kept data.

`make test-long` takes 200 steps, `make test-all` 2,000.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.ownership.machine import RandomOwners
from tests.integration.ownership.observed import Observer
from tests.integration.ownership.stack_slots import StackCommands
from tests.state_machines import FULL, run_state_machine

LIVES, STEPS = (50, 40) if FULL else (5, 40)


@pytest.fixture
def owners(sandbox: Sandbox, commands: StackCommands, observer: Observer, tmp_path: Path) -> type[RandomOwners]:
    """Return a machine on the sandbox that has not run."""

    class Owners(RandomOwners):
        codes = []

    Owners.sandbox, Owners.server, Owners.observer, Owners.folder = sandbox, commands, observer, tmp_path
    return Owners


def run_owners(owners: type[RandomOwners], *, lives: int = LIVES) -> None:
    """Run the machine. A failing example is not made smaller: that takes hundreds of commands."""
    run_state_machine(owners, lives=lives, steps=STEPS, least_steps=STEPS, phases=[Phase.generate])

    assert {("up", 0), ("destroy", 0)} <= {*owners.codes}, "some runs succeed"


@pytest.mark.long
@pytest.mark.timeout(7200 if FULL else 900)
def test_no_stack_changes_what_another_one_owns(owners: type[RandomOwners]) -> None:
    run_owners(owners)

    assert ("up", -9) in owners.codes, "some runs are killed"


@pytest.mark.long
@pytest.mark.timeout(7200 if FULL else 900)
def test_no_stack_changes_aws_objects_of_another(owners: type[RandomOwners]) -> None:
    """Buckets and IAM roles have their mark in tags."""
    owners.backend = "aws"

    run_owners(owners, lives=10 if FULL else 2)


@pytest.mark.pulumi_cli
@pytest.mark.long
@pytest.mark.timeout(14400 if FULL else 1800)
def test_no_stack_changes_others_on_the_pulumi_cli(owners: type[RandomOwners]) -> None:
    owners.engine = "pulumi"

    run_owners(owners)

    assert ("up", -9) in owners.codes, "some runs are killed"
