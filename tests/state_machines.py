"""Run state machines of hypothesis: the same examples in every run, and new ones under `make test-all`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))


def run_state_machine(machine: type[RuleBasedStateMachine], *, lives: int, steps: int) -> None:
    """Run a state machine.

    Args:
        machine: The machine.
        lives: Number of examples, each of which begins with a new machine.
        steps: Largest number of steps of an example.
    """
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=lives,
            stateful_step_count=steps,
            deadline=None,
            derandomize=not FULL,
            database=None,
            suppress_health_check=[*HealthCheck],
        ),
    )
