"""A step of a deployment, and the diff that causes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.urns import is_default_provider


@dataclass(frozen=True)
class Diff:
    """A provider's diff from old outputs to new inputs. `changes` is `none`, `some` or `unknown`."""

    changes: str
    keys: list[str] = field(default_factory=list[str])
    replace_keys: list[str] = field(default_factory=list[str])
    stable_keys: list[str] = field(default_factory=list[str])
    detailed: dict[str, tuple[str, bool]] | None = None
    """Property path -> kind (`add`, `update-replace`, ...) and whether the inputs differ."""
    delete_before_replace: bool = False

    @property
    def replaces(self) -> bool:
        """Return whether a difference requires a replacement."""
        return bool(self.replace_keys) or any(kind.endswith("-replace") for kind, _ in (self.detailed or {}).values())

    def invert(self) -> Diff:
        """Return the diff in the opposite direction: additions become deletions."""
        if self.detailed is None:
            return self
        turned = {"add": "delete", "delete": "add", "add-replace": "delete-replace", "delete-replace": "add-replace"}
        return replace(self, detailed={path: (turned.get(k, k), i) for path, (k, i) in self.detailed.items()})


@dataclass
class DeploymentStep:
    """One step of a plan: an operation that changes `old` into `new`."""

    op: str
    old: ResourceState | None
    new: ResourceState | None
    diff: Diff = field(default_factory=lambda: Diff("none"))
    logical: bool = True
    """False for the part of a replacement that is not counted."""
    result: str = ""
    """The result of a refresh: `same`, `update` or `delete`."""
    is_skipped: bool = False
    """Whether the resource is new and not created because the operation does not target it."""

    @property
    def state(self) -> ResourceState:
        """The new state of the resource, or its old state if it is deleted."""
        state = self.new or self.old
        assert state is not None
        return state

    @property
    def urn(self) -> str:
        """The URN of the resource."""
        return self.state.urn

    @property
    def is_internal(self) -> bool:
        """Whether the CLI does not display the step: it concerns a default provider or only cleans up the state."""
        return self.op == "remove-pending-replace" or is_default_provider(self.urn)

    @property
    def counted_as(self) -> str:
        """The operation that the summary counts the step as."""
        return self.result or self.op
