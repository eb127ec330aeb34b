"""Random stacks that claim each other's tenants change nothing of another stack, and lose no kept data.

`make test-long` takes 200 steps, 120 on the Pulumi CLI; `make test-all` takes 2,000.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.ownership.machine import RandomOwners
from tests.integration.ownership.observed import Observer
from tests.integration.ownership.stack_slots import StackCommands
from tests.state_machines import FULL

LIVES, STEPS = (50, 40) if FULL else (5, 40)
CLI_PARTS, CLI_LIVES = (5, 10) if FULL else (1, 3)
CLI_GROUPS = [pytest.param(part, marks=pytest.mark.xdist_group(f"cli-owners-{part}")) for part in range(CLI_PARTS)]
"""2,000 steps on the Pulumi CLI take about two hours: in parts, which report and run in workers of their own."""


@pytest.fixture
def owners(sandbox: Sandbox, commands: StackCommands, observer: Observer, tmp_path: Path) -> type[RandomOwners]:
    """Return a machine on the sandbox that has not run."""

    class Owners(RandomOwners):
        codes = []

    Owners.sandbox, Owners.server, Owners.observer, Owners.folder = sandbox, commands, observer, tmp_path
    return Owners


def run_owners(owners: type[RandomOwners], *, lives: int = LIVES, part: int = 0, seed: str = "same") -> None:
    """Run the machine: with the same choices in every run, and with different choices under `make test-all`.

    Hypothesis cannot run these lives. A killed command may do less or more the second time; Hypothesis then calls the
    life flaky, and hides a change that it found.
    """
    seed = os.environ.get("TEST_OWNERS_SEED") or (uuid4().hex if FULL else seed)
    for life in range(lives):
        stacks = owners(Random(f"{seed} {part} {life}"))
        try:
            stacks.begin()
            for _ in range(STEPS):
                stacks.act()
        except BaseException as error:  # also a time limit, and `pytest.fail`
            error.add_note(f"life {life} of part {part}; TEST_OWNERS_SEED={seed} repeats its choices")
            raise

    assert {("up", 0), ("destroy", 0)} <= {*owners.codes}, f"some runs succeed; TEST_OWNERS_SEED={seed}"


@pytest.mark.timeout(300)
def test_deploying_another_tenant_uses_no_consent(owners: type[RandomOwners]) -> None:
    """The machine once dropped the consent to adopt tenant a here, and then reported the adoption as a change."""
    stacks = owners()
    stacks.deploy_first_tenant("retain")
    stacks.run(0, ["destroy", "--yes"], set())
    namesake = 2
    stacks.slots[namesake].write(stacks.spec("b"))

    stacks.run(namesake, ["up", "--yes"], set())

    assert stacks.consents["project", "a"] == {stacks.slots[namesake].name}
    assert stacks.identity(namesake) not in stacks.owners["project", "a"]
    stacks.slots[0].write(stacks.spec("a") | {"adopt": True})
    stacks.run(0, ["up", "--yes"], set())
    assert stacks.owners["project", "a"] == {stacks.identity(0)}
    assert owners.codes == [("up", 0), ("destroy", 0), ("up", 0), ("up", 0)]


@pytest.mark.timeout(300)
def test_refused_destroy_keeps_consent_of_another_stack(owners: type[RandomOwners]) -> None:
    """The machine once replaced the consent here, and then reported the adoption as a change."""
    stacks = owners()
    stacks.deploy_first_tenant("protect")
    other = 1
    stacks.slots[other].write(stacks.spec("a") | {"adopt": True})
    stacks.write_consents(other)

    stacks.run(0, ["destroy", "--yes"], set())

    assert stacks.slots[other].name in stacks.consents["project", "a"]
    stacks.slots[0].write(None)
    stacks.run(other, ["up", "--yes"], set())
    assert stacks.owners["project", "a"] == {stacks.identity(other)}
    assert owners.codes == [("up", 0), ("destroy", 1), ("up", 0)]


@pytest.mark.timeout(300)
def test_copy_of_an_old_state_uses_no_consent(owners: type[RandomOwners]) -> None:
    """The machine once took an `up` without a call for an adoption here, and reported the later adoption."""
    stacks = owners()
    stacks.deploy_first_tenant("purge")
    copied = 2
    stacks.slots[copied].write(stacks.slots[0].spec)
    stacks.slots[copied].copy_state(stacks.slots[0])
    stacks.lineage[copied] = stacks.lineage[0]
    stacks.run(0, ["destroy", "--yes"], set())
    stacks.deploy_first_tenant("retain")
    owner = stacks.identity(0)
    stacks.run(0, ["destroy", "--yes"], set())

    stacks.run(copied, ["up", "--yes"], set())

    assert stacks.owners["project", "a"] == {owner}
    assert stacks.consents["project", "a"] == {stacks.slots[copied].name}
    spec = stacks.slots[0].spec
    assert spec is not None
    stacks.slots[0].write(spec | {"adopt": True})
    stacks.run(0, ["up", "--yes"], set())
    assert stacks.owners["project", "a"] == {stacks.identity(0)} != {owner}
    assert owners.codes == [(command, 0) for command in ("up", "destroy", "up", "destroy", "up", "up")]


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

    # With the default seed, no command of the two lives destroys a stack.
    run_owners(owners, lives=10 if FULL else 2, seed="first")


@pytest.mark.pulumi_cli
@pytest.mark.long
@pytest.mark.timeout(7200 if FULL else 1800)
@pytest.mark.parametrize("part", CLI_GROUPS)
@pytest.mark.usefixtures("forked_python")  # a server that kills a run after a number of calls
def test_no_stack_changes_others_on_the_pulumi_cli(owners: type[RandomOwners], part: int) -> None:
    owners.engine = "pulumi"

    run_owners(owners, lives=CLI_LIVES, part=part)

    assert ("up", -9) in owners.codes, "some runs are killed"
