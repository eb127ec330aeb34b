"""Identity of the Lakekeeper server that has a stack's objects: the server's id, recorded in the state.

An endpoint may later lead to a different server. The stack's objects are missing there. They must not be considered
deleted, because they may still exist on the first server.
"""

from collections.abc import Mapping
from typing import Any

from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.provider.errors import MovedServerError

RECORDED = "server_id"
"""Output of every resource: id of the server that the object is on."""


def to_record(client: Client) -> dict[str, Any]:
    """Return the output that records the server's id; empty if the server has none."""
    server_id = client.server().server_id
    return {RECORDED: server_id} if server_id else {}


def is_outdated(outs: Mapping[str, Any]) -> bool:
    """Return whether an `up` must record the server's id: none is recorded, or the user accepted a different server."""
    recorded_id, accepted = outs.get(RECORDED), settings.read_accepted_server_id()
    return not recorded_id or (accepted is not None and recorded_id != accepted)


def is_proven(client: Client, outs: Mapping[str, Any]) -> bool:
    """Return whether the server is known to have the stack's objects. A missing object was then deleted.

    State of earlier versions records no server. The user can then confirm the server by its id.
    """
    return bool(outs.get(RECORDED)) or client.server().server_id == settings.read_accepted_server_id()


def make_unproven_error(client: Client, missing: str) -> MovedServerError:
    """Return the error for an object that is missing on a server that may not be its own."""
    live_id = client.server().server_id
    confirm = (
        f" If it is the right server and the object was deleted there, run once with"
        f" {settings.ACCEPTED_SERVER_ID}={live_id}."
        if live_id
        else ""
    )
    return MovedServerError(
        f"{missing} does not exist, and the state does not record which server it was on. Nothing was changed."
        f" Check that `endpoint` is the Lakekeeper that has this stack's objects.{confirm}"
    )


def verify(client: Client, outs: Mapping[str, Any], title: str) -> None:
    """Raise MovedServerError if the server is not the server in the state."""
    recorded_id, live_id = outs.get(RECORDED), client.server().server_id
    if not recorded_id or not live_id or live_id in (recorded_id, settings.read_accepted_server_id()):
        return
    raise MovedServerError(
        f"{title}: expected the Lakekeeper with server id {recorded_id}, as the state has it; {client.endpoint}"
        f" has server id {live_id}. Nothing was changed. Set `endpoint` to the server that has this stack's objects."
        " If that server's catalog was restored or migrated to this server, run once with"
        f" {settings.ACCEPTED_SERVER_ID}={live_id}."
    )
