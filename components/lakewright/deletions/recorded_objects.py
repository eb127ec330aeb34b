"""Resources that the steps of a preview delete, with the providers that can check them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from lakewright_engine.plans.deleted_contents import DELETIONS

from lakewright.drift.provider_classes import PREFIX, provider_class
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.run_context import RunContext

if TYPE_CHECKING:
    from lakewright_engine.display.report import StepReport
    from lakewright_engine.model.resources import ResourceState
    from lakewright_engine.project.project import PulumiProject


@dataclass(frozen=True)
class RecordedObject:
    """A resource as the state has it."""

    urn: str
    type: str
    """Type without the prefix of dynamic resources, such as `lakekeeper:Warehouse`."""
    id: str
    outputs: dict[str, Any]


def find_deleted(steps: Iterable[StepReport]) -> Iterator[RecordedObject]:
    """Yield the dynamic resources whose objects the steps delete. A retained object is not deleted."""
    for step in steps:
        old = step.metadata.old if step.metadata is not None else None
        if step.op not in DELETIONS or old is None or old.retain_on_delete or not step.type.startswith(PREFIX):
            continue
        outputs = cast("dict[str, Any]", old.outputs or {})
        yield RecordedObject(step.urn, step.type.removeprefix(PREFIX), str(old.id), outputs)


def read_recorded(state: ResourceState) -> RecordedObject | None:
    """Return a dynamic resource of the state; None for a resource of a plugin."""
    if not state.type.startswith(PREFIX):
        return None
    return RecordedObject(state.urn, state.type.removeprefix(PREFIX), state.id, cast("dict[str, Any]", state.outputs))


class ProviderPool:
    """Providers of a stack's resources, in this process. They share connections."""

    def __init__(self, project: PulumiProject, stack: str) -> None:
        """Use the configuration of a stack, which is read when a secret is needed."""
        self._config = _read_lazily(project, stack)
        self._run = RunContext()

    def get(self, recorded_object: RecordedObject) -> LakekeeperProvider[Any] | None:
        """Return a provider of the resource; None for a type that this version does not have."""
        provider_type = provider_class(PREFIX + recorded_object.type)
        if provider_type is None or not issubclass(provider_type, LakekeeperProvider):
            return None
        provider = cast("LakekeeperProvider[Any]", provider_type())
        provider.own_run = self._run
        provider.config = self._config
        return provider

    def close(self) -> None:
        """Close the connections."""
        self._run.clients.close()


def _read_lazily(project: PulumiProject, stack: str) -> Callable[[str], str | None]:
    values: dict[str, str] = {}

    def look_up(key: str) -> str | None:
        if not values:
            values.update(project.configuration(stack).values)
        return values.get(key if ":" in key else f"{project.name}:{key}")

    return look_up
