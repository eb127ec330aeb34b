"""Resources as found on the server, and as recorded in the state."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from lakewright.lakekeeper.provider import inactive_warehouses
from lakewright.lakekeeper.provider.inputs import ResourceInputs

D = TypeVar("D", bound=ResourceInputs)


@dataclass(frozen=True)
class ObservedResource(Generic[D]):
    """An object as found on the server."""

    declared: D
    """The object as a program would declare it."""
    computed: dict[str, Any] = field(default_factory=dict[str, Any])
    """Outputs that only the server knows."""
    hidden_in: str | None = None
    """Id of the inactive warehouse that hides the object. The other fields then come from the state."""

    def outs(self) -> dict[str, Any]:
        """Return the outputs of the resource."""
        mark = {inactive_warehouses.MARK: self.hidden_in} if self.hidden_in else {}
        return {**self.declared.props(), **self.computed, **mark}


@dataclass(frozen=True)
class RecordedResource(Generic[D]):
    """An object as recorded in the state."""

    id: str
    declared: D
    outs: dict[str, Any]

    @property
    def drift(self) -> list[str]:
        """Drift that no property shows, as a refresh found it; the next update removes it."""
        return cast("list[str]", self.outs.get("drift") or [])
