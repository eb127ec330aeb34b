"""The dependents that must be deleted first when a resource is deleted before it is replaced."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.properties import redact
from lakewright_engine.model.resources import Properties, ResourceState, Unknown
from lakewright_engine.model.step import Diff
from lakewright_engine.model.urns import is_provider_type, split_reference
from lakewright_engine.providers.provider import public_config
from lakewright_engine.registration.desired_state import DesiredState
from lakewright_engine.state.integrity import references
from lakewright_engine.steps.deployment import Deployment
from lakewright_engine.steps.resource_diff import apply_replace_on_changes, resource_diff

Dependent = tuple[ResourceState, list[str]]
"""A resource, and the keys that require its replacement."""


def check_replaceable(
    deployment: Deployment, desired: DesiredState, old: ResourceState, new: ResourceState, diff: Diff
) -> None:
    """Refuse to replace a protected or imported resource. A preview reports it and continues.

    Raises:
        ProgramError: The resource must not be replaced, and the run is not a preview.
    """
    if new.protect and old.protect:
        message = (
            f'unable to replace resource "{new.urn}"\nas it is currently marked for protection. To unprotect the '
            "resource, remove the `protect` flag from the resource in your program and run `up`"
        )
        if not deployment.dry_run:
            raise ProgramError(message)
        deployment.report_error(message, new.urn)
    if desired.import_id:
        message = (
            "previously-imported resources that still specify an ID may not be replaced; "
            "please remove the `import` declaration from your program;\n" + _format_replaced_values(old, new, diff)
        )
        if not deployment.dry_run:
            raise ProgramError(message)
        deployment.events.diagnostic("warning", message, new.urn)


def _format_replaced_values(old: ResourceState, new: ResourceState, diff: Diff) -> str:
    """Return a line for each property that requires the replacement, with redacted secrets."""
    return "\n".join(
        f"{key}: {redact(old.inputs.get(key))} => {redact(new.inputs.get(key))}" for key in diff.replace_keys
    )


def dependent_replacements(deployment: Deployment, root: ResourceState, decided: set[str]) -> list[Dependent]:
    """Return the dependents that must be replaced with the root, in the snapshot's order.

    A dependent must be replaced if its provider is deleted, if it is `deletedWith` the root, or if its provider
    would replace it for unknown values in place of the inputs from the root.

    Args:
        deployment: The run.
        root: The resource to delete before it is replaced.
        decided: URNs with a planned step: they no longer depend on the root.
    """
    deleted = {root.urn}
    dependents: list[Dependent] = []
    for state in _dependents(deployment.resources, root, decided):
        keys = _find_replace_keys(deployment, state, deleted)
        if keys is not None:
            deleted.add(state.urn)
            dependents.append((state, keys))
    return dependents


def _find_replace_keys(deployment: Deployment, state: ResourceState, deleted: set[str]) -> list[str] | None:
    """Return the properties that require the replacement of a dependent; None if it is kept."""
    if not state.custom or state.external:
        return None
    if split_reference(state.provider)[0] in deleted or state.deleted_with in deleted:
        return []
    inputs = _with_unknowns(state, deleted)
    if inputs is None:
        return None
    if is_provider_type(state.type):
        provider = deployment.registry.load(f"{state.urn}::{state.id}", state.type, state.inputs)
        diff = provider.diff_config(state.urn, public_config(state.inputs), state.outputs, public_config(inputs))
    else:
        provider = deployment.get_provider(state)
        diff = resource_diff(provider, state.urn, state, inputs, state.ignore_changes)
    diff = apply_replace_on_changes(diff, state.replace_on_changes, [])
    return diff.replace_keys if diff.replaces else None


def list_joint_replacements(deployment: Deployment, urn: str, decided: set[str]) -> list[Dependent]:
    """Return the resources that name `urn` in replaceWith or deletedWith."""
    return [
        (state, [])
        for state in deployment.resources
        if state.urn not in decided and not state.delete and (urn in state.replace_with or state.deleted_with == urn)
    ]


def _dependents(resources: list[ResourceState], root: ResourceState, decided: set[str]) -> Iterator[ResourceState]:
    reached = {root.urn}
    after = False
    for state in resources:
        if state is root:
            after = True
        elif after and state.urn not in decided and _list_required_urns(state) & reached:
            reached.add(state.urn)
            yield state


def _list_required_urns(state: ResourceState) -> set[str]:
    """Return the URNs that a resource depends on, without its parent unless that is also a dependency."""
    urns = {urn for role, urn in references(state) if role != "parent"}
    return urns | {split_reference(state.provider)[0]} - {""}


def _with_unknowns(state: ResourceState, deleted: set[str]) -> Properties | None:
    """Return the inputs with unknown values in place of values from deleted resources; None if there are none."""
    inputs = dict(state.inputs)
    affected = False
    for key in inputs:
        if deleted.intersection(state.property_dependencies.get(key, ())):
            inputs[key] = Unknown()
            affected = True
    return inputs if affected else None
