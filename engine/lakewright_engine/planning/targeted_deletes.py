"""The resources that an operation with `--target` or `--exclude` may delete, by the rules of the Pulumi CLI."""

from __future__ import annotations

from collections.abc import Sequence

from lakewright_engine.model.errors import DeploymentStoppedError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.planning.deletion_order import Dependencies
from lakewright_engine.steps.deployment import Deployment
from lakewright_engine.steps.targets import TargetScope, list_required_urns


def list_untargeted_urns(deployment: Deployment) -> set[str]:
    """Return the URNs of resources that the operation must not delete."""
    scope, resources = deployment.scope, deployment.resources
    if scope.targets:
        return {state.urn for state in resources} - _targets_and_dependents(scope, resources)
    return _list_excluded_urns(scope, resources) if scope.excludes else set()


def refuse_implied_deletes(deployment: Deployment, steps: Sequence[DeploymentStep]) -> None:
    """Refuse to delete resources that only depend on a target, unless dependents are targeted too.

    Raises:
        DeploymentStoppedError: There are such resources. A preview reports them and continues.
    """
    scope = deployment.scope
    if not scope.targets or scope.target_dependents:
        return
    implied = sorted({step.urn for step in steps if not scope.targets.matches(step.urn)})
    for urn in implied:
        message = (
            f"Resource '{urn}' will be destroyed but was not specified in --target list.\n"
            "Either include resource in --target list or pass --target-dependents to proceed."
        )
        deployment.report_error(message, urn)
    if implied and not deployment.dry_run:
        deployment.stopped.set()
        raise DeploymentStoppedError


def _targets_and_dependents(scope: TargetScope, resources: Sequence[ResourceState]) -> set[str]:
    reached: set[str] = set()
    for state in resources:
        if scope.targets.matches(state.urn) or list_required_urns(state) & reached:
            reached.add(state.urn)
    return reached


def _list_excluded_urns(scope: TargetScope, resources: Sequence[ResourceState]) -> set[str]:
    """Return the excluded resources, their dependencies, and with `exclude_dependents` their dependents."""
    needed = Dependencies(resources)
    dependents: list[set[int]] = [set() for _ in resources]
    if scope.exclude_dependents:
        for position in range(len(resources)):
            for other in needed.list_direct(position):
                dependents[other].add(position)
    positions: set[int] = set()
    frontier = [position for position, state in enumerate(resources) if scope.excludes.matches(state.urn)]
    while frontier:
        position = frontier.pop()
        if position not in positions:
            positions.add(position)
            frontier.extend(needed.list_direct(position) | dependents[position])
    live = {state.urn for state in resources if not state.delete}
    return {resources[position].urn for position in positions} & live
