"""Delete resources that the program no longer registers, and objects that replacements left."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

from lakewright_engine.model.errors import (
    DeploymentStoppedError,
    EngineError,
    ProtectedResourceError,
    UnsupportedFeatureError,
)
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.planning.deletion_order import Dependencies, deletion_batches
from lakewright_engine.planning.targeted_deletes import list_untargeted_urns, refuse_implied_deletes
from lakewright_engine.planning.untargeted import report_unchanged
from lakewright_engine.state.natural_ids import natural_id
from lakewright_engine.steps.deployment import Deployment


def delete_unregistered(deployment: Deployment, registered_urns: set[str]) -> None:
    """Delete objects that a replacement has left, and resources whose URN is not in `registered_urns`.

    As on the CLI: after a failed deletion, the deletions of its batch that have begun are finished, and no further
    deletion begins. A protected resource is kept with everything that it depends on, and so is the provider of an
    interrupted creation, with which a later run looks up the object.
    """
    untargeted = list_untargeted_urns(deployment)
    needed = Dependencies(deployment.resources)
    steps = [
        step
        for state in deployment.resources
        if state.urn not in untargeted and (step := _deletion_step(deployment, state, registered_urns)) is not None
    ]
    awaited_ids = _list_awaited(deployment, needed, steps)
    steps = [step for step in steps if id(step.state) not in awaited_ids]
    refuse_implied_deletes(deployment, steps)
    deployment.observer.check_deletions(steps)
    report_unchanged(deployment, [state for state in deployment.resources if state.urn in untargeted - registered_urns])
    deployment.mark_deleted({step.urn for step in steps})
    by_state = {id(step.state): step for step in steps}
    kept_ids: set[int] = set()
    with ThreadPoolExecutor(max_workers=deployment.parallel, thread_name_prefix="delete") as pool:
        for batch in deletion_batches(needed, [step.state for step in steps]):
            deployment.check_running()
            ready = [by_state[id(state)] for state in batch if id(state) not in kept_ids]
            results = pool.map(partial(_delete, deployment), ready, count())
            for step, is_protected in zip(ready, results, strict=True):
                if is_protected:
                    kept_ids |= {id(state) for state in needed.list_all(step.state)}


def check_nothing_left(deployment: Deployment) -> None:
    """Raise an error if a destroy has left resources in the state.

    Raises:
        EngineError: The state still has resources.
    """
    remaining_states = deployment.journal.snapshot().resources
    if remaining_states and not deployment.scope.is_limited and not deployment.dry_run and not deployment.failed:
        names = "\n".join(f"  * {state.urn}" for state in remaining_states)
        raise EngineError(
            f"the destroy has left {len(remaining_states)} resource(s) in the state; run it again:\n{names}"
        )


def refuse_delete_hooks(deployment: Deployment) -> None:
    """Raise UnsupportedFeatureError if resources have delete hooks: a destroy runs no program that could serve them."""
    bound = {
        state.urn: [*state.hooks.get("BeforeDelete", ()), *state.hooks.get("AfterDelete", ())]
        for state in deployment.resources
    }
    bound = {urn: names for urn, names in bound.items() if names}
    for urn, names in bound.items():
        message = f"Resource has delete hooks registered, but the program is not running. Hooks: {', '.join(names)}"
        deployment.events.diagnostic("error", message, urn)
    if bound:
        raise UnsupportedFeatureError(
            "a destroy does not run the program and cannot run delete hooks: delete these resources with an up of a "
            "program that only registers the hooks, or use the Pulumi CLI (`pulumi destroy --run-program`)"
        )


def _deletion_step(deployment: Deployment, state: ResourceState, registered_urns: set[str]) -> DeploymentStep | None:
    if id(state) in deployment.deleted_early:
        return None
    if state.delete:
        return DeploymentStep("discard-replaced" if state.external else "delete-replaced", state, None, logical=False)
    if state.urn in registered_urns:
        return None
    if state.pending_replacement:
        return DeploymentStep("remove-pending-replace", state, None, logical=False)
    return DeploymentStep("discard" if state.external else "delete", state, None)


def _list_awaited(deployment: Deployment, needed: Dependencies, steps: list[DeploymentStep]) -> set[int]:
    """Return the identities of states that the lookups of interrupted creations need. Report the providers."""
    creations = {
        op.resource.provider: op.resource.urn
        for op in deployment.journal.pending_creations
        if natural_id(op.resource.type, op.resource.inputs)
    }
    awaited_ids: set[int] = set()
    for step in steps:
        creation = creations.get(f"{step.urn}::{step.state.id}")
        if creation is None:
            continue
        awaited_ids |= {id(state) for state in (step.state, *needed.list_all(step.state))}
        message = (
            "the provider is not deleted: it is needed to look up the object of the interrupted creation of "
            f"{creation}. Run `lakewright refresh --stack {deployment.stack}`, and then this command again"
        )
        deployment.events.diagnostic("warning", message, step.urn)
    return awaited_ids


def _delete(deployment: Deployment, step: DeploymentStep, position: int) -> bool:
    """Delete an object. Return whether it is protected and was kept.

    As on the CLI, a failed deletion does not stop the deletions that begin with it, one on each worker.

    Args:
        deployment: The run.
        step: The deletion.
        position: The number of deletions before it in its batch.
    """
    try:
        deployment.delete(step, even_if_stopped=position < deployment.parallel)
    except DeploymentStoppedError:
        return False
    except ProtectedResourceError:
        return True
    except EngineError as error:
        deployment.fail(str(error), step.urn)
    return False
