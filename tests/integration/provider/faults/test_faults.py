"""Every fault at every call of every operation: no duplicate, no orphan, no loss, and a useful message.

Each run counts the calls of an operation that succeeds, then injects the fault at the first call, at the second,
and so on: once, and at all calls from that call on. After a failure the fault is removed and the operation runs
again, as the next `up`, `refresh` or `destroy` does. Then the server must hold the declared objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.provider.faults.fault_cases import CASES, Case, World
from tests.integration.provider.faults.fault_server import (
    FAULTS,
    FULL,
    LOST_RESPONSE,
    OPERATIONS,
    SHORT_FORM_FAULTS,
    Operator,
    find_message_faults,
)
from tests.integration.provider.resource import Props, Resource, permit_adoption


class Run:
    """One object from creation to deletion, in its own world."""

    def __init__(self, case: Case, operator: Operator) -> None:
        self.case, self.operator = case, operator
        self.world = World(operator.fault_server.http, operator.fault_server.lakekeeper)
        case.wipe(self.world)
        self.resource = Resource(case.provider())
        self.declaration = {"server": operator.server} | case.declare(self.world)
        self.changed = self.declaration | (case.changed(self.world) if case.changed else {})
        self.before = self.world.snapshot()
        operator.fault_server.calls()

    @property
    def adopting(self) -> Props:
        """Properties that let a stack adopt an object that its state does not have."""
        return {"adopt": True} if "adopt" in self.case.provider().args.model_fields else {}

    def prepare(self, operation: str) -> Run:
        if operation != "create":
            self.operator.run(self.create)
        if operation == "delete":
            if self.declaration.get("protected"):
                self.declaration |= {"protected": False}
                self.operator.run(self.create)
            self.case.fill(self.world, self.resource.id)
        self.operator.fault_server.calls()
        return self

    def create(self) -> None:
        self.resource.up(**self.declaration)

    def update(self) -> None:
        self.resource.up(**self.changed)

    def refresh(self) -> None:
        assert self.resource.refresh() == "same"

    def delete(self) -> None:
        self.resource.destroy()

    def check(self, operation: str) -> None:
        """Check that the server holds the declared object once, and every other object as before."""
        self.operator.run(self._check_delete if operation == "delete" else self._check_present)

    def _check_present(self) -> None:
        assert self.resource.refresh() == "same"
        assert self.resource.up(**self.resource.inputs) == "same"
        permit_adoption({"adopt": True, "project_id": self.world.project})
        readopted = Resource(self.case.provider())
        readopted.up(**self.resource.inputs | self.adopting)  # As a stack with a lost state adopts it.
        assert readopted.id == self.resource.id
        now = self.world.snapshot()
        new_ids = {kind: now[kind].keys() - self.before[kind].keys() for kind in ("warehouses", "namespaces", "roles")}
        new_server_wide_ids = [now[kind] - self.before[kind] for kind in ("projects", "users")]
        assert sum(map(len, [*new_server_wide_ids, *new_ids.values()])) <= 1
        assert self.before["grants"] <= now["grants"]
        assert len(now["grants"] - self.before["grants"]) == self.case.grants
        assert now["secrets"] - self.before["secrets"] == bool(self.declaration.get("credential"))
        assert {kind: {key: now[kind].get(key) for key in self.before[kind]} for kind in new_ids} == {
            kind: self.before[kind] for kind in new_ids
        }

    def _check_delete(self) -> None:
        if not self.case.outlives_resource:
            assert self.world.snapshot() == self.before


def _matrix() -> Iterator[Any]:
    for case in CASES:
        # One worker would need an hour for the long form.
        group = [pytest.mark.xdist_group(f"faults-{case.name}")] if FULL else []
        for operation in OPERATIONS:
            if operation != "update" or case.changed:
                for fault in FAULTS if FULL else SHORT_FORM_FAULTS:
                    name = f"{case.name}-{operation}-{fault}".replace(" ", "-").replace(",", "")
                    long = [] if fault == LOST_RESPONSE else [pytest.mark.long]
                    yield pytest.param(case, operation, fault, id=name, marks=[*long, *group])


@pytest.mark.parametrize(("case", "operation", "fault"), list(_matrix()))
def test_fault_at_every_call(case: Case, operation: str, fault: str, operator: Operator) -> None:
    _run_with_faults(case, operation, fault, (1, None) if FULL else SHORT_FORM_FAULTS[fault], operator)


def test_restored_user_is_found_after_lost_responses(operator: Operator) -> None:
    """The short form of the matrix loses one response only, after which the client repeats the request."""
    (case,) = (case for case in CASES if case.name == "deleted user")

    _run_with_faults(case, "create", LOST_RESPONSE, (None,), operator)


def _run_with_faults(
    case: Case, operation: str, fault: str, counts: tuple[int | None, ...], operator: Operator
) -> None:
    """Run an operation with a fault at each of its calls, which occurs as often as each of the counts; None: always."""
    operator.fault_server.empty()
    clean = Run(case, operator).prepare(operation)
    calls = operator.record_calls(getattr(clean, operation))
    clean.check(operation)
    assert calls
    for number in range(1, len(calls) + 1):
        for count in counts:
            _run_with_fault(case, operation, operator, FAULTS[fault] | {"nth": number, "count": count})


def _run_with_fault(case: Case, operation: str, operator: Operator, rule: Props) -> None:
    run = Run(case, operator).prepare(operation)
    failure, failed_calls = operator.run_with_fault(getattr(run, operation), rule)
    if operation == "create" and (rule["action"], rule["count"]) == ("drop", 1):
        assert failure is None, "the operation itself detects a single lost response"
    if failure:
        assert find_message_faults(failure, operator.server["endpoint"], failed_calls) == []
        if "needs `adopt`" in str(failure):
            run.declaration |= run.adopting
            permit_adoption({"adopt": True, "project_id": run.world.project})
        operator.run(getattr(run, operation))
    run.check(operation)
