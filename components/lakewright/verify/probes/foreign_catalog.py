"""Probe: the catalog shows a unit nothing of other tenants: configuration, namespaces, tables, credentials."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from lakewright.lakekeeper.api.catalog.namespaces import joined
from lakewright.verify.attempts.catalog_access import HIDDEN_WAREHOUSE
from lakewright.verify.attempts.check import Attempt, expect_denied
from lakewright.verify.session.sessions import IdentitySession

_HIDDEN = (*HIDDEN_WAREHOUSE, "ProjectNotFound")
_INSIDE = frozenset({"NoSuchTableException", "NoSuchNamespaceException"})
"""Types of a 404 for a table that is missing or hidden. It is hidden if its warehouse is: a right to one
table of a warehouse is enough to list the warehouse's namespaces."""


@dataclass(frozen=True)
class ForeignWarehouse:
    """A warehouse that the identity must not see."""

    title: str
    project_id: str
    name: str
    warehouse_id: str
    tables: tuple[tuple[str, str], ...] = ()
    """Namespace and name of tables that exist."""


def foreign_warehouses(session: IdentitySession) -> list[ForeignWarehouse]:
    """Return the other tenants' warehouses on the same server, and the tenant's that the unit does not have.

    Without another tenant there is a canary: a warehouse that does not exist.
    """
    endpoint = session.tenant.settings.server.endpoint
    others = [
        ForeignWarehouse(
            f"tenant {place.project_id}'s {place.name}", place.project_id, place.name, place.warehouse_id, place.tables
        )
        for place in session.tenant.others
        if place.endpoint == endpoint
    ]
    if not others:
        canary = f"lakewright-verify-{secrets.token_hex(4)}"
        others = [ForeignWarehouse("a canary (there is no second tenant)", canary, "executions", str(uuid.uuid4()))]
    return others


def probe_foreign_catalog(session: IdentitySession) -> Iterator[Attempt]:
    """Ask for what belongs to other tenants."""
    for foreign in foreign_warehouses(session):
        catalog, project = session.catalog, foreign.project_id
        config = catalog.request(
            "GET", "/catalog/v1/config", params={"warehouse": f"{project}/{foreign.name}"}, project=project
        )
        yield expect_denied(f"read the catalog configuration of {foreign.title}", config.denial(*_HIDDEN), str(config))
        root = f"/catalog/v1/{foreign.warehouse_id}/namespaces"
        listed = catalog.request("GET", root, project=project)
        is_hidden = listed.denial(*_HIDDEN)
        yield expect_denied(f"list the namespaces of {foreign.title}", is_hidden, str(listed))
        for namespace, name in foreign.tables or (("lakewright_verify", "canary"),):
            levels = quote(joined(tuple(namespace.split("."))), safe="")
            table = f"{root}/{levels}/tables/{quote(name, safe='')}"
            for attempt, path in (("load table", table), ("get credentials of table", f"{table}/credentials")):
                response = catalog.request("GET", path, project=project)
                found = response.denial(*_HIDDEN)
                if response.status == 404 and response.kind in _INSIDE:
                    found = is_hidden
                yield expect_denied(f"{attempt} {namespace}.{name} of {foreign.title}", found, str(response))
