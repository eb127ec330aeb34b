"""Functions that CI needs of any forge: one comment that is updated in place, and one issue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lakewright.ci.errors import SettingError


@dataclass(frozen=True)
class PostResult:
    """The result of posting: `created`, `updated`, `closed` or `unchanged`, and the address."""

    action: str
    url: str = ""


class Forge(Protocol):
    """A forge, with the facts of the job that runs."""

    title: str

    def post_comment(self, marker: str, body: str) -> PostResult:
        """Create this job's comment on the pull request, or update the comment that begins with the marker."""
        ...

    def post_issue(self, label: str, title: str, body: str) -> PostResult:
        """Open an issue with the label, or update the open issue."""
        ...

    def close_issue(self, label: str, note: str) -> PostResult:
        """Close the open issue with the label, after a comment. Without an open issue, nothing happens."""
        ...


def require_variable(environ: Mapping[str, str], name: str, advice: str) -> str:
    """Return the value of a variable of the job. Raises SettingError with the advice if it is not set."""
    if value := environ.get(name):
        return value
    raise SettingError(f"environment variable {name} is not set: {advice}")
