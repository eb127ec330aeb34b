"""Probe: a unit administers nothing: neither the server, nor its own warehouses, nor other tenants' warehouses."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from lakewright.client_access.catalog_access import HIDDEN_WAREHOUSE, CatalogAccess
from lakewright.client_access.check import Attempt, expect_denied
from lakewright.validation.documents import as_list, as_mapping
from lakewright.verify.probes.foreign_warehouses import list_foreign_warehouses
from lakewright.verify.session.sessions import IdentitySession

SHARED_WITH_MAINTENANCE = (
    "the maintenance jobs use the same client, and may change warehouses: set `maintenance.identity` in the spec to"
    " another client, then run `lakewright up`"
)
"""Remedy of a unit that may administer its warehouses."""
_V1 = "/management/v1"


def probe_management(session: IdentitySession) -> Iterator[Attempt]:
    """Try the management API at the address of jobs, and at the server's own address if it differs."""
    yield from _try_address(session, session.catalog)
    if session.server is not session.catalog:
        yield from _try_address(session, session.server)


def _try_address(session: IdentitySession, access: CatalogAccess) -> Iterator[Attempt]:
    address_suffix = f"at {access.endpoint}"
    info = access.request("GET", f"{_V1}/info")
    if info.status in {403, 404, 405} and not info.kind:
        # No Lakekeeper responds here: the gateway forwards the catalog only.
        yield expect_denied(f"reach the management API {address_suffix}", "denied", f"info: {info}, by the gateway")
        return
    yield _try_create_project(access, address_suffix)
    project = session.tenant.config.project_id
    users = access.request("GET", f"{_V1}/user", project=project)
    yield expect_denied(f"list the server's users {address_suffix}", users.judge_denial(), str(users))
    yield _try_other_projects(access, project, address_suffix)
    if access is session.catalog:
        # Units with a gateway in front of the server cannot reach the server's own address.
        yield from _try_own_warehouses(session, address_suffix)
    for foreign in list_foreign_warehouses(session):
        read = access.request("GET", f"{_V1}/warehouse/{foreign.warehouse_id}", project=foreign.project_id)
        yield expect_denied(f"read {foreign.title} {address_suffix}", read.judge_denial(*HIDDEN_WAREHOUSE), str(read))


def _try_own_warehouses(session: IdentitySession, address_suffix: str) -> Iterator[Attempt]:
    access, project = session.catalog, session.tenant.config.project_id
    remedy = SHARED_WITH_MAINTENANCE if session.subject.is_shared_with_maintenance else ""
    for name in session.subject.warehouses:
        warehouse_id = session.tenant.config.warehouse(name).id
        # The warehouse is active, so that the request changes nothing if it is allowed.
        activated = access.request("POST", f"{_V1}/warehouse/{warehouse_id}/activate", project=project)
        administered = f"administer warehouse {name} {address_suffix}"
        yield expect_denied(administered, activated.judge_denial(), f"activate: {activated}", remedy)
        read = access.request("GET", f"{_V1}/permissions/warehouse/{warehouse_id}/assignments", project=project)
        yield expect_denied(
            f"read the grants of warehouse {name} {address_suffix}", read.judge_denial(), str(read), remedy
        )


def _try_create_project(access: CatalogAccess, address_suffix: str) -> Attempt:
    canary = f"lakewright-verify-{secrets.token_hex(4)}"
    response = access.request("POST", f"{_V1}/project", body={"project-name": canary, "project-id": canary})
    evidence = str(response)
    if response.is_success:
        delete_response = access.request("DELETE", f"{_V1}/project", project=canary)
        evidence += (
            "; removed again" if delete_response.is_success else f"; project {canary} is left: {delete_response}"
        )
    return expect_denied(f"create a project {address_suffix}", response.judge_denial(), evidence)


def _try_other_projects(access: CatalogAccess, own_project: str | None, address_suffix: str) -> Attempt:
    response = access.request("GET", f"{_V1}/project-list")
    if not response.is_success:
        return expect_denied(f"see other projects {address_suffix}", response.judge_denial(), str(response))
    ids = [as_mapping(project).get("project-id") for project in as_list(response.body.get("projects"))]
    other_projects = [project for project in ids if project != own_project]
    return expect_denied(
        f"see other projects {address_suffix}",
        "allowed" if other_projects else "denied",
        f"200, {len(other_projects)} other projects listed",
    )
