"""Route matching by path segments as they were sent, decoded afterwards, so that a name may contain a slash."""

from __future__ import annotations

import re
from typing import Any, cast
from urllib.parse import quote, unquote

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

ENCODED_SLASH = re.compile(rb"%2f", re.IGNORECASE)
STAND_IN = "\ue02f"
"""Replaces an encoded slash while a path is matched: a private-use character."""


class SegmentRoute(APIRoute):
    """A route that restores the slashes in parameters that `SlashesWithin` replaced."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a path, and restore slashes in its parameters."""
        match, child_scope = super().matches(scope)
        parameters = cast(dict[str, Any], child_scope.get("path_params", {}))
        for name, value in parameters.items():
            if isinstance(value, str) and STAND_IN in value:
                parameters[name] = value.replace(STAND_IN, "/")
        return match, child_scope


class SlashesWithin:
    """Middleware that keeps encoded slashes within their segments, although ASGI servers decode them."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward one request."""
        raw = cast(bytes, scope.get("raw_path") or b"")
        if ENCODED_SLASH.search(raw):
            escaped_path = ENCODED_SLASH.sub(quote(STAND_IN).encode(), raw).decode("ascii", "replace")
            scope = {**scope, "path": unquote(escaped_path)}
        await self._app(scope, receive, send)
