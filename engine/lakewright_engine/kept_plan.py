"""The plan that an operation saves or follows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from typing_extensions import override

from lakewright_engine.model.errors import PlanError
from lakewright_engine.operation import Operation, PlanSummary, Result
from lakewright_engine.plans import embedded
from lakewright_engine.plans.deleted_contents import (
    CONTENTS,
    DELETIONS,
    contents_to_json,
    count_deleted,
    refuse_changed_contents,
)
from lakewright_engine.plans.inputs import plan_inputs
from lakewright_engine.plans.model import PlanOptions
from lakewright_engine.plans.plan_file import PlanDocument, refuse_other_file
from lakewright_engine.plans.requirements import refuse_changed_state
from lakewright_engine.plans.session import FollowingSession, PlanSession, RecordingSession
from lakewright_engine.plans.state_version import state_version


class KeptPlan:
    """No plan: the operation is neither kept nor held to one."""

    def __init__(self, operation: Operation, session: PlanSession | None = None) -> None:
        """Take part in an operation."""
        self.operation = operation
        """The operation, with the options of the plan."""
        self.session = session or PlanSession()

    def refuse_changed_state(self) -> None:
        """Check the state, under the stack's lock. Raise PlanError if it is not that of the plan."""

    def complete(self, result: Result) -> Result:
        """Complete the result of the run."""
        return result

    def _export(self) -> dict[str, Any]:
        project, stack = self.operation.project, self.operation.stack
        return project.backend().export(project.name, stack)["deployment"]


class SavedPlan(KeptPlan):
    """The plan that a preview saves."""

    def __init__(self, operation: Operation, file: Path) -> None:
        """Note the versions of state and inputs before the preview."""
        self._recording = RecordingSession()
        super().__init__(operation, self._recording)
        self._file = file
        refuse_other_file(file)
        self._manager = operation.project.secrets(operation.stack)
        self._manager.unlock()
        self._state = state_version(self._export())
        self._inputs = self._current_inputs()

    @override
    def complete(self, result: Result) -> Result:
        operation = self.operation
        if result.exit:
            result.messages.append("warning: no plan was saved, because the preview failed")
            return result
        deployment, plan = self._export(), self._recording.plan
        deleted = {(step.urn, step.old.id) for step in plan.steps if step.op in DELETIONS and step.old is not None}
        result.deleted_contents = count_deleted(operation.count_contents, deployment, deleted)
        if state_version(self._export()) != self._state or self._current_inputs() != self._inputs:
            raise PlanError("state or program changed during the preview, so no plan was saved: run it again")
        header = embedded.plan_header(
            operation.project,
            operation.stack,
            engine=(embedded.ENGINE, embedded.engine_version()),
            options=plan_options(operation),
            state=self._state,
            inputs=self._inputs,
        )
        header[CONTENTS] = contents_to_json(result.deleted_contents)
        document = embedded.save(self._file, header, plan, result.changes, self._manager)
        result.plan = plan_summary(document)
        return result

    def _current_inputs(self) -> dict[str, str]:
        return {**plan_inputs(self.operation.project, self.operation.stack), **self.operation.plan_inputs}


class FollowedPlan(KeptPlan):
    """The plan that an update follows."""

    def __init__(self, operation: Operation, file: Path) -> None:
        """Open a plan, and check all that needs no lock."""
        document, steps = embedded.open_plan(file, operation.project, operation.stack, operation.plan_inputs)
        self._document = document
        self._following = FollowingSession(steps)
        super().__init__(replace(operation, **vars(document.options)), self._following)

    @override
    def refuse_changed_state(self) -> None:
        deployment = self._export()
        refuse_changed_state(self._document, deployment, self._find_use_time())
        refuse_changed_contents(self._document, deployment, self.operation.count_contents)

    @override
    def complete(self, result: Result) -> Result:
        if self._following.is_used:
            result.plan = plan_summary(self._document)
        return result

    def _find_use_time(self) -> str:
        """Return when an update followed this plan; empty if none did."""
        project, stack = self.operation.project, self.operation.stack
        for entry in project.backend().history(project.name, stack):
            environment = cast("dict[str, Any]", entry.get("environment") or {})
            if environment.get(embedded.PLAN_VARIABLE) == self._document.sha256:
                return embedded.format_seconds(entry.get("endTime") or 0)
        return ""


def create_kept_plan(operation: Operation) -> KeptPlan:
    """Return the plan of an operation. Raise PlanError if it cannot be used, before anything is touched."""
    if operation.save_plan is not None:
        return SavedPlan(operation, operation.save_plan)
    if operation.plan is not None:
        return FollowedPlan(operation, operation.plan)
    return KeptPlan(operation)


def plan_options(operation: Operation) -> PlanOptions:
    """Return the options of an operation that decide its steps."""
    return PlanOptions(
        refresh=operation.refresh,
        targets=operation.targets,
        target_dependents=operation.target_dependents,
        excludes=operation.excludes,
        exclude_dependents=operation.exclude_dependents,
        replace=operation.replace,
    )


def plan_summary(document: PlanDocument) -> PlanSummary:
    """Return the summary of a plan for results."""
    return PlanSummary(str(document.file), document.sha256, document.is_signed)
