"""Identify and authorize the caller before a handler runs. Under allow-all nothing is checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any
from uuid import UUID

from fastapi import Header, Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from lakewright_sandbox.lakekeeper.authz.caller import ActingCaller, act_as
from lakewright_sandbox.lakekeeper.authz.enforcement.catalog_targets import (
    RequiredAction,
    catalog_actions,
    config_actions,
)
from lakewright_sandbox.lakekeeper.authz.enforcement.management_targets import find_named_object
from lakewright_sandbox.lakekeeper.authz.enforcement.required_actions import (
    CATALOG_ACTIONS,
    PATH_ACTIONS,
    PROJECT_ACTIONS,
    SERVER_ACTIONS,
    is_unchecked,
)
from lakewright_sandbox.lakekeeper.authz.rights import Rights
from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.database.models import RoleRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Caller
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, ProjectId, Server
from lakewright_sandbox.typed.json_values import is_object


async def enforce(
    request: Request,
    server: Server,
    caller: Caller,
    project: ProjectId,
    x_assume_role: Annotated[str | None, Header()] = None,
) -> None:
    """Authorize a request; a dependency of every route. Raises 401, 403 or 404."""
    actor = ActingCaller(caller, _role_id(x_assume_role) if x_assume_role else None)
    act_as(actor)
    if not server.authorizer.enforces:
        return
    call = f"{request.method} {request.scope['route'].path}"
    targets = CallTargets(request, project, await _body(request))
    named_target = await find_named_object(request, project) if call in PATH_ACTIONS else None

    def check() -> None:
        with server.database.read() as session:
            _check_assumed_role(server, session, actor)
            if is_unchecked(call):
                return
            if named_target is not None:
                # Rights on projects and users are checked before their existence.
                checked_first = named_target.kind in ("project", "user")
                target = named_target.target(server) if checked_first else named_target.find(server, session)
                server.authorizer.require(session, target, PATH_ACTIONS[call])
                return
            for target, action in targets.list_required_actions(server, session, call):
                server.authorizer.require(session, target, action)

    await run_in_threadpool(check)


class CallTargets:
    """The targets of a call that its path, query and body name."""

    def __init__(self, request: Request, project: str, body: Any) -> None:
        """Read query, path parameters and body of a request."""
        self._query, self._params = request.query_params, request.path_params
        self._body, self._project = body if is_object(body) else {}, project

    def list_required_actions(self, server: Lakekeeper, session: Session, call: str) -> Iterator[RequiredAction]:
        """Yield the required actions with their targets."""
        if call in PROJECT_ACTIONS:
            project = self._body.get("project-id") or self._query.get("projectId") or self._project
            yield Target("project", str(project)), PROJECT_ACTIONS[call]
        elif call in SERVER_ACTIONS:
            yield Target("server", server.server_id), SERVER_ACTIONS[call]
        elif call == "GET /catalog/v1/config":
            yield from config_actions(server, session, self._project, self._query.get("warehouse", ""))
        else:
            yield from catalog_actions(
                session, CATALOG_ACTIONS[call], self._params, self._query.get("parent"), self._body
            )


async def _body(request: Request) -> Any:
    """Return the JSON body, None if it is malformed, which the handler refuses."""
    try:
        return json.loads(await request.body() or b"null")
    except ValueError:
        return None


def _role_id(value: str) -> str:
    try:
        return str(UUID(value))
    except ValueError:
        raise ApiError(400, "InvalidAssumeRoleId", f"Invalid role id `{value}` in header x-assume-role.") from None


def _check_assumed_role(server: Lakekeeper, session: Session, actor: ActingCaller) -> None:
    if actor.role is None:
        return
    user = ActingCaller(actor.user).subject
    role_exists = session.get(RoleRow, actor.role) is not None
    if not (role_exists and Rights(server, session, user).has(Target("role", actor.role), "assignee")):
        raise ApiError(403, "AssumeRoleForbidden", f"Assuming the role `{actor.role}` is forbidden")
