"""The actions that the caller or another user or role may do with an object; all of them under allow-all."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.enforcement.management_targets import PATHS, NamedObject
from lakewright_sandbox.lakekeeper.management.access.introspection import list_allowed_actions
from lakewright_sandbox.lakekeeper.protocol.identities import Subject, principal_parameters
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.server import Server

router = APIRouter(prefix="/management/v1")


def actions_on(
    server: Server,
    named_object: NamedObject,
    subject: Annotated[Subject | None, principal_parameters("InvalidGetAccessQuery")],
) -> Response:
    """List the allowed actions of a user or role on an object."""
    with server.database.read() as session:
        target = named_object.target(server) if named_object.kind == "user" else named_object.find(server, session)
        server.authorizer.check_visible(session, target)
        names = list_allowed_actions(server, session, target, subject)
    return json_response({"allowed-actions": [{"action": name} for name in names]})


for _path in (*PATHS.values(), "/role/{role_id}", "/user/{user_id}"):
    router.add_api_route(f"{_path}/actions", actions_on, methods=["GET"])
