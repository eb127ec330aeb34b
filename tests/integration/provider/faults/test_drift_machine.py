"""Random changes outside a stack: `lakewright drift`, and a refresh with a preview after it, find equal drift.

`make test-long` runs the short form, `make test-all` takes 4,000 steps.
"""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.faults.fault_server import FULL, Operator
from tests.integration.provider.faults.found_drift import find_by_drift, find_by_preview
from tests.integration.provider.faults.random_machine import NAMES, RandomStack
from tests.integration.provider.faults.random_stack import Declarations
from tests.integration.provider.faults.random_tables import make_bucket
from tests.state_machines import run_state_machine

LIVES, STEPS = (100, 40) if FULL else (8, 12)


class ComparedStack(RandomStack):
    """A random stack whose drift is found in two ways. Faults are the subject of another test."""

    up_under_a_fault = None

    def __init__(self) -> None:
        super().__init__()
        self.applied: Declarations = {}

    @rule()
    def up(self) -> None:
        super().up()
        self.applied = deepcopy(self.declarations)

    @rule(data=st.data(), name=NAMES)
    def drift(self, data: st.DataObject, name: str) -> None:
        super().drift(data=data, name=name)
        resources = self.stack.resources()
        if resources.keys() <= self.applied.keys():
            scanned_kinds = self.operator.run(lambda: find_by_drift(resources))
            previewed_kinds = self.operator.run(lambda: find_by_preview(resources, self.applied))
            assert scanned_kinds == previewed_kinds


@pytest.mark.long
@pytest.mark.timeout(7200 if FULL else 300)
def test_drift_equals_the_drift_of_a_preview_with_refresh(
    operator: Operator, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in make_bucket(sandbox).items():
        monkeypatch.setenv(name, value)
    ComparedStack.operator, ComparedStack.sandbox = operator, sandbox
    run_state_machine(ComparedStack, lives=LIVES, steps=STEPS)
