"""Deletes what is no longer wanted, each object only after everything that depends on it."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

from lakewright_engine.deployment import Deployment
from lakewright_engine.errors import EngineError, Stopped, UnsupportedFeature
from lakewright_engine.events import Step
from lakewright_engine.model import ResourceState
from lakewright_engine.replacement import dependencies


def delete_unwanted(deployment: Deployment, wanted: set[str]) -> None:
    """Deletes objects that a replacement has left, and those whose URN is not in `wanted`.

    After a failed deletion, those that were ready at the same time still go; what they stand on stays.
    """
    steps = [step for state in deployment.resources if (step := _step(state, wanted)) is not None]
    if not steps:
        return
    deployment.condemn({step.urn for step in steps if step.op in ("delete", "discard")})
    waiting = _dependents(steps)
    with ThreadPoolExecutor(max_workers=deployment.parallel, thread_name_prefix="delete") as pool:
        ended: SimpleQueue[tuple[int, Future[None]]] = SimpleQueue()

        def start_ready() -> int:
            ready = [index for index, dependents in waiting.items() if not dependents]
            for index in ready:
                del waiting[index]
                future = pool.submit(_delete, deployment, steps[index])
                future.add_done_callback(lambda done, index=index: ended.put((index, done)))
            return len(ready)

        running = start_ready()
        while running:
            index, future = ended.get()
            future.result()
            running -= 1
            for dependents in waiting.values():
                dependents.discard(index)
            if not deployment.stopped.is_set():
                running += start_ready()


def refuse_delete_hooks(deployment: Deployment) -> None:
    """Raises UnsupportedFeature for hooks of deletions: a destroy runs no program that could serve them."""
    bound = {
        state.urn: [*state.hooks.get("BeforeDelete", ()), *state.hooks.get("AfterDelete", ())]
        for state in deployment.resources
    }
    bound = {urn: names for urn, names in bound.items() if names}
    for urn, names in bound.items():
        message = f"Resource has delete hooks registered, but the program is not running. Hooks: {', '.join(names)}"
        deployment.events.diagnostic("error", message, urn)
    if bound:
        raise UnsupportedFeature(
            "a destroy does not run the program, and so cannot run delete hooks: delete these resources with an up of "
            "a program that only registers the hooks, or use the Pulumi CLI (`pulumi destroy --run-program`)"
        )


def _step(state: ResourceState, wanted: set[str]) -> Step | None:
    if state.delete:
        return Step("discard-replaced" if state.external else "delete-replaced", state, None, logical=False)
    if state.urn in wanted:
        return None
    if state.pending_replacement:
        return Step("remove-pending-replace", state, None)
    return Step("discard" if state.external else "delete", state, None)


def _delete(deployment: Deployment, step: Step) -> None:
    # A deletion that was ready when another failed is carried out all the same, as the CLI does.
    try:
        deployment.delete(step, even_if_stopped=True)
    except Stopped:
        return
    except EngineError as error:
        deployment.fail(str(error), step.urn)


def _dependents(steps: list[Step]) -> dict[int, set[int]]:
    """For each step, the indexes of those that must be through before it."""
    by_urn: dict[str, list[int]] = {}
    for index, step in enumerate(steps):
        by_urn.setdefault(step.urn, []).append(index)
    dependents: dict[int, set[int]] = {index: set() for index in range(len(steps))}
    for index, step in enumerate(steps):
        for urn in dependencies(step.state):
            for target in by_urn.get(urn, ()):
                if target != index:
                    dependents[target].add(index)
    return dependents
