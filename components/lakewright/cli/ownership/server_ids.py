"""Ids of Lakekeeper servers, which tell whether two addresses lead to one server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError

if TYPE_CHECKING:
    from lakewright.cli.ownership.server_access import ServerAccess
    from lakewright.lakekeeper.api.connection.server import ServerRef


def find_server_id(access: ServerAccess, stack: str, server: ServerRef) -> str | None:
    """Return the id of a server: as the stack's state records it for this address, else as the server reports it.

    Args:
        access: The project, and its environments and secrets.
        stack: A stack on the server.
        server: The server, as the stack's environment has it now.

    Returns:
        None if the state has no id for this address, and the server does not respond at once.
    """
    from lakewright.http.retry import RetryPolicy  # noqa: PLC0415
    from lakewright.lakekeeper.api.connection.client import Client  # noqa: PLC0415 - slow to load

    if recorded_id := _find_recorded_id(access, stack, server.endpoint):
        return recorded_id
    try:
        return Client(server, access.open_resolver(stack), retry=RetryPolicy(attempts=1)).server().server_id
    except LakewrightError:
        return None


def _find_recorded_id(access: ServerAccess, stack: str, endpoint: str) -> str | None:
    from lakewright.project_files.servers import is_same_url  # noqa: PLC0415 - slow to load

    objects = access.read_objects(stack)
    server_ids = objects.server_ids if objects is not None else {}
    return next((server_id for address, server_id in server_ids.items() if is_same_url(address, endpoint)), None)
