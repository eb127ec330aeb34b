"""Refuse a plan that does not belong to an update, or whose state or inputs have moved since it was made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright_engine.model.errors import PlanError
from lakewright_engine.plans.inputs import list_changed_inputs
from lakewright_engine.plans.plan_file import NEW_PLAN_HINT, PlanDocument
from lakewright_engine.plans.state_version import state_version

PLAN_REJECTED_HINT = f"Nothing was changed. {NEW_PLAN_HINT}"


def refuse_foreign_plan(document: PlanDocument, *, engine: str, version: str, project: str, stack: str) -> None:
    """Refuse a plan for another engine, project or stack.

    Raises:
        PlanError: The plan is for something else. The message names both.
    """
    if document.engine != engine:
        raise PlanError(
            f"{document.file} was made by the engine `{document.engine}`, not by `{engine}`. "
            f"Use --engine {document.engine}, or make the plan again with --engine {engine}"
        )
    for noun, planned, actual in (("project", document.project, project), ("stack", document.stack, stack)):
        if planned != actual:
            raise PlanError(
                f"{document.file} is a plan of {noun} '{planned}', not of {noun} '{actual}'. {PLAN_REJECTED_HINT}"
            )
    if document.engine_version != version:
        raise PlanError(
            f"{document.file} was made by version {document.engine_version} of the engine `{engine}`; this is version "
            f"{version}. {PLAN_REJECTED_HINT}"
        )


def refuse_changed_inputs(document: PlanDocument, actual: Mapping[str, str]) -> None:
    """Refuse a plan whose spec, environment, program or packages have changed.

    Raises:
        PlanError: Something changed. The message names the files.
    """
    if names := list_changed_inputs(document.inputs, actual):
        raise PlanError(f"{document.file}: changed since the plan was made: {names}. {PLAN_REJECTED_HINT}")


def refuse_changed_state(document: PlanDocument, deployment: dict[str, Any], used: str) -> None:
    """Refuse a plan if the stack's state has changed.

    Args:
        document: The plan.
        deployment: The exported deployment.
        used: The time at which an update used this plan; empty if none did.

    Raises:
        PlanError: The state differs from the state that the plan starts from.
    """
    planned, actual = document.state, state_version(deployment)
    if planned == actual:
        return
    if used:
        raise PlanError(f"{document.file} was already used at {used}; a plan can be used once. {PLAN_REJECTED_HINT}")
    raise PlanError(
        f"{document.file}: the state of stack '{document.stack}' has changed since the plan was made: it was written "
        f"at {actual.time or 'an unknown time'}, the plan starts from the state of {planned.time or 'a new stack'}. "
        f"{PLAN_REJECTED_HINT}"
    )
