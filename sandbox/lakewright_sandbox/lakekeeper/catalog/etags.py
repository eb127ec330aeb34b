"""ETags of tables, by which a client gets metadata only if it changed (Lakekeeper's `load_table.rs` and `etag.rs`)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lakewright_sandbox.lakekeeper.catalog.delegation import Delegation

_MAX_WINDOW_MS = 3_600_000
"""Longest time for which a response with credentials may be used again."""
_SHAPE = re.compile(r'(?:W/)?"?(?P<prefix>lk[12])\.(?P<digest>[0-9a-f]+)(?:\.(?P<until>[0-9a-f]+))?"?')


@dataclass(frozen=True)
class TableETags:
    """The rules of one release. `now` is in milliseconds since the epoch."""

    is_before_0_13: bool
    has_shapes: bool
    """Whether the ETag depends on the requested kind of credentials as well: on 0.14."""
    now: int

    def build_for_load(self, location: str, delegation: Delegation, access: dict[str, Any]) -> str:
        """Return the ETag of a loaded table, given what the response says about access to its files."""
        if self.is_before_0_13:
            return f'"{_digest(location)}"'
        expiry = min(_find_expiries(access), default=None)
        until = "" if expiry is None else f".{self.now + min((expiry - self.now) // 2, _MAX_WINDOW_MS):x}"
        if self.has_shapes:
            return f'W/"lk2.{_digest(f"{location} {delegation}")}{until}"'
        return f'"lk1.{_digest(location)}{until}"'

    def build_for_commit(self, location: str) -> str:
        """Return the ETag of the response to a commit, which has no credentials."""
        if self.is_before_0_13:
            return f'"{_digest(location)}"'
        return f'W/"lk2.{_digest(f"{location} no config")}"' if self.has_shapes else f'"lk1.{_digest(location)}"'

    def match(self, client_tags: Iterable[str], location: str, delegation: Delegation, *, vends: bool) -> str | None:
        """Return the client's ETag that is still valid.

        Args:
            client_tags: ETags that the client sent.
            location: Current metadata file.
            delegation: Kind of credentials that the client requests.
            vends: Whether a response to this request has credentials.
        """
        for tag in client_tags:
            if self.is_before_0_13:
                if tag == self.build_for_load(location, delegation, {}):
                    return tag
                continue
            current_parts = _SHAPE.fullmatch(self.build_for_load(location, delegation, {}))
            parts = _SHAPE.fullmatch(tag)
            if not (current_parts and parts) or parts.group("prefix", "digest") != current_parts.group(
                "prefix", "digest"
            ):
                continue
            if (self.now < int(parts["until"], 16)) if parts["until"] else not vends:
                return tag
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _find_expiries(access: dict[str, Any]) -> list[int]:
    entries: list[dict[str, Any]] = access.get("storage-credentials", [])
    return [int(value) for entry in entries for key, value in entry["config"].items() if "expires-at" in key]
