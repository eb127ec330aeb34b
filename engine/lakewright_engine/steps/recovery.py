"""Recover objects of interrupted creations in operations that do not run the program."""

from __future__ import annotations

from lakewright_engine.model.errors import EngineError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.state.interrupted_creations import describe_removal, is_dynamic
from lakewright_engine.state.natural_ids import natural_id
from lakewright_engine.steps.created_objects import find_created_object, list_mismatched_properties
from lakewright_engine.steps.deployment import Deployment

_WITHOUT_OBJECT = frozenset(
    f"pulumi-python:dynamic/lakekeeper:{kind}"
    for kind in ("BucketRemoval", "DeletionGuard", "ExternalId", "KeyRemoval", "TenantRecord")
)
"""Types whose creation makes no object outside the state. An interrupted creation leaves nothing to find."""


def refuse_unrecoverable(deployment: Deployment) -> None:
    """Refuse interrupted creations whose objects a destroy cannot find, if `up` has not run since.

    Raises:
        EngineError: There are such creations. Destroying would lose track of their objects.
    """
    lost = [op.resource for op in deployment.journal.pending_creations if _is_lost(deployment, op.resource)]
    if lost:
        names = "\n".join(f"  * {creation.urn}" for creation in lost)
        raise EngineError(
            f"interrupted creations may have left objects that `destroy` cannot find:\n{names}\n"
            "Nothing was destroyed. Run `up` first, which adopts them if their providers can find them, and then "
            f"`destroy`. If `up` cannot succeed, {describe_removal(deployment.stack)}"
        )


def _is_lost(deployment: Deployment, interrupted: ResourceState) -> bool:
    if natural_id(interrupted.type, interrupted.inputs):
        return deployment.find_provider(interrupted.provider) is None
    # No `up` can find another object without an id: a destroy warns, and keeps the creation in the state.
    return is_dynamic(interrupted.type) and interrupted.type not in _WITHOUT_OBJECT


def recover_created_objects(deployment: Deployment) -> None:
    """Add the objects of interrupted creations to the state. `up` does so when the program registers them."""
    for pending in deployment.journal.pending_creations:
        interrupted = pending.resource
        if is_dynamic(interrupted.type):
            continue
        if not natural_id(interrupted.type, interrupted.inputs):
            _warn_of_lost_object(deployment, interrupted.urn, "its id is not known")
        elif deployment.find_provider(interrupted.provider) is None:
            _warn_of_lost_object(deployment, interrupted.urn, "its provider is no longer in the state")
        else:
            _recover_created_object(deployment, interrupted)
            deployment.journal.remove_pending(pending)


def _warn_of_lost_object(deployment: Deployment, urn: str, reason: str) -> None:
    message = (
        f"an interrupted run may have created an object that cannot be looked up: {reason}. The creation remains "
        f"pending in the state. To clear it, {describe_removal(deployment.stack)}"
    )
    deployment.events.diagnostic("warning", message, urn)


def _recover_created_object(deployment: Deployment, interrupted: ResourceState) -> None:
    provider = deployment.get_provider(interrupted)
    live_object = find_created_object(provider, interrupted)
    if live_object is None:
        return
    old_state = deployment.olds.get(interrupted.urn)
    mismatched = list_mismatched_properties(provider, interrupted, live_object)
    if mismatched:
        message = (
            f"{live_object.id} is not adopted: it differs from the object of the interrupted run in "
            f"{', '.join(mismatched)}"
        )
        deployment.events.diagnostic("warning", message, interrupted.urn)
    elif old_state is None or old_state.id != live_object.id:
        live_object.delete = old_state is not None
        deployment.set_state([*deployment.resources, live_object])
        deployment.journal.rebase(deployment.resources)
