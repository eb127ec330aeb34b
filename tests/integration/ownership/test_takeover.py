"""A stack in another backend takes a tenant over: by a consent on the objects, and by one of its operator."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from .machine import RandomOwners
from .observed import Observer
from .stack_slots import CommandServer

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def stacks(sandbox: Sandbox, commands: CommandServer, observer: Observer, tmp_path: Path) -> RandomOwners:
    """Stack 0 has tenant a. Stack 2, in another backend, declares the tenant with `adopt`."""

    class Takeover(RandomOwners): ...

    Takeover.sandbox, Takeover.server, Takeover.observer, Takeover.folder = sandbox, commands, observer, tmp_path
    Takeover.codes = []
    stacks = Takeover()
    stacks.begin("purge")
    stacks.slots[2].write(stacks.spec("a") | {"adopt": True})
    return stacks


def up(stacks: RandomOwners, *options: str) -> int:
    return stacks.server.run(stacks.slots[2], "up", "--yes", "--engine", "embedded", *options)


@pytest.mark.parametrize("by_option", [True, False], ids=["option", "mark"])
def test_takeover_needs_a_consent(stacks: RandomOwners, *, by_option: bool) -> None:
    consents = [f"project={stacks.name('a')}", f"bucket={stacks.bucket('a')}"]
    before = [stacks.read(key) for key in stacks.objects]

    assert up(stacks) != 0
    assert f"lakewright up --adopt bucket={stacks.bucket('a')}" in stacks.server.text()
    assert [stacks.read(key) for key in stacks.objects] == before
    if by_option:
        assert up(stacks, *(word for consent in consents for word in ("--adopt", consent))) == 0, stacks.server.text()
    else:
        assert stacks.server.run(stacks.slots[2], "adopt", "consent", *consents) == 0
        assert up(stacks) == 0, stacks.server.text()

    owned = [stacks.read(key) for key in stacks.objects]
    assert stacks.server.run(stacks.slots[0], "destroy", "--yes", "--engine", "embedded") != 0
    assert "lakewright stack forget" in stacks.server.text()
    assert [stacks.read(key) for key in stacks.objects] == owned
    assert stacks.server.run(stacks.slots[0], "stack", "forget", "--yes") == 0
    assert not stacks.slots[0].has_resources()
    assert stacks.server.run(stacks.slots[2], "destroy", "--yes", "--engine", "embedded") == 0, stacks.server.text()


def test_consent_names_what_does_not_exist(stacks: RandomOwners) -> None:
    assert stacks.server.run(stacks.slots[2], "adopt", "consent", "project=missing") != 0
    assert "expected a project `missing`" in stacks.server.text()
    assert stacks.server.run(stacks.slots[2], "adopt", "consent", "warehouse=first") != 0
    assert "expected project=ID instead of warehouse=first" in stacks.server.text()
