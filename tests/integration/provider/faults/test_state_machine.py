"""Random changes of a stack: declarations, updates, drift and faults. After each `up` the server equals the stack.

`make test-long` takes 150 steps, `make test-all` 10,000.
"""

from __future__ import annotations

from itertools import product

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.faults.fault_server import FULL, Operator
from tests.integration.provider.faults.random_machine import RandomStack
from tests.integration.provider.faults.random_tables import make_bucket
from tests.integration.provider.resource import Props
from tests.state_machines import run_state_machine

LIVES, STEPS = (250, 50) if FULL else (10, 15)
"""Some runs end early: on average after 42 of 50 steps."""


@pytest.fixture
def machine_type(operator: Operator, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> type[RandomStack]:
    """Return the machine, with servers and a bucket."""
    for name, value in make_bucket(sandbox).items():
        monkeypatch.setenv(name, value)
    RandomStack.operator, RandomStack.sandbox = operator, sandbox
    return RandomStack


@pytest.mark.long
@pytest.mark.timeout(7200 if FULL else 300)
def test_after_each_up_the_server_equals_the_declaration(machine_type: type[RandomStack]) -> None:
    run_state_machine(machine_type, lives=LIVES, steps=STEPS)


NAME_CHANGES = ("drop", "recreate", "rename")
"""Changes outside the stack after which another table, or no table, has the declared name."""


@pytest.mark.long
@pytest.mark.parametrize("delete_profile", [{"type": "hard"}, {"type": "soft", "expiration_seconds": 60}], ids=str)
@pytest.mark.parametrize(("first", "second"), list(product(NAME_CHANGES, repeat=2)))
def test_up_finds_the_table_after_two_changes(
    machine_type: type[RandomStack], first: str, second: str, delete_profile: Props
) -> None:
    """Two changes outside the stack leave at most one table, so that `up` can restore the declared state."""
    machine, table = machine_type(), ("table", "w0.a")
    machine.begin(name="north", delete_profile=delete_profile)
    machine.up()
    changes = machine.stack.drifts(machine.http, table, machine.declarations[table], "ost")

    changes[first]()
    changes[second]()

    machine.up()
    machine.teardown()
