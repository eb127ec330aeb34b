"""Responses: compact JSON, or an empty body, for which the real server sends no content type."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response


def json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a response with compact JSON."""
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return Response(text.encode(), status, headers, media_type="application/json")


def empty(status: int = 204) -> Response:
    """Return a response without body."""
    return Response(status_code=status)
