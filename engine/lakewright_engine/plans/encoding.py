"""The steps and objects of a plan as JSON, with encrypted secrets."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

from lakewright_engine.model.errors import PlanError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import Diff
from lakewright_engine.plans.model import KnownObject, PlannedStep, PlanSteps
from lakewright_engine.plans.plan_file import PlanDocument
from lakewright_engine.state.checkpoint import decode_resource, encode_resource
from lakewright_engine.state.secrets import PassphraseManager


def encode_steps(plan: PlanSteps, manager: PassphraseManager) -> dict[str, Any]:
    """Return the members of a plan document that hold steps, objects and the seed."""

    def encode(state: ResourceState | None) -> dict[str, Any] | None:
        return encode_resource(state, manager) if state is not None else None

    return {
        "steps": [
            {
                "op": step.op,
                "urn": step.urn,
                "type": step.type,
                "diff": asdict(step.diff),
                "old": encode(step.old),
                "new": encode(step.new),
            }
            for step in plan.steps
        ],
        "objects": [
            {"exists": known_object.exists, "state": encode(known_object.state)} for known_object in plan.objects
        ],
        "seed": plan.seed.hex(),
        "secrets_provider": {"type": manager.kind, "state": {"salt": manager.salt}},
    }


def decode_steps(document: PlanDocument, manager: PassphraseManager) -> PlanSteps:
    """Return the steps of a verified document.

    Raises:
        PlanError: The document lacks a member.
    """

    def decode(body: dict[str, Any] | None) -> ResourceState | None:
        return decode_resource(body, document.stack, manager) if body is not None else None

    try:
        steps = [
            PlannedStep(
                step["op"], step["urn"], step["type"], _diff(step["diff"]), decode(step["old"]), decode(step["new"])
            )
            for step in document.body["steps"]
        ]
        objects = [
            KnownObject(decode_resource(known_object["state"], document.stack, manager), known_object["exists"])
            for known_object in document.body["objects"]
        ]
        seed = bytes.fromhex(document.body["seed"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanError(f"{document.file} is damaged: {type(error).__name__}: {error}") from error
    return PlanSteps(steps, objects, seed)


def _diff(body: dict[str, Any]) -> Diff:
    detailed = cast("dict[str, list[Any]] | None", body["detailed"])
    pairs = {path: (str(kind), bool(inputs)) for path, (kind, inputs) in detailed.items()} if detailed else None
    members: dict[str, Any] = {**body, "detailed": pairs}
    return Diff(**members)
