"""Run state machines of hypothesis: the same examples in every run, and new ones under `make test-all`."""

from __future__ import annotations

import os
from collections.abc import Collection

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))


def run_state_machine(
    machine: type[RuleBasedStateMachine],
    *,
    lives: int,
    steps: int,
    least_steps: int = 0,
    phases: Collection[Phase] = tuple(Phase),
) -> None:
    """Run a state machine.

    Args:
        machine: The machine.
        lives: Number of examples, each of which begins with a new machine.
        steps: Largest number of steps of an example.
        least_steps: Smallest number of steps. Hypothesis ends some examples early.
        phases: Phases of hypothesis. Without `Phase.shrink`, a failing example is not made smaller.
    """
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=lives,
            stateful_step_count=steps,
            deadline=None,
            derandomize=not FULL,
            database=None,
            phases=phases,
            suppress_health_check=[*HealthCheck],
        ),
        _min_steps=least_steps,
    )
