"""Refresh the state: read every object again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from lakewright_engine.model.errors import DeploymentStoppedError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.model.urns import is_default_provider, is_provider_type
from lakewright_engine.steps.deployment import Deployment, now
from lakewright_engine.steps.object_read import read_object


def refresh(deployment: Deployment) -> None:
    """Refresh the deployment's resources. Objects that no longer exist are removed from the state."""
    refreshed = {id(state) for state in deployment.scope.select_refreshed(deployment.resources)}
    with ThreadPoolExecutor(max_workers=deployment.parallel, thread_name_prefix="refresh") as pool:
        refreshed_states = list(pool.map(partial(_refresh_resource, deployment, refreshed), deployment.resources))
    if deployment.stopped.is_set():
        return
    resources = _remove_dangling_references([state for state in refreshed_states if state is not None])
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
    read = read_object(deployment.get_provider(old), old, deployment.mark_secrets)
    if read.new is not None and read.is_unhealthy:
        reasons = "\n* ".join(read.new.init_errors)
        deployment.events.diagnostic("warning", f"Refreshed resource is in an unhealthy state:\n* {reasons}", old.urn)
    step.new, step.result, step.diff = read.new, read.result, read.diff.invert()
    if read.new is not None and read.is_modified:
        read.new.modified = now()


def _remove_dangling_references(resources: list[ResourceState]) -> list[ResourceState]:
    """Remove references to resources that no longer exist, and empty property dependencies, as the CLI does."""
    live_urns: set[str] = set()
    parents: dict[str, str] = {}
    result: list[ResourceState] = []
    for state in resources:
        kept_dependencies = {
            key: [urn for urn in urns if urn in live_urns] for key, urns in state.property_dependencies.items()
        }
        renewed = replace(
            state,
            dependencies=[urn for urn in state.dependencies if urn in live_urns],
            property_dependencies={key: urns for key, urns in kept_dependencies.items() if urns},
            replace_with=[urn for urn in state.replace_with if urn in live_urns],
            deleted_with=state.deleted_with if state.deleted_with in live_urns else "",
            parent=state.parent if state.parent in live_urns else parents.get(state.parent, ""),
        )
        live_urns.add(state.urn)
        parents[state.urn] = renewed.parent
        result.append(renewed)
    return result
