"""The objects that a plan changes, as their servers have them, and what moved there since the plan was made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from lakewright_engine.display.property_diff import server_managed_paths
from lakewright_engine.model.errors import EngineError, PlanError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.urns import is_provider_type, urn_name
from lakewright_engine.plans.comparison import first_mismatch
from lakewright_engine.plans.model import KnownObject
from lakewright_engine.providers.registry import BUILTIN
from lakewright_engine.steps.deployment import Deployment
from lakewright_engine.steps.object_read import read_object

_MAX_LINES = 20


def read_objects(deployment: Deployment, states: Sequence[ResourceState]) -> list[KnownObject]:
    """Read objects from their servers. Components, providers and deleted objects have nothing to read.

    Raises:
        PlanError: An object cannot be read.
    """
    readable = [state for state in states if _is_on_server(state)]
    with ThreadPoolExecutor(max_workers=deployment.parallel, thread_name_prefix="plan-read") as pool:
        return list(pool.map(partial(_read, deployment), readable))


def list_refreshed_objects(before: Sequence[ResourceState], after: Sequence[ResourceState]) -> list[KnownObject]:
    """Return the objects that a refresh has read, including missing objects."""
    live_keys = {(state.urn, state.id) for state in after}
    missing_states = [state for state in before if _is_on_server(state) and (state.urn, state.id) not in live_keys]
    return [KnownObject(_to_known_state(state), exists=True) for state in after if _is_on_server(state)] + [
        KnownObject(replace(_to_known_state(state), outputs={}), exists=False) for state in missing_states
    ]


def refuse_moved(planned: Sequence[KnownObject], live_objects: Sequence[KnownObject]) -> None:
    """Compare the objects on the servers with their state when the plan was made.

    Raises:
        PlanError: One of them differs. The message names the resource and the property.
    """
    now = {live_object.key: live_object for live_object in live_objects}
    lines = [
        line for planned_object in planned for line in _differences(planned_object, now.pop(planned_object.key, None))
    ]
    lines += [f"{_name(live_object.state)} appeared" for live_object in now.values() if live_object.exists]
    if lines:
        differences = "\n".join(f"  * {line}" for line in lines[:_MAX_LINES])
        more = f"\n  and {len(lines) - _MAX_LINES} more" if len(lines) > _MAX_LINES else ""
        raise PlanError(
            f"objects on the servers have changed since the plan was made:\n{differences}{more}\n"
            "Nothing was changed. Make a new plan with `lakewright preview --refresh --save-plan FILE`"
        )


def _differences(planned: KnownObject, live_object: KnownObject | None) -> Iterator[str]:
    name = _name(planned.state)
    if live_object is None or planned.exists != live_object.exists:
        yield f"{name} {'no longer exists' if planned.exists else 'exists again'}"
        return
    if not planned.exists:
        return
    ignored = server_managed_paths(planned.state.type)
    for before, after in (
        (planned.state.inputs, live_object.state.inputs),
        (planned.state.outputs, live_object.state.outputs),
    ):
        if (mismatch := first_mismatch(before, after, ignored)) is not None:
            yield f"{name}: property {mismatch.path}: was {mismatch.planned}, is {mismatch.actual}"
            return


def _is_on_server(state: ResourceState) -> bool:
    return (
        state.custom
        and bool(state.id)
        and not is_provider_type(state.type)
        and not state.type.startswith(f"{BUILTIN}:")
        and not state.pending_replacement
    )


def _read(deployment: Deployment, state: ResourceState) -> KnownObject:
    try:
        live_read = read_object(deployment.get_provider(state), state, deployment.mark_secrets)
    except EngineError as error:
        raise PlanError(f"{_name(state)}: the object cannot be read to compare it with the plan: {error}") from error
    if live_read.new is None:
        return KnownObject(replace(_to_known_state(state), outputs={}), exists=False)
    return KnownObject(_to_known_state(live_read.new), exists=True)


def _to_known_state(state: ResourceState) -> ResourceState:
    return ResourceState(state.urn, state.type, state.custom, id=state.id, inputs=state.inputs, outputs=state.outputs)


def _name(state: ResourceState) -> str:
    return f"{state.type} {urn_name(state.urn)!r}"
