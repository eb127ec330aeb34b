"""Probe: the catalog shows a unit nothing of other tenants: configuration, namespaces, tables, credentials."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

from lakewright.lakekeeper.api.catalog.namespaces import joined
from lakewright.verify.attempts.catalog_access import HIDDEN_WAREHOUSE, CatalogResponse
from lakewright.verify.attempts.check import Attempt, Found, expect_denied
from lakewright.verify.session.places import DeclaredTable, WarehousePlace
from lakewright.verify.session.sessions import IdentitySession

HIDDEN = (*HIDDEN_WAREHOUSE, "ProjectNotFound")
"""Types of a 404 for a warehouse or project that the identity cannot see."""
_INSIDE = frozenset({"NoSuchTableException", "NoSuchNamespaceException", "NoSuchTableLocationException"})
"""Types of a refusal for a table that is missing or hidden."""


@dataclass(frozen=True)
class ForeignWarehouse:
    """A warehouse that the identity must not see."""

    title: str
    project_id: str
    name: str
    warehouse_id: str
    tables: tuple[DeclaredTable, ...] = (DeclaredTable("lakewright_verify", "canary", str(uuid.UUID(int=0)), ""),)
    """Tables that exist; without any, a canary that does not exist."""


def foreign_warehouses(session: IdentitySession) -> list[ForeignWarehouse]:
    """Return the other tenants' warehouses on the same server, and the tenant's that the unit does not have.

    Without another tenant there is a canary: a warehouse that does not exist.
    """
    tenant = session.tenant
    hidden = [place for place in tenant.places if place.name not in session.subject.warehouses]
    others = tenant.others_on_server
    found = [_foreign(place, tenant.spec.project_id) for place in (*others, *hidden)]
    if not others:
        canary = f"lakewright-verify-{secrets.token_hex(4)}"
        title = "a canary (there is no second tenant)"
        found.append(ForeignWarehouse(title, canary, "executions", str(uuid.uuid4())))
    return found


def _foreign(place: WarehousePlace, tenant: str) -> ForeignWarehouse:
    whose = "the tenant's" if place.project_id == tenant else f"tenant {place.project_id}'s"
    found = ForeignWarehouse(f"{whose} {place.name}", place.project_id, place.name, place.warehouse_id)
    return replace(found, tables=place.tables) if place.tables else found


def visibility(response: CatalogResponse, listed: CatalogResponse) -> Found:
    """Return whether a request about a table was denied.

    Args:
        response: The response.
        listed: The response to listing the namespaces of the table's warehouse.
    """
    # The server answers alike for a table that is missing and one that is hidden. It is hidden if its warehouse is: a
    # right to one table of a warehouse is enough to list the warehouse's namespaces.
    if response.kind in _INSIDE:
        return listed.denial(*HIDDEN)
    return response.denial(*HIDDEN)


def list_namespaces(session: IdentitySession, foreign: ForeignWarehouse) -> CatalogResponse:
    """Ask for the namespaces of a warehouse."""
    return session.catalog.request("GET", f"/catalog/v1/{foreign.warehouse_id}/namespaces", project=foreign.project_id)


def probe_foreign_catalog(session: IdentitySession) -> Iterator[Attempt]:
    """Ask for what belongs to other tenants."""
    for foreign in foreign_warehouses(session):
        catalog, project = session.catalog, foreign.project_id
        config = catalog.request(
            "GET", "/catalog/v1/config", params={"warehouse": f"{project}/{foreign.name}"}, project=project
        )
        yield expect_denied(f"read the catalog configuration of {foreign.title}", config.denial(*HIDDEN), str(config))
        listed = list_namespaces(session, foreign)
        yield expect_denied(f"list the namespaces of {foreign.title}", listed.denial(*HIDDEN), str(listed))
        for table in foreign.tables:
            levels = quote(joined(tuple(table.namespace.split("."))), safe="")
            root = f"/catalog/v1/{foreign.warehouse_id}/namespaces/{levels}/tables/{quote(table.name, safe='')}"
            for attempt, path in (("load table", root), ("get credentials of table", f"{root}/credentials")):
                response = catalog.request("GET", path, project=project)
                title = f"{attempt} {table.namespace}.{table.name} of {foreign.title}"
                yield expect_denied(title, visibility(response, listed), str(response))
