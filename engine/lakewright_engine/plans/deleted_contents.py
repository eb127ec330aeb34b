"""The contents of objects that an operation deletes: counted in previews, kept in plans, compared before an update."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias, cast

from lakewright_engine.display.property_diff import redact_json
from lakewright_engine.model.errors import PlanError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.urns import urn_name
from lakewright_engine.plans.plan_file import NEW_PLAN_HINT, PlanDocument

DELETIONS = ("delete", "delete-replaced")
"""Operations that delete an object."""
CONTENTS = "contents"
"""The member of a plan document with the contents of all objects that the plan deletes."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class DeletedContents:
    """The contents of an object, which are deleted with it."""

    urn: str
    id: str
    type: str
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Numbers of contained objects by their noun, such as `table`."""
    bytes: int = 0
    is_partial: bool = False
    """Whether there are more bytes than were counted."""
    fingerprint: str = ""
    """Hash of the identities of the contained objects."""
    unknown: str = ""
    """Reason why the contents could not be counted; empty if they were."""
    is_growing: bool = False
    """Whether a service adds contents at any time, such as access logs. The fingerprint then leaves them out."""

    @property
    def name(self) -> str:
        """Kind and name of the object, for messages."""
        return f"{self.type.rpartition(':')[2]} '{urn_name(self.urn)}'"

    @property
    def is_empty(self) -> bool:
        """Return whether the object is known to contain nothing."""
        return not (self.counts or self.bytes or self.is_partial or self.unknown)

    @property
    def summary(self) -> str:
        """The contents such as `12 tables, 1 view, 3.4 GiB`."""
        if self.is_empty:
            return "nothing"
        if self.unknown:
            return "unknown contents"
        parts = [f"{count:,} {noun}{'' if count == 1 else 's'}" for noun, count in sorted(self.counts.items()) if count]
        return ", ".join([*parts, f"{'at least ' if self.is_partial else ''}{format_bytes(self.bytes)}"])

    def to_json(self) -> dict[str, Any]:
        """Return the form for `--json`."""
        return {**asdict(self), "name": f"{self.type.rpartition(':')[2]} {urn_name(self.urn)}", "summary": self.summary}

    def to_message(self) -> str:
        """Return the warning of a preview."""
        if self.unknown:
            return f"warning: {self.name}: its contents are deleted and could not be counted: {self.unknown}"
        return f"warning: {self.name}: deletes {self.summary}"


CountContents: TypeAlias = Callable[[Sequence[ResourceState]], list[DeletedContents]]
"""Counts the contents of the resources whose deletion deletes data."""


def format_bytes(amount: int) -> str:
    """Return bytes with a binary unit, rounded to a tenth: `3.4 GiB`."""
    size, unit = float(amount), 0
    while size >= 1024 and unit + 1 < len(_UNITS):
        size, unit = size / 1024, unit + 1
    return f"{amount} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def count_deleted(
    count: CountContents | None, deployment: Mapping[str, Any], deleted: Collection[tuple[str, str]]
) -> list[DeletedContents]:
    """Count the contents of deleted objects; none without a function that counts.

    Args:
        count: Counts contents.
        deployment: The exported deployment.
        deleted: URN and id of the objects that the steps delete.
    """
    if count is None or not deleted:
        return []
    resources = cast("list[dict[str, Any]]", deployment.get("resources") or [])
    states = [
        ResourceState(
            item["urn"],
            item["type"],
            True,  # noqa: FBT003 - the model's own order
            id=item["id"],
            outputs=redact_json(item.get("outputs") or {}),
        )
        for item in resources
        if (item["urn"], item.get("id")) in deleted and not item.get("retainOnDelete")
    ]
    return count(states) if states else []


def contents_to_json(contents: Sequence[DeletedContents]) -> list[dict[str, Any]]:
    """Return the member `contents` of a plan document."""
    return [asdict(counted) for counted in contents]


def refuse_changed_contents(document: PlanDocument, deployment: Mapping[str, Any], count: CountContents | None) -> None:
    """Compare the contents of the objects that a plan deletes with their contents when it was made.

    Args:
        document: The plan. Its signature was checked.
        deployment: The exported deployment, whose version is that of the plan.
        count: Counts contents.

    Raises:
        PlanError: An object contains something else, or its contents are unknown.
    """
    planned = _read_contents(document)
    if not planned:
        return
    if count is None:
        raise PlanError(f"{document.file}: the contents that it deletes cannot be compared here. Use `lakewright up`")
    current = {
        (counted.urn, counted.id): counted
        for counted in count_deleted(count, deployment, {(counted.urn, counted.id) for counted in planned})
    }
    lines = [
        f"{before.name}: {difference}"
        for before in planned
        if (difference := _compare(before, current.get((before.urn, before.id))))
    ]
    if lines:
        differences = "\n".join(f"  * {line}" for line in lines)
        raise PlanError(
            f"{document.file}: the plan deletes objects whose contents have changed since it was made:\n{differences}\n"
            f"Nothing was changed. {NEW_PLAN_HINT}"
        )


def _read_contents(document: PlanDocument) -> list[DeletedContents]:
    try:
        if CONTENTS in document.body:
            return [DeletedContents(**counted) for counted in document.body[CONTENTS]]
        deletes = any(step["op"] in DELETIONS for step in document.body["steps"])
    except (KeyError, TypeError) as error:
        raise PlanError(f"{document.file} is damaged: {type(error).__name__}: {error}") from error
    if deletes:
        raise PlanError(
            f"{document.file} deletes objects and was made by an earlier version, which did not record their contents. "
            f"Nothing was changed. {NEW_PLAN_HINT}"
        )
    return []


def _compare(planned: DeletedContents, current: DeletedContents | None) -> str:
    """Return how the contents differ; empty if they do not."""
    if planned.unknown:
        return f"the contents could not be counted when the plan was made: {planned.unknown}"
    if current is None:
        return f"planned to delete {planned.summary}, and the contents can no longer be counted"
    if current.unknown:
        return f"planned to delete {planned.summary}, and the contents cannot be counted now: {current.unknown}"
    if planned == current or (planned.is_growing and planned.fingerprint == current.fingerprint):
        return ""
    if planned.summary != current.summary:
        return f"planned to delete {planned.summary}, now contains {current.summary}"
    return f"planned to delete {planned.summary}, now contains other data of the same number and size"
