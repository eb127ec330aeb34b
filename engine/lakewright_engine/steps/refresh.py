"""Refresh the state: read every object again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from lakewright_engine.model.errors import DeploymentStoppedError, InitializationError
from lakewright_engine.model.properties import is_equal, mark_secrets
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep, Diff
from lakewright_engine.model.urns import is_default_provider, is_provider_type
from lakewright_engine.steps.deployment import Deployment, now
from lakewright_engine.steps.resource_diff import resource_diff


def refresh(deployment: Deployment) -> None:
    """Refresh the deployment's resources. Objects that no longer exist are removed from the state."""
    refreshed = {id(state) for state in deployment.scope.refreshed(deployment.resources)}
    with ThreadPoolExecutor(max_workers=deployment.parallel, thread_name_prefix="refresh") as pool:
        found = list(pool.map(partial(_refresh_resource, deployment, refreshed), deployment.resources))
    if deployment.stopped.is_set():
        return
    resources = _remove_dangling_references([state for state in found if state is not None])
    deployment.set_state(resources)
    deployment.journal.rebase(resources)


def _refresh_resource(deployment: Deployment, refreshed: set[int], old: ResourceState) -> ResourceState | None:
    if is_default_provider(old.urn) or id(old) not in refreshed:
        return old
    step = DeploymentStep("refresh", old, old, logical=False, result="same")

    def apply() -> None:
        if not old.custom or is_provider_type(old.type) or old.pending_replacement:
            return
        _read(deployment, step, old)

    try:
        deployment.run(step, apply)
    except DeploymentStoppedError:
        return old
    return step.new


def _read(deployment: Deployment, step: DeploymentStep, old: ResourceState) -> None:
    provider = deployment.provider_of(old)
    init_errors: list[str] = []
    try:
        found = provider.read(old.urn, old.id, old.inputs, old.outputs, old.custom_timeouts.get("read", 0))
        object_id, inputs, outputs = found.id, found.inputs, found.outputs
    except InitializationError as failed:
        object_id, inputs, outputs, init_errors = failed.object_id, failed.inputs, failed.outputs, failed.reasons
        reasons = "\n* ".join(failed.reasons)
        deployment.events.diagnostic("warning", f"Refreshed resource is in an unhealthy state:\n* {reasons}", old.urn)
    if not object_id:
        step.new, step.result = None, "delete"
        return
    # Also for a provider that accepts secrets, which may still return them in plain text.
    kept_inputs = mark_secrets(inputs, old.inputs) if inputs is not None else old.inputs
    new = replace(old, id=object_id, outputs=outputs, inputs=kept_inputs, init_errors=init_errors)
    deployment.mark_secrets(new)
    unchanged = is_equal(dict(new.outputs), dict(old.outputs))
    if not unchanged or not is_equal(dict(new.inputs), dict(old.inputs)):
        new.modified = now()
    elif inputs is not None and object_id == old.id and init_errors == old.init_errors:
        # Everything is as in the state, except perhaps secret marks: no diff from the provider is needed.
        step.new = new if new != old else old
        return
    step.new = new
    if old.external:
        step.result = "same" if unchanged else "update"
        return
    # The diff leads back to the state; inverted, it is the change of the object.
    diff = resource_diff(provider, new.urn, new, old.inputs, old.ignore_changes)
    step.diff = diff.inverted() if diff.changes == "some" else Diff("none")
    step.result = "update" if diff.changes == "some" else "same"


def _remove_dangling_references(resources: list[ResourceState]) -> list[ResourceState]:
    """Remove references to resources that no longer exist, and empty property dependencies, as the CLI does."""
    known: set[str] = set()
    parents: dict[str, str] = {}
    result: list[ResourceState] = []
    for state in resources:
        kept = {key: [urn for urn in urns if urn in known] for key, urns in state.property_dependencies.items()}
        renewed = replace(
            state,
            dependencies=[urn for urn in state.dependencies if urn in known],
            property_dependencies={key: urns for key, urns in kept.items() if urns},
            replace_with=[urn for urn in state.replace_with if urn in known],
            deleted_with=state.deleted_with if state.deleted_with in known else "",
            parent=state.parent if state.parent in known else parents.get(state.parent, ""),
        )
        known.add(state.urn)
        parents[state.urn] = renewed.parent
        result.append(renewed)
    return result
