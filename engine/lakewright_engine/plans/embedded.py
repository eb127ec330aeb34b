"""Write and open the plans of the embedded engine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright_engine.model.errors import PlanError
from lakewright_engine.model.times import format_json_time
from lakewright_engine.plans.encoding import decode_steps, encode_steps
from lakewright_engine.plans.inputs import plan_inputs
from lakewright_engine.plans.model import PlanOptions, PlanSteps, StateVersion
from lakewright_engine.plans.plan_file import SIGNATURE_KEY, PlanDocument, read_plan, write_plan
from lakewright_engine.plans.requirements import refuse_changed_inputs, refuse_foreign_plan
from lakewright_engine.state.secrets import PassphraseManager

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

ENGINE = "embedded"
PLAN_VARIABLE = "lakewright.plan"
"""Key in the `environment` of a history entry: the hash of the plan that the update followed."""


def engine_version() -> str:
    """Return the version of this engine."""
    return version("lakewright-engine")


def format_seconds(seconds: int) -> str:
    """Return a Unix time as RFC 3339 in UTC."""
    return format_json_time(datetime.fromtimestamp(seconds, UTC))


def plan_header(
    project: PulumiProject,
    stack: str,
    *,
    engine: tuple[str, str],
    options: PlanOptions,
    state: StateVersion,
    inputs: Mapping[str, str],
) -> dict[str, Any]:
    """Return the members that every plan document has.

    Args:
        project: The project.
        stack: The stack's name.
        engine: Name and version of the engine.
        options: The options of the preview.
        state: The version of the state before the preview.
        inputs: Hashes of the preview's inputs.
    """
    return {
        "engine": {"name": engine[0], "version": engine[1]},
        "project": project.name,
        "stack": stack,
        "created": format_seconds(int(time.time())),
        "options": options.to_json(),
        "state": {"hash": state.hash, "time": state.time},
        "inputs": dict(inputs),
    }


def save(
    file: Path, header: dict[str, Any], plan: PlanSteps, changes: Mapping[str, int], manager: PassphraseManager
) -> PlanDocument:
    """Write a plan. Raise PlanError if that fails."""
    body = {**header, "changes": dict(changes), **encode_steps(plan, manager)}
    return write_plan(file, body, manager.derive_key(SIGNATURE_KEY))


def open_plan(
    file: Path, project: PulumiProject, stack: str, inputs: Mapping[str, str]
) -> tuple[PlanDocument, PlanSteps]:
    """Open a plan of this engine for an update of a stack.

    Args:
        file: The plan.
        project: The project.
        stack: The stack's name.
        inputs: Hashes of inputs that the project does not name, such as the environment.

    Raises:
        PlanError: The plan is damaged, tampered with, of another stack, or its inputs have changed.
        SecretsError: The passphrase is missing or wrong.
    """
    document = read_plan(file)
    refuse_foreign_plan(document, engine=ENGINE, version=engine_version(), project=project.name, stack=stack)
    if not document.salt:
        raise PlanError(f"{file} is damaged: it names no secrets provider")
    manager = PassphraseManager.from_salt(document.salt, stack)
    document.verify(manager.derive_key(SIGNATURE_KEY))
    refuse_changed_inputs(document, {**plan_inputs(project, stack), **inputs})
    return document, decode_steps(document, manager)
