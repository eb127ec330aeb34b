"""Which other resources must go first when one is deleted before it is replaced."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright_engine.deployment import Deployment
from lakewright_engine.difference import resource_diff
from lakewright_engine.model import Properties, ResourceState, Unknown
from lakewright_engine.urns import is_provider_type, split_reference

Dependent = tuple[ResourceState, list[str]]
"""A resource, and the keys for which it must be replaced."""


def dependent_replacements(deployment: Deployment, root: ResourceState, operated: set[str]) -> list[Dependent]:
    """Dependents that cannot live through the root's absence, in dependency order.

    A dependent must be replaced when its provider goes, when it is deleted with the root, or when its own
    provider says that unknown values in place of what it takes from the root would replace it.
    """
    condemned = {root.urn}
    found: list[Dependent] = []
    for state in _dependents(deployment.resources, root):
        if state.urn in operated or state.delete or not state.custom or state.external:
            continue
        if split_reference(state.provider)[0] in condemned or state.deleted_with in condemned:
            keys: list[str] = []
        else:
            inputs = _without_condemned(state, condemned)
            if inputs is None or is_provider_type(state.type):
                continue
            diff = resource_diff(deployment.provider_of(state), state.urn, state, inputs, state.ignore_changes)
            if not diff.replaces:
                continue
            keys = diff.replace_keys
        condemned.add(state.urn)
        found.append((state, keys))
    return found


def replaced_together(deployment: Deployment, urn: str, operated: set[str]) -> list[Dependent]:
    """Resources that name `urn` in replaceWith or deletedWith."""
    return [
        (state, [])
        for state in deployment.resources
        if state.urn not in operated and not state.delete and (urn in state.replace_with or state.deleted_with == urn)
    ]


def _dependents(resources: list[ResourceState], root: ResourceState) -> Iterator[ResourceState]:
    reached = {root.urn}
    after = False
    for state in resources:
        if state is root:
            after = True
        elif after and (dependencies(state) - {state.parent}) & reached:
            reached.add(state.urn)
            yield state


def dependencies(state: ResourceState) -> set[str]:
    """URNs of everything that must exist while the resource does."""
    urns = {*state.dependencies, state.parent, state.deleted_with, split_reference(state.provider)[0]}
    for more in state.property_dependencies.values():
        urns.update(more)
    urns.update(state.replace_with)
    return urns - {""}


def _without_condemned(state: ResourceState, condemned: set[str]) -> Properties | None:
    """The inputs with unknowns for what comes from condemned resources; None if nothing does."""
    inputs = dict(state.inputs)
    affected = False
    for key in inputs:
        if condemned.intersection(state.property_dependencies.get(key, ())):
            inputs[key] = Unknown()
            affected = True
    return inputs if affected else None
