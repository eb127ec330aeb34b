"""The OAuth2 client whose tokens a unit or job uses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClientToken:
    """A token that an identity provider issues to an OAuth2 client."""

    token_url: str
    client_id: str
    client_secret: str | None
    """Reference as in `credentials.references`; None if the spec has none for commands outside the cluster."""
    audience: str | None = None
    scope: str | None = None
