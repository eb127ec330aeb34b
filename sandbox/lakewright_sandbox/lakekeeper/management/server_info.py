"""Health, server info, bootstrap, who am I."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from sqlalchemy import select, text
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.store import Relation, Target, add_grant
from lakewright_sandbox.lakekeeper.database.models import ProjectRow, ServerRow
from lakewright_sandbox.lakekeeper.database.users import (
    UserDetails,
    UserType,
    find_user,
    provision,
    user_missing,
    user_to_json,
)
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.identities import Subject
from lakewright_sandbox.lakekeeper.protocol.requests import Body, Caller, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.protocol.versions import INFO_FIELDS, REPORTED, queue_name, select_fields
from lakewright_sandbox.lakekeeper.server.server import Server
from lakewright_sandbox.lakekeeper.server.task_queue import warehouse_queues

router = APIRouter()


@router.get("/health")
def health(server: Server) -> Response:
    """Report the health of the server and its database."""
    status = "ok"
    try:
        with server.database.read() as session:
            session.execute(text("SELECT 1"))
    except SQLAlchemyError:
        status = "error"
    checked = server.clock.now() // 1000
    pools = [{"name": name, "lastCheck": checked, "status": status} for name in ("read_pool", "write_pool")]
    authorizer = [{"name": "openfga", "lastCheck": checked, "status": "ok"}]
    body = {
        "health": status,
        "services": {"catalog": pools, "secrets": pools, "auth": authorizer if server.authorizer.enforces else []},
        "maintenance_mode": "off",
    }
    return json_response(body, 503 if status == "error" and server.settings.is_at_least("0.12") else 200)


@router.get("/management/v1/info")
def info(server: Server) -> Response:
    """Return the server's version and settings."""
    with server.database.read() as session:
        bootstrapped = session.scalars(select(ServerRow.bootstrapped)).one()
    license_status = {"issuer": None, "audience": "lakekeeper-core", "license-type": "Apache-2.0", "valid": True}
    version = server.settings.version
    body = {
        "version": REPORTED[version],
        "lakekeeper-version": REPORTED[version],
        "bootstrapped": bootstrapped,
        "server-id": server.server_id,
        "default-project-id": server.settings.default_project or None,
        "authz-backend": "openfga" if server.authorizer.enforces else "allow-all",
        "aws-system-identities-enabled": server.settings.aws_system_identity,
        "azure-system-identities-enabled": False,
        "gcp-system-identities-enabled": False,
        "queues": [queue_name(version, queue) for queue in (*warehouse_queues(server.settings), "task_log_cleanup")],
        "license-status": license_status,
    }
    return json_response(select_fields(version, body, INFO_FIELDS))


class BootstrapRequest(Body):
    """Request to bootstrap the server."""

    accept_terms_of_use: bool
    is_operator: bool = False
    user_name: str | None = None
    user_email: str | None = None
    user_type: UserType | None = None


@router.post("/management/v1/bootstrap")
def bootstrap(
    server: Server, caller: Caller, body: Annotated[BootstrapRequest, read_body(BootstrapRequest)]
) -> Response:
    """Bootstrap the server. The caller becomes a user, and admin or operator if grants are enforced."""
    if not body.accept_terms_of_use:
        message = "You must accept the terms of use to bootstrap the catalog."
        raise ApiError(400, "TermsOfUseNotAccepted", message)
    if caller is None and server.authorizer.enforces:
        raise ApiError(401, "AnonymousBootstrap", "Anonymous users cannot bootstrap the catalog")
    with server.database.write() as session:
        row = session.scalars(select(ServerRow)).one()
        if row.bootstrapped:
            raise ApiError(400, "CatalogAlreadyBootstrapped", "Catalog is not open for bootstrap")
        row.bootstrapped = True
        if caller is not None:
            details = UserDetails(body.user_name, body.user_email, body.user_type)
            provision(server, session, caller, details, "update-endpoint")
            if server.authorizer.enforces:
                relation = "operator" if body.is_operator else "admin"
                target, subject = Target("server", server.server_id), Subject("user", caller.id)
                add_grant(session, Relation(target, relation, subject), server.clock.now())
        project_id = server.settings.default_project
        if project_id and session.get(ProjectRow, project_id) is None:
            session.add(ProjectRow(id=project_id, name="Default Project", created_at=server.clock.now()))
            server.authorizer.add_owner(session, Target("project", project_id))
    return empty()


@router.get("/management/v1/whoami")
def whoami(server: Server, caller: Caller) -> Response:
    """Return the caller's user."""
    if caller is None:
        raise ApiError(401, "GetMyUserWithoutToken", "No token provided")
    with server.database.read() as session:
        user = find_user(session, caller.id)
    if user is None:
        raise user_missing(caller.id)
    privilege = {"is-instance-admin": server.settings.instance_admin} if server.settings.is_at_least("0.13") else {}
    return json_response(user_to_json(user) | privilege)
