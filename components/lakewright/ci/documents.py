"""The JSON documents that CI reads: a fleet's preview, and a drift report. Unknown keys are ignored."""

from __future__ import annotations

from typing import Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from lakewright.ci.errors import DocumentError
from lakewright.terminal.text_lines import plural
from lakewright.validation.problems import list_problems

VERSION = 1
"""Version of both documents."""
UNREACHABLE = "unreachable"
"""Kind of an entry without a difference: the resource was not reached."""
_MOST_PROBLEMS = 5

Document = TypeVar("Document", bound=BaseModel)


class _DocumentPart(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class PropertyLine(_DocumentPart):
    """A property that changes. `sign` is `+`, `-` or `~`."""

    sign: str = "~"
    path: str = ""
    text: str = ""


class PreviewStep(_DocumentPart):
    """One step of a preview."""

    op: str
    urn: str = ""
    type: str = ""
    name: str = ""
    keys: list[str] = []
    properties: list[PropertyLine] = []
    result: str = ""
    """Result of a refresh: `same`, `update` or `delete`."""


class DeletedContentsLine(_DocumentPart):
    """The contents of an object, which are deleted with it."""

    name: str = ""
    summary: str = ""
    """Such as `12 tables, 3.4 GiB`."""


class StackPreview(_DocumentPart):
    """The preview of one stack."""

    stack: str
    tenant: str = ""
    environment: str = ""
    status: str = ""
    """`unchanged`, `changed`, `failed`, `interrupted`, `skipped` or `not deployed`."""
    error: str = ""
    steps: list[PreviewStep] = []
    messages: list[str] = []
    deleted_contents: list[DeletedContentsLine] = []
    exit: int | None = 0


class FleetPreview(_DocumentPart):
    """The document of `lakewright fleet preview --json`."""

    version: Literal[1]
    command: str = "preview"
    """`preview`, `up` or another command of `lakewright fleet`."""
    stacks: list[StackPreview]
    error: str = ""
    """Why there are no stacks; empty otherwise."""


class DriftActor(_DocumentPart):
    """The user or program that changed something, and the time (RFC 3339)."""

    name: str
    at: str = ""
    source: str = ""
    is_allowed_only: bool = False


class IgnoredRule(_DocumentPart):
    """The rule that ignores a difference."""

    reason: str = ""
    until: str = ""
    place: str = ""


class DriftDifference(_DocumentPart):
    """One difference between a stack and its servers. `property` is empty for a whole object."""

    type: str = ""
    resource: str = ""
    property: str = ""
    declared: Any = None
    found: Any = None
    kind: str = "changed"
    actor: DriftActor | None = None
    ignored: IgnoredRule | None = None


class StackDriftReport(_DocumentPart):
    """The drift of one stack, and what could not be checked."""

    stack: str
    tenant: str = ""
    environment: str = ""
    resources: int = 0
    differences: list[DriftDifference] = []
    problems: list[str] = []
    locked: list[str] = []
    """Holders of the stack's lock: an update is running, so differences may be its doing."""

    @property
    def active_differences(self) -> list[DriftDifference]:
        """The differences that no rule ignores. Resources that were not reached are not known to differ."""
        return [
            difference
            for difference in self.differences
            if difference.ignored is None and difference.kind != UNREACHABLE
        ]

    @property
    def unreachable(self) -> list[DriftDifference]:
        """The resources that were not reached."""
        return [difference for difference in self.differences if difference.kind == UNREACHABLE]

    @property
    def unchecked(self) -> list[str]:
        """Parts that could not be checked, and the reasons."""
        count = len({(difference.type, difference.resource) for difference in self.unreachable})
        return [*self.problems, *([f"{plural(count, 'resource')} not reached"] if count else [])]

    @property
    def ignored(self) -> list[DriftDifference]:
        """The differences that a rule ignores."""
        return [difference for difference in self.differences if difference.ignored is not None]


class SharedCause(_DocumentPart):
    """One cause on several tenants."""

    kind: str = ""
    type: str = ""
    property: str = ""
    actor: str | None = None
    stacks: list[str] = []
    count: int = 0
    text: str = ""


class FleetDrift(_DocumentPart):
    """The document of `lakewright drift --json`."""

    version: Literal[1]
    stacks: list[StackDriftReport]
    groups: list[SharedCause] = []
    seconds: float | None = Field(default=None, ge=0)
    notes: list[str] = []
    """Remarks: rules that expired, archived warehouses, enforced limits."""
    error: str = ""
    """Why nothing could be checked; empty otherwise."""

    @property
    def problems(self) -> list[str]:
        """Parts of the whole fleet that could not be checked."""
        if self.error:
            return [self.error]
        return [] if self.stacks else ["no tenant was checked: the backend has no state of a selected stack"]

    @property
    def drifted(self) -> list[StackDriftReport]:
        """The stacks with drift that no rule ignores."""
        return [stack for stack in self.stacks if stack.active_differences]

    @property
    def unchecked(self) -> list[StackDriftReport]:
        """The stacks of which something could not be checked."""
        return [stack for stack in self.stacks if stack.unchecked]


def read_preview(text: str | bytes) -> FleetPreview:
    """Return the document of `lakewright fleet preview --json`. Raises DocumentError, also for a failed command."""
    preview = _read(FleetPreview, text, "lakewright fleet preview --json")
    if preview.error and not preview.stacks:
        raise DocumentError(f"`lakewright fleet {preview.command}` failed: {preview.error}")
    return preview


def read_drift(text: str | bytes) -> FleetDrift:
    """Return the document of `lakewright drift --json`. Raises DocumentError."""
    return _read(FleetDrift, text, "lakewright drift --json")


def _read(model: type[Document], text: str | bytes, command: str) -> Document:
    try:
        document: Any = from_json(text)
    except ValueError as error:
        description = "nothing" if not text.strip() else f"something else ({error})"
        raise DocumentError(f"expected the JSON that `{command}` prints, found {description}") from None
    version = cast(dict[str, Any], document).get("version") if isinstance(document, dict) else None
    if isinstance(version, int) and version != VERSION:
        raise DocumentError(
            f"`version` of the document: expected {VERSION}, found {version}. Use the `lakewright` that wrote it"
        )
    try:
        return model.model_validate(document)
    except ValidationError as error:
        problems = list_problems(error, cast(object, document))
        more = f"; {len(problems) - _MOST_PROBLEMS} more" if len(problems) > _MOST_PROBLEMS else ""
        problem_texts = "; ".join(f"`{problem.path}`: {problem.expected}" for problem in problems[:_MOST_PROBLEMS])
        raise DocumentError(f"expected the JSON that `{command}` prints: {problem_texts}{more}") from None
