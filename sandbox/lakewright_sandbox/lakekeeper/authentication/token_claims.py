"""Claims of tokens, and the error for a token that is not accepted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

Claims = Mapping[str, Any]


def get_text(claims: Claims, *names: str) -> str | None:
    """Return the first of these claims that is a text; the text may be empty."""
    return next((claims[name] for name in names if isinstance(claims.get(name), str)), None)


def get_roles(claims: Claims, path: str) -> list[str]:
    """Return the roles at a path of claims, such as `realm_access.roles`: a list of texts, or one text."""
    value: Any = claims
    for step in path.split("."):
        value = cast(Claims, value).get(step) if isinstance(value, Mapping) else None
    values = cast(list[object], value) if isinstance(value, list) else [value]
    return [role for role in values if isinstance(role, str)]


def names_audience(claims: Claims, audiences: Collection[str]) -> bool:
    """Return whether claims of a token name one of these audiences; any claims do if there are none."""
    aud = claims.get("aud")
    texts = cast(list[object], aud) if isinstance(aud, list) else [aud]
    return not audiences or any(text in audiences for text in texts)


def build_refusal(reason: str) -> ApiError:
    """Return the error; `reason` is a kind of fault, never a part of the token."""
    return ApiError(401, "AuthenticationFailed", f"The token was not accepted: {reason}")
