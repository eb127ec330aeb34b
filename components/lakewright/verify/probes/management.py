"""Probe: a unit administers nothing: neither the server, nor its own warehouses, nor those of others."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from lakewright.validation.documents import list_of, mapping_of
from lakewright.verify.attempts.catalog_access import HIDDEN_WAREHOUSE, CatalogAccess
from lakewright.verify.attempts.check import Attempt, expect_denied
from lakewright.verify.probes.foreign_catalog import foreign_warehouses
from lakewright.verify.session.sessions import IdentitySession

SHARED_WITH_MAINTENANCE = (
    "the maintenance jobs use the same client, and may change warehouses: set `maintenance.identity` in the spec to"
    " another client, then run `lakewright up`"
)
"""Remedy of a unit that may administer its warehouses."""
_V1 = "/management/v1"


def probe_management(session: IdentitySession) -> Iterator[Attempt]:
    """Try the management API at the address of jobs, and at the server's own address if it is another one."""
    yield from _at(session, session.catalog)
    if session.server is not session.catalog:
        yield from _at(session, session.server)


def _at(session: IdentitySession, access: CatalogAccess) -> Iterator[Attempt]:
    where = f"at {access.endpoint}"
    info = access.request("GET", f"{_V1}/info")
    if info.status in {403, 404, 405} and not info.kind:
        # No Lakekeeper answers here: the gateway forwards the catalog only.
        yield expect_denied(f"reach the management API {where}", "denied", f"info: {info}, by the gateway")
        return
    yield _create_project(access, where)
    project = session.tenant.config.project_id
    users = access.request("GET", f"{_V1}/user", project=project)
    yield expect_denied(f"list the server's users {where}", users.denial(), str(users))
    yield _other_projects(access, project, where)
    if access is session.catalog:
        # Units with a gateway in front of the server cannot reach the server's own address.
        yield from _own_warehouses(session, where)
    for foreign in foreign_warehouses(session):
        read = access.request("GET", f"{_V1}/warehouse/{foreign.warehouse_id}", project=foreign.project_id)
        yield expect_denied(f"read {foreign.title} {where}", read.denial(*HIDDEN_WAREHOUSE), str(read))


def _own_warehouses(session: IdentitySession, where: str) -> Iterator[Attempt]:
    access, project = session.catalog, session.tenant.config.project_id
    remedy = SHARED_WITH_MAINTENANCE if session.subject.is_shared_with_maintenance else ""
    for name in session.subject.warehouses:
        warehouse_id = session.tenant.config.warehouse(name).id
        # The warehouse is active, so that the request changes nothing if it is allowed.
        activated = access.request("POST", f"{_V1}/warehouse/{warehouse_id}/activate", project=project)
        administered = f"administer warehouse {name} {where}"
        yield expect_denied(administered, activated.denial(), f"activate: {activated}", remedy)
        read = access.request("GET", f"{_V1}/permissions/warehouse/{warehouse_id}/assignments", project=project)
        yield expect_denied(f"read the grants of warehouse {name} {where}", read.denial(), str(read), remedy)


def _create_project(access: CatalogAccess, where: str) -> Attempt:
    canary = f"lakewright-verify-{secrets.token_hex(4)}"
    made = access.request("POST", f"{_V1}/project", body={"project-name": canary, "project-id": canary})
    evidence = str(made)
    if made.is_success:
        removed = access.request("DELETE", f"{_V1}/project", project=canary)
        evidence += "; removed again" if removed.is_success else f"; project {canary} is left: {removed}"
    return expect_denied(f"create a project {where}", made.denial(), evidence)


def _other_projects(access: CatalogAccess, own: str | None, where: str) -> Attempt:
    listed = access.request("GET", f"{_V1}/project-list")
    if not listed.is_success:
        return expect_denied(f"see other projects {where}", listed.denial(), str(listed))
    ids = [mapping_of(project).get("project-id") for project in list_of(listed.body.get("projects"))]
    others = [project for project in ids if project != own]
    return expect_denied(
        f"see other projects {where}", "allowed" if others else "denied", f"200, {len(others)} other projects listed"
    )
