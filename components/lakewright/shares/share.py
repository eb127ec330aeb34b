"""A share: who has which access to what, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from lakewright.validation.moment import has_ended


class ShareKind(StrEnum):
    """Kinds of shares."""

    GRANT = "grant"
    MEMBER = "member"
    """Membership in a role."""
    AWS_ROLE = "aws role"
    """Role of a consumer outside the catalog."""
    ADOPT = "adopt"
    """Permission of the spec to adopt existing objects."""


@dataclass(frozen=True)
class Share:
    """One access, as the state of a stack or its spec has it."""

    stack: str
    kind: ShareKind
    principal: str
    """User or role as in specs, name of a share, or the path of a permission in the spec."""
    access: str
    """Privilege, `member` or `reads`."""
    on: str
    """Kind and name of the target, as far as the state names it."""
    until: str | None = None
    """Time from which it has ended, RFC 3339, UTC; None for shares without end."""

    def has_ended(self, now: datetime) -> bool:
        """Return whether the end has come."""
        return has_ended(self.until, now)

    def expires_within(self, period: timedelta, now: datetime) -> bool:
        """Return whether the share has ended or ends within a period."""
        return has_ended(self.until, now + period)

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return the share as JSON."""
        return {
            "stack": self.stack,
            "kind": self.kind.value,
            "principal": self.principal,
            "access": self.access,
            "on": self.on,
            "until": self.until,
            "ended": self.has_ended(now),
        }


def sort_by_end(shares: list[Share]) -> list[Share]:
    """Return shares in the order of their ends, shares without end last."""
    return sorted(shares, key=lambda share: (share.until is None, share.until or "", share.stack, share.principal))
