"""The lock of a stack, with its holder and its time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakewright_engine.model.times import format_json_time, format_time


@dataclass(frozen=True)
class StackLock:
    """A lock of a stack. Fields that the lock does not say are empty or None."""

    location: str
    """Path or URL of the lock."""
    name: str
    """Name of the lock's file."""
    user: str = ""
    host: str = ""
    pid: int | None = None
    since: datetime | None = None
    """When the holder took the lock."""
    remark: str = ""
    """A remark about the holder, such as the time of its last heartbeat."""
    is_abandoned: bool = False
    """Whether the holder is dead, so that the next run removes the lock."""

    @property
    def holder(self) -> str:
        """Describe the holder and how long it has held the lock."""
        if self.pid is None:
            return self.remark or "held by an unknown process"
        text = f"created by {self.user}@{self.host} (pid {self.pid})"
        if self.since is not None:
            text += f" at {format_time(self.since)}, {format_age(self.since)}"
        return f"{text}; {self.remark}" if self.remark else text

    @property
    def summary(self) -> str:
        """Name the holder and how long it has held the lock."""
        if self.pid is None:
            return self.remark or "an unknown process"
        age = f", {format_age(self.since)}" if self.since is not None else ""
        return f"{self.user}@{self.host} (pid {self.pid}{age})"

    def to_json(self) -> dict[str, Any]:
        """Return the form for `--json`."""
        return {
            "place": self.location,
            "user": self.user,
            "host": self.host,
            "pid": self.pid,
            "since": format_json_time(self.since.replace(microsecond=0)) if self.since is not None else None,
            "remark": self.remark,
            "abandoned": self.is_abandoned,
        }


def format_age(moment: datetime) -> str:
    """Return the age of a moment, such as `3 minutes ago`."""
    seconds = max(0, int((datetime.now(UTC) - moment).total_seconds()))
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
