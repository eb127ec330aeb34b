"""Random changes outside a stack: `lakewright drift` finds what a refresh and the preview after it find.

The short form runs with every `make test`; `make test-all` takes 4,000 steps.
"""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.faults.fault_server import FULL, Operator
from tests.integration.provider.faults.found_drift import by_drift, by_preview
from tests.integration.provider.faults.random_machine import NAMES, RandomStack
from tests.integration.provider.faults.random_stack import Declared
from tests.integration.provider.faults.random_tables import make_bucket
from tests.state_machines import run_state_machine

LIVES, STEPS = (100, 40) if FULL else (8, 12)


class ComparedStack(RandomStack):
    """A random stack whose drift is found in two ways. Faults are the subject of another test."""

    up_under_a_fault = None

    def __init__(self) -> None:
        super().__init__()
        self.applied: Declared = {}

    @rule()
    def up(self) -> None:
        super().up()
        self.applied = deepcopy(self.declared)

    @rule(data=st.data(), name=NAMES)
    def drift(self, data: st.DataObject, name: str) -> None:
        super().drift(data=data, name=name)
        resources = self.stack.resources()
        if resources.keys() <= self.applied.keys():
            quickly = self.operator.run(lambda: by_drift(resources))
            slowly = self.operator.run(lambda: by_preview(resources, self.applied))
            assert quickly == slowly


@pytest.mark.timeout(7200 if FULL else 300)
def test_drift_is_what_a_preview_with_refresh_finds(
    operator: Operator, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in make_bucket(sandbox).items():
        monkeypatch.setenv(name, value)
    ComparedStack.operator, ComparedStack.sandbox = operator, sandbox
    run_state_machine(ComparedStack, lives=LIVES, steps=STEPS)
