"""LimitMark: the limits of a tenant that are enforced at present, and the grants that their enforcement suspended.

The description of the role `lakewright-limit-RECORD_ID` in the tenant's project is the mark. Without the role, nothing
is enforced. The mark grants nothing by itself: only grants that the stack declares are granted again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from lakewright.ownership.mark import UnreadableMarkError

VERSION = 1
"""Version of the mark."""


COMPUTE_PART = "computing units"
"""Part of a tenant whose limit starts no computing units. It suspends no grants."""


def format_limited_part(warehouse: str | None = None, namespace: str | None = None) -> str:
    """Return the name of a limited part of a tenant.

    >>> format_limited_part(), format_limited_part("main"), format_limited_part("main", "sales.daily")
    ('tenant', 'warehouse main', 'namespace main.sales.daily')
    """
    if warehouse is None:
        return "tenant"
    return f"namespace {warehouse}.{namespace}" if namespace else f"warehouse {warehouse}"


@dataclass(frozen=True, order=True)
class SuspendedGrant:
    """A grant that the enforcement of limits revoked."""

    on: str
    """The object, as `GrantTarget` names it."""
    object_id: str
    """The server's id of the object."""
    privilege: str
    kind: str
    """`user` or `role`."""
    principal: str


@dataclass(frozen=True, order=True)
class ReachedLimit:
    """A limit that was reached, and whose enforcement has not ended."""

    part: str
    """Name of the limited part, such as `warehouse executions`."""
    quantity: str
    """`bytes`, `files`, `tables`, or `compute`: hours in a UTC month."""
    limit: int
    since: str
    """Time of the run that first measured it as reached, in UTC."""


@dataclass(frozen=True)
class LimitMark:
    """Limits that are enforced at present."""

    stack: str
    """The stack whose limits they are, as `PROJECT/STACK`."""
    parts: tuple[str, ...]
    """Parts of the tenant whose limit was reached, such as `warehouse executions`."""
    suspended: tuple[SuspendedGrant, ...] = ()
    reached: tuple[ReachedLimit, ...] = ()
    """The limits of these parts that were reached."""
    write_id: str = field(default="", compare=False)
    """Random id of the last write by a run that revoked grants or created a quota. Runs at the same time detect the
    write by it."""

    def covers(self, parts: list[str]) -> bool:
        """Return whether the limit of one of the parts is enforced."""
        return not set(self.parts).isdisjoint(parts)

    def to_description(self) -> str:
        """Return the mark as the description of a role."""
        return json.dumps({"version": VERSION, **asdict(self)})


_MARK = TypeAdapter(LimitMark)


def parse_limit_mark(text: str | None) -> LimitMark:
    """Return the mark in the description of a role.

    Raises:
        UnreadableMarkError: The text is not a mark, or a mark of a later version.
    """
    try:
        document = json.loads(text or "")
        values = cast(dict[str, Any], document) if isinstance(document, dict) else {}
        if values.pop("version", None) != VERSION:
            raise UnreadableMarkError(f"expected a mark of enforced limits of version {VERSION}")
        return _MARK.validate_python(values)
    except (ValueError, ValidationError):
        raise UnreadableMarkError("expected the JSON that `lakewright enforce-limits` writes") from None
