"""Random changes outside a stack that an engine runs: `lakewright drift` and `preview --refresh` find equal drift."""

from __future__ import annotations

import random
from copy import deepcopy
from pathlib import Path

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.faults.engine_stack import EngineStack
from tests.integration.provider.faults.fault_server import FULL, Operator
from tests.integration.provider.faults.random_machine import RandomStack
from tests.integration.provider.faults.random_stack import sort_by_creation
from tests.integration.provider.faults.random_tables import make_bucket

SEEDS, CHANGES = (range(12), 8) if FULL else (range(1), 4)
ENGINES = ["embedded", *([pytest.param("pulumi", marks=pytest.mark.pulumi_cli)] if FULL else [])]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", SEEDS)
def test_drift_equals_the_drift_of_preview_refresh(  # noqa: PLR0917 - fixtures
    engine: str, seed: int, operator: Operator, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused changes end a preview early, so it then shows a part of the drift."""
    for name, value in make_bucket(sandbox).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tmp_path / "stack" / "state").as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "lives")
    RandomStack.operator, RandomStack.sandbox = operator, sandbox
    machine, choice = RandomStack(), random.Random(seed)
    stack = machine.stack = EngineStack(operator.server, tmp_path / "stack", engine)
    machine.begin(name="north", delete_profile={"type": "soft", "expiration_seconds": 60})
    machine.declare_namespace("w0", "a.x", {"team": "y"}, protected=False)
    machine.declare_namespace("w1", "b", {"team": "y"}, protected=False)
    stack.up(deepcopy(machine.declarations))
    assert (stack.find_by_preview(), stack.find_by_drift()) == (({}, False), {})

    for _ in range(CHANGES):
        key = choice.choice(sort_by_creation(stack.resources()))
        drifts = stack.drifts(machine.http, key, machine.declarations[key], choice.choice(["South", "ost"]))
        drifts[choice.choice(sorted(drifts))]()

        preview_kinds, is_refused = stack.find_by_preview()
        drift_kinds = stack.find_by_drift()

        if is_refused:
            assert preview_kinds.items() <= drift_kinds.items()
            assert any(kind == "table" for kind, _ in drift_kinds)
        else:
            assert preview_kinds == drift_kinds
