"""A step of a deployment, and the diff for which it is taken."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.urns import is_default_provider


@dataclass(frozen=True)
class Diff:
    """What a provider says of the way from old outputs to new inputs. `changes`: `none`, `some` or `unknown`."""

    changes: str
    keys: list[str] = field(default_factory=list[str])
    replace_keys: list[str] = field(default_factory=list[str])
    stable_keys: list[str] = field(default_factory=list[str])
    detailed: dict[str, tuple[str, bool]] | None = None
    """Property path -> kind (`add`, `update-replace`, ...) and whether it is a difference of inputs."""
    delete_before_replace: bool = False

    @property
    def replaces(self) -> bool:
        return bool(self.replace_keys) or any(kind.endswith("-replace") for kind, _ in (self.detailed or {}).values())

    def inverted(self) -> Diff:
        """The same difference seen from the other end: what was added is deleted."""
        if self.detailed is None:
            return self
        turned = {"add": "delete", "delete": "add", "add-replace": "delete-replace", "delete-replace": "add-replace"}
        return replace(self, detailed={path: (turned.get(k, k), i) for path, (k, i) in self.detailed.items()})


@dataclass
class DeploymentStep:
    """One step of a plan: an operation that leads from `old` to `new`."""

    op: str
    old: ResourceState | None
    new: ResourceState | None
    diff: Diff = field(default_factory=lambda: Diff("none"))
    logical: bool = True
    """False for the half of a replacement that is not counted."""
    result: str = ""
    """What a refresh found: `same`, `update` or `delete`."""
    is_skipped: bool = False
    """The resource is new, and is not created because the operation does not target it."""

    @property
    def state(self) -> ResourceState:
        state = self.new or self.old
        assert state is not None
        return state

    @property
    def urn(self) -> str:
        return self.state.urn

    @property
    def is_internal(self) -> bool:
        """Whether the CLI shows nothing of it: default providers, and what only tidies up the state."""
        return self.op == "remove-pending-replace" or is_default_provider(self.urn)

    @property
    def counted_as(self) -> str:
        return self.result or self.op
