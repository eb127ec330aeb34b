"""Refuse grants in a preview that `up` would refuse, because the server stores none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection.errors import LakekeeperError, UnsupportedServerError
from lakewright.lakekeeper.api.management import grants
from lakewright.lakekeeper.provider.inputs import has_unknown, is_unknown

if TYPE_CHECKING:
    from lakewright.lakekeeper.api.connection.server import ServerRef
    from lakewright.lakekeeper.grants.target import GrantTarget
    from lakewright.lakekeeper.provider.base import LakekeeperProvider


def explain_unsupported(provider: LakekeeperProvider[Any], server: ServerRef, on: GrantTarget) -> str:
    """Return why the server stores no grants on such objects; empty if it does, or if it cannot be asked.

    A server that cannot be asked is no reason to refuse: `up` reports it.

    Args:
        provider: The provider of the grants.
        server: The server, which may be unknown in a preview.
        on: The target of the grants. Its ids may be unknown in a preview.
    """
    if has_unknown(server) or is_unknown(on):
        return ""
    try:
        client = provider.client(server)
        client.server().require_kind(on.type)
        grants.require_stored(client, on.type)
    except UnsupportedServerError as error:
        return str(error)
    except (LakekeeperError, UnresolvedCredentialError):
        return ""
    return ""
