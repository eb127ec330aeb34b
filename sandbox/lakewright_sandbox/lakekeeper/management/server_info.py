"""Health, server info, bootstrap, who am I."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from sqlalchemy import select, text
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from ..errors import ApiError
from ..models import Project, ServerRow
from ..requests import Body, read_body
from ..responses import empty, json_response
from ..server import Server
from ..settings import VERSION

QUEUES = ["soft_deletion", "tabular_purge", "task_log_cleanup"]

router = APIRouter()


@router.get("/health")
def health(server: Server) -> Response:
    status = "ok"
    try:
        with server.database.read() as session:
            session.execute(text("SELECT 1"))
    except SQLAlchemyError:
        status = "error"
    checked = server.clock.now() // 1000
    pools = [{"name": name, "lastCheck": checked, "status": status} for name in ("read_pool", "write_pool")]
    body = {
        "health": status,
        "services": {"catalog": pools, "secrets": pools, "auth": []},
        "maintenance_mode": "off",
    }
    return json_response(body, 200 if status == "ok" else 503)


@router.get("/management/v1/info")
def info(server: Server) -> Response:
    with server.database.read() as session:
        bootstrapped = session.scalars(select(ServerRow.bootstrapped)).one()
    license_status = {"issuer": None, "audience": "lakekeeper-core", "license-type": "Apache-2.0", "valid": True}
    return json_response(
        {
            "version": VERSION,
            "lakekeeper-version": VERSION,
            "bootstrapped": bootstrapped,
            "server-id": server.server_id,
            "default-project-id": server.settings.default_project,
            "authz-backend": "allow-all",
            "aws-system-identities-enabled": server.settings.aws_system_identity,
            "azure-system-identities-enabled": False,
            "gcp-system-identities-enabled": False,
            "queues": QUEUES,
            "license-status": license_status,
        }
    )


class BootstrapRequest(Body):
    accept_terms_of_use: bool
    is_operator: bool = False


@router.post("/management/v1/bootstrap")
def bootstrap(server: Server, body: Annotated[BootstrapRequest, read_body(BootstrapRequest)]) -> Response:
    if not body.accept_terms_of_use:
        message = "You must accept the terms of use to bootstrap the catalog."
        raise ApiError(400, "TermsOfUseNotAccepted", message)
    with server.database.write() as session:
        row = session.scalars(select(ServerRow)).one()
        if row.bootstrapped:
            raise ApiError(400, "CatalogAlreadyBootstrapped", "Catalog is not open for bootstrap")
        row.bootstrapped = True
        project_id = server.settings.default_project
        if session.get(Project, project_id) is None:
            session.add(Project(id=project_id, name="Default Project", created_at=server.clock.now()))
    return empty()


@router.get("/management/v1/whoami")
def whoami() -> Response:
    raise ApiError(401, "GetMyUserWithoutToken", "No token provided")
