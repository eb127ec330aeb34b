"""Events and counts of adopted resources, and the file in which providers name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lakewright.cli.adoption_display import AdoptionReportingEngine
from lakewright.ownership.running_stack import FILE, record_adopted_resource
from lakewright_engine import Operation, Result
from lakewright_engine.display.report import OperationReport
from lakewright_engine.project.project import PulumiProject
from pulumi.automation.events import EngineEvent

BUCKET = "aws:s3/bucket:Bucket"
OF_TENANT = f"urn:pulumi:acme::p::lakewright:index:Tenant$lakewright:index:TenantBucket${BUCKET}::lake"
OF_PROGRAM = f"urn:pulumi:acme::p::acme:index:Lake${BUCKET}::lake"
WAREHOUSE = "urn:pulumi:acme::p::pulumi-python:dynamic/lakekeeper:Warehouse::main"
OTHER_WAREHOUSE = "urn:pulumi:acme::p::pulumi-python:dynamic/lakekeeper:Warehouse::other"


@dataclass
class ScriptedEngine:
    """Takes a step for each resource, of which the checks of some adopt an object."""

    steps: dict[str, str]
    """Operation by URN."""
    adopted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    changes: dict[str, int] = field(default_factory=dict[str, int])

    def run(self, operation: Operation, on_event: Any, /) -> Result:
        for urn in self.adopted:
            check(urn, operation.environment)
        for urn, op in self.steps.items():
            metadata = {"op": op, "urn": urn, "type": urn.split("::")[2].rpartition("$")[2], "provider": ""}
            on_event(event("resourcePreEvent", {"metadata": metadata}))
            if urn in self.failed:
                on_event(event("resOpFailedEvent", {"metadata": metadata}))
            else:
                self.changes[op] = self.changes.get(op, 0) + 1
                on_event(event("resOutputsEvent", {"metadata": metadata}))
        body = {"resourceChanges": self.changes, "durationSeconds": 1, "maybeCorrupt": False, "PolicyPacks": {}}
        on_event(event("summaryEvent", body))
        return Result(0, changes=self.changes)


def event(kind: str, body: dict[str, Any]) -> EngineEvent:
    return EngineEvent.from_json({"sequence": 0, "timestamp": 0, kind: body})


def check(urn: str, environment: Mapping[str, str]) -> None:
    """Record an adoption as a provider's `check` does, in whose frames is the engine's request."""
    request = SimpleNamespace(urn=urn)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        record_adopted_resource()
    assert request.urn == urn


def run(engine: ScriptedEngine, verb: Any = "preview") -> tuple[dict[str, str], dict[str, int]]:
    """Return the operations by URN, and the counts."""
    report = OperationReport()
    operation = Operation(verb, PulumiProject(Path("Pulumi.yaml"), "p"), "acme")
    result = AdoptionReportingEngine(engine.run).run(operation, report.take)
    assert report.changes == result.changes
    assert all(step.done for step in report.steps)
    return {step.urn: step.op for step in report.steps}, result.changes


def test_adopted_resources_are_no_creations() -> None:
    engine = ScriptedEngine({WAREHOUSE: "create", OTHER_WAREHOUSE: "create"}, adopted=(WAREHOUSE,))
    assert run(engine) == ({WAREHOUSE: "adopt", OTHER_WAREHOUSE: "create"}, {"create": 1, "adopt": 1})


def test_imports_of_own_programs_are_no_adoptions() -> None:
    engine = ScriptedEngine({OF_TENANT: "import", OF_PROGRAM: "import"})
    assert run(engine) == ({OF_TENANT: "adopt", OF_PROGRAM: "import"}, {"import": 1, "adopt": 1})


def test_failed_adoption_is_not_counted() -> None:
    steps = {WAREHOUSE: "create", OTHER_WAREHOUSE: "create"}
    engine = ScriptedEngine(steps, adopted=(WAREHOUSE,), failed=(WAREHOUSE,))
    assert run(engine, "up") == ({WAREHOUSE: "adopt", OTHER_WAREHOUSE: "create"}, {"create": 1})


def test_only_creations_are_adoptions() -> None:
    engine = ScriptedEngine({WAREHOUSE: "update"}, adopted=(WAREHOUSE,))
    assert run(engine) == ({WAREHOUSE: "update"}, {"update": 1})


def test_leftover_variable_is_ignored(tmp_path: Path) -> None:
    check(WAREHOUSE, {FILE: str(tmp_path / "gone")})
    assert not (tmp_path / "gone").exists()
