"""What interrupted creations left, for verbs that run no program: taken into the state, or a reason to stop."""

from __future__ import annotations

from lakewright_engine.model.errors import EngineError
from lakewright_engine.steps.created_objects import find_created_object, mismatched_properties, natural_id
from lakewright_engine.steps.deployment import Deployment


def refuse_unrecoverable(deployment: Deployment) -> None:
    """Only the program's provider can tell what some interrupted creations left: destroying would forget it."""
    lost = [urn for urn, left in deployment.pending_creates.items() if not natural_id(left.type, left.inputs)]
    if lost:
        names = "\n".join(f"  * {urn}" for urn in lost)
        raise EngineError(
            f"interrupted creations may have left objects that `destroy` cannot find:\n{names}\n"
            "Nothing was destroyed. Run `up` first, which takes them over, and then `destroy`. Where no `up` can, see "
            "that the objects are gone, and forget them: "
            f"`lakewright stack export --stack {deployment.stack} --file state.json`, take them out of "
            f"`pending_operations`, and `lakewright stack import --stack {deployment.stack} --file state.json`"
        )


def recover_created_objects(deployment: Deployment) -> None:
    """Takes what interrupted creations left into the state, where it is found; `up` does so as it registers."""
    for urn, left in deployment.pending_creates.items():
        if not natural_id(left.type, left.inputs):
            continue
        provider = deployment.provider_of(left)
        found = find_created_object(provider, left)
        known = deployment.olds.get(urn)
        strange = mismatched_properties(provider, left, found) if found is not None else []
        if found is not None and strange:
            message = (
                f"{found.id} is left alone: the interrupted run would have made it with other {', '.join(strange)}"
            )
            deployment.events.diagnostic("warning", message, urn)
        elif found is not None and (known is None or known.id != found.id):
            found.delete = known is not None
            deployment.use([*deployment.resources, found])
            deployment.journal.rebase(deployment.resources)
        deployment.journal.settle(urn)
