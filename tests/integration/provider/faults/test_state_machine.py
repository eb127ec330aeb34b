"""Random changes of a stack: declarations, updates, drift and faults. After each `up` the server equals the stack.

`make test-long` takes 150 steps, `make test-all` 10,000.
"""

from __future__ import annotations

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.faults.fault_server import FULL, Operator
from tests.integration.provider.faults.random_machine import RandomStack
from tests.integration.provider.faults.random_tables import make_bucket
from tests.state_machines import run_state_machine

LIVES, STEPS = (250, 50) if FULL else (10, 15)
"""Some runs end early: on average after 42 of 50 steps."""


@pytest.mark.long
@pytest.mark.timeout(7200 if FULL else 300)
def test_after_each_up_the_server_equals_the_declaration(
    operator: Operator, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in make_bucket(sandbox).items():
        monkeypatch.setenv(name, value)
    RandomStack.operator, RandomStack.sandbox = operator, sandbox
    run_state_machine(RandomStack, lives=LIVES, steps=STEPS)
