"""The states in an event, to which displays attach what the Automation API's classes have no field for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulumi.automation.events import EngineEvent, StepEventStateMetadata


def list_states(event: EngineEvent) -> Iterator[tuple[str, StepEventStateMetadata]]:
    """Yield `old` or `new` and the state, for each state of a step's event."""
    for payload in (event.resource_pre_event, event.res_outputs_event, event.res_op_failed_event):
        if payload is None:
            continue
        for side, state in (("old", payload.metadata.old), ("new", payload.metadata.new)):
            if state is not None:
                yield side, state
