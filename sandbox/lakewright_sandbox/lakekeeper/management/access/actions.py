"""The actions that the caller or another user or role may do with an object; all of them under allow-all.

Callers inspect their own rights freely, other rights with the right to read assignments.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.actions import ACTIONS
from lakewright_sandbox.lakekeeper.authz.caller import actor
from lakewright_sandbox.lakekeeper.authz.enforcement.management_targets import PATHS, NamedObject
from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.identities import Subject, principal_parameters
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.protocol.versions import select_actions
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, Server


def check_inspectable(server: Lakekeeper, session: Session, target: Target, subject: Subject | None) -> None:
    """Raise 403 `CannotInspectPermissions` if the caller may not inspect a subject's rights."""
    if not server.authorizer.enforces or subject in (None, actor().subject):
        return
    guarded = Target("server", server.server_id) if target.kind == "user" else target
    if not server.authorizer.rights(session).has(guarded, "read_assignments"):
        message = f"Not allowed to inspect permissions on {target.kind} `{target.object_id}` of other principals"
        raise ApiError(403, "CannotInspectPermissions", message)


def list_allowed_actions(server: Lakekeeper, session: Session, target: Target, subject: Subject | None) -> list[str]:
    """Return the catalog actions that a subject, by default the caller, may do on the object."""
    check_inspectable(server, session, target, subject)
    names = select_actions(server.settings.version, target.kind, ACTIONS[target.kind])
    if not server.authorizer.enforces:
        return names
    rights = server.authorizer.rights(session, subject)
    return [name for name in names if rights.may(target, name)]


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
