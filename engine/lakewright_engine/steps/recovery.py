"""Recover objects of interrupted creations in operations that do not run the program."""

from __future__ import annotations

from lakewright_engine.model.errors import EngineError
from lakewright_engine.steps.created_objects import find_created_object, list_mismatched_properties, natural_id
from lakewright_engine.steps.deployment import Deployment

_WITHOUT_OBJECT = frozenset(
    f"pulumi-python:dynamic/lakekeeper:{kind}"
    for kind in ("BucketRemoval", "DeletionGuard", "ExternalId", "KeyRemoval", "TenantRecord")
)
"""Types whose creation makes no object outside the state. An interrupted creation leaves nothing to find."""


def refuse_unrecoverable(deployment: Deployment) -> None:
    """Refuse interrupted creations whose objects only the program's provider can find.

    Raises:
        EngineError: There are such creations. Destroying would lose track of their objects.
    """
    lost = [
        urn
        for urn, interrupted in deployment.pending_creates.items()
        if interrupted.type not in _WITHOUT_OBJECT and not natural_id(interrupted.type, interrupted.inputs)
    ]
    if lost:
        names = "\n".join(f"  * {urn}" for urn in lost)
        raise EngineError(
            f"interrupted creations may have left objects that `destroy` cannot find:\n{names}\n"
            "Nothing was destroyed. Run `up` first, which adopts them, and then `destroy`. If `up` cannot succeed, "
            "make sure that the objects do not exist and remove them from the state: "
            f"`lakewright stack export --stack {deployment.stack} --file state.json`, delete them from "
            f"`pending_operations`, and `lakewright stack import --stack {deployment.stack} --file state.json`"
        )


def recover_created_objects(deployment: Deployment) -> None:
    """Add the objects of interrupted creations to the state. `up` does so when the program registers them."""
    for urn, interrupted in deployment.pending_creates.items():
        if not natural_id(interrupted.type, interrupted.inputs):
            continue
        provider = deployment.get_provider(interrupted)
        live_object = find_created_object(provider, interrupted)
        old_state = deployment.olds.get(urn)
        mismatched = list_mismatched_properties(provider, interrupted, live_object) if live_object is not None else []
        if live_object is not None and mismatched:
            message = (
                f"{live_object.id} is not adopted: it differs from the object of the interrupted run in "
                f"{', '.join(mismatched)}"
            )
            deployment.events.diagnostic("warning", message, urn)
        elif live_object is not None and (old_state is None or old_state.id != live_object.id):
            live_object.delete = old_state is not None
            deployment.set_state([*deployment.resources, live_object])
            deployment.journal.rebase(deployment.resources)
        deployment.journal.remove_pending(urn)
