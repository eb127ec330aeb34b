"""Count the contents that an operation deletes. Previews print the counts, and kept plans record and compare them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lakewright.deletions.destroy_preview import OperationEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakewright_engine import Operation, Result
    from lakewright_engine.display.report import StepReport
    from lakewright_engine.model.resources import ResourceState
    from lakewright_engine.plans.deleted_contents import DeletedContents
    from pulumi.automation.events import EngineEvent

    from lakewright.lakekeeper.buckets.own_bucket import OwnBucket


@dataclass(frozen=True)
class ContentCountingEngine:
    """Runs another engine. The result of a preview says which data its deletions delete."""

    engine: OperationEngine
    find_bucket: Callable[[str, str, str | None], OwnBucket]
    """Returns how a stack reaches a bucket, by stack, bucket and region. Raises CannotCountError."""

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report each event."""
        from lakewright_engine.display.report import OperationReport  # noqa: PLC0415 - `--help` needs no engine

        def count(states: Sequence[ResourceState]) -> list[DeletedContents]:
            from lakewright.deletions.content_counts import ContentCounter  # noqa: PLC0415 - slow to load

            open_bucket = partial(self.find_bucket, operation.stack)
            return ContentCounter(operation.project, operation.stack, open_bucket).count(states)

        counting = replace(operation, count_contents=count)
        if not operation.is_dry:
            return self.engine.run(counting, on_event)
        report = OperationReport()
        result = self.engine.run(counting, report.observe(on_event))
        if result.deleted_contents is None:
            states = _find_deleted_states(report.steps)
            result.deleted_contents = count(states) if states else []
        result.messages += [counted.to_message() for counted in result.deleted_contents if not counted.is_empty]
        return result


def _find_deleted_states(steps: Sequence[StepReport]) -> list[ResourceState]:
    """Return the resources whose objects the steps delete, with the outputs of the state."""
    from lakewright_engine.model.resources import ResourceState  # noqa: PLC0415 - slow to load
    from lakewright_engine.plans.deleted_contents import DELETIONS  # noqa: PLC0415

    return [
        ResourceState(step.urn, step.type, bool(old.custom), id=str(old.id), outputs={**(old.outputs or {})})
        for step in steps
        if step.op in DELETIONS
        and step.metadata is not None
        and (old := step.metadata.old) is not None
        and not old.retain_on_delete
    ]
