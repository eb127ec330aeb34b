"""Probes: the catalog shows a unit nothing of other tenants, and signs no request for files outside of its tables."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

from lakewright.client_access.catalog_access import HIDDEN_WAREHOUSE, CatalogResponse
from lakewright.client_access.check import Attempt, AttemptResult, expect_denied
from lakewright.client_access.object_store import StoreAddress, make_sign_request
from lakewright.client_access.probe_table import Location
from lakewright.lakekeeper.api.catalog.namespaces import join_levels
from lakewright.verify.probes.table_access import CANARY
from lakewright.verify.session.sessions import IdentitySession, WarehouseSession
from lakewright.verify.session.stack_warehouses import DeclaredTable, StackWarehouse

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


def list_foreign_warehouses(session: IdentitySession) -> list[ForeignWarehouse]:
    """Return the other tenants' warehouses on the server, and the tenant's warehouses that the unit does not have.

    Without another tenant there is a canary: a warehouse that does not exist.
    """
    tenant = session.tenant
    visible = {*session.subject.warehouses, *session.visible_warehouses}
    hidden = [warehouse for warehouse in tenant.warehouses if warehouse.name not in visible]
    other_warehouses = tenant.other_warehouses_on_server
    foreign_warehouses = [
        *(_make_foreign_warehouse(warehouse, f"tenant {warehouse.tenant}'s") for warehouse in other_warehouses),
        *(_make_foreign_warehouse(warehouse, "the tenant's") for warehouse in hidden),
    ]
    if not other_warehouses:
        canary = f"lakewright-verify-{secrets.token_hex(4)}"
        title = "a canary (there is no second tenant)"
        foreign_warehouses.append(ForeignWarehouse(title, canary, "executions", str(uuid.uuid4())))
    return foreign_warehouses


def _make_foreign_warehouse(warehouse: StackWarehouse, owner: str) -> ForeignWarehouse:
    foreign = ForeignWarehouse(
        f"{owner} {warehouse.name}", warehouse.project_id, warehouse.name, warehouse.warehouse_id
    )
    return replace(foreign, tables=warehouse.tables) if warehouse.tables else foreign


def judge_visibility(response: CatalogResponse, namespaces_response: CatalogResponse) -> AttemptResult:
    """Return whether a request about a table was denied.

    Args:
        response: The response.
        namespaces_response: The response to listing the namespaces of the table's warehouse.
    """
    # The server sends equal responses for a missing and a hidden table. A table is hidden if its warehouse is hidden: a
    # right to one table of a warehouse is enough to list the warehouse's namespaces.
    if response.kind in _INSIDE:
        return namespaces_response.judge_denial(*HIDDEN)
    return response.judge_denial(*HIDDEN)


def list_namespaces(session: IdentitySession, foreign: ForeignWarehouse) -> CatalogResponse:
    """Ask for the namespaces of a warehouse."""
    return session.catalog.request("GET", f"/catalog/v1/{foreign.warehouse_id}/namespaces", project=foreign.project_id)


def probe_foreign_catalog(session: IdentitySession) -> Iterator[Attempt]:
    """Request objects of other tenants."""
    for foreign in list_foreign_warehouses(session):
        catalog, project = session.catalog, foreign.project_id
        config = catalog.request(
            "GET", "/catalog/v1/config", params={"warehouse": f"{project}/{foreign.name}"}, project=project
        )
        yield expect_denied(
            f"read the catalog configuration of {foreign.title}", config.judge_denial(*HIDDEN), str(config)
        )
        namespaces_response = list_namespaces(session, foreign)
        yield expect_denied(
            f"list the namespaces of {foreign.title}",
            namespaces_response.judge_denial(*HIDDEN),
            str(namespaces_response),
        )
        for table in foreign.tables:
            levels = quote(join_levels(tuple(table.namespace.split("."))), safe="")
            root = f"/catalog/v1/{foreign.warehouse_id}/namespaces/{levels}/tables/{quote(table.name, safe='')}"
            for attempt, path in (("load table", root), ("get credentials of table", f"{root}/credentials")):
                response = catalog.request("GET", path, project=project)
                title = f"{attempt} {table.namespace}.{table.name} of {foreign.title}"
                yield expect_denied(title, judge_visibility(response, namespaces_response), str(response))


METADATA_URL = "http://169.254.169.254/latest/meta-data/iam/security-credentials/"


def probe_foreign_signing(session: WarehouseSession) -> Iterator[Attempt]:
    """Ask for signatures with the signers of the own warehouse and of other tenants' warehouses."""
    table = session.ensure_table("first")
    address = StoreAddress.from_config(session.warehouse.s3)
    own_signer_path = (
        f"/catalog/v1/signer/{session.warehouse.id}/tabular-id/{table.metadata['table-uuid']}/v1/aws/s3/sign"
    )
    project = session.tenant.config.project_id

    def sign(path: str, method: str, url: str, project_id: str | None) -> CatalogResponse:
        body = make_sign_request(method, url, address.region)
        return session.identity.catalog.request("POST", path, body=body, project=project_id)

    targets = [("an object outside the warehouse", address.build_url(table.location.bucket, f"{CANARY}/object"))]
    targets += [
        (
            f"tenant {warehouse.tenant}'s prefix",
            address.build_url(warehouse.bucket, f"{warehouse.key_prefix}/{CANARY}"),
        )
        for warehouse in session.tenant.list_other_warehouses_on_store(session.stack_warehouse)
    ]
    targets.append(("the metadata address", METADATA_URL))
    for title, url in targets:
        for method in ("GET", "PUT"):
            response = sign(own_signer_path, method, url, project)
            yield expect_denied(f"have {method} of {title} signed", _judge_signing(response), str(response))
    for foreign in list_foreign_warehouses(session.identity):
        namespaces_response = list_namespaces(session.identity, foreign)
        for foreign_table in foreign.tables:
            path = f"/catalog/v1/signer/{foreign.warehouse_id}/tabular-id/{foreign_table.table_id}/v1/aws/s3/sign"
            location = Location.parse(foreign_table.location) if foreign_table.location else table.location
            response = sign(
                path, "GET", address.build_url(location.bucket, f"{location.key}/data/{CANARY}"), foreign.project_id
            )
            title = f"use the signer of {foreign_table.namespace}.{foreign_table.name} of {foreign.title}"
            yield expect_denied(title, judge_visibility(response, namespaces_response), str(response))


def _judge_signing(response: CatalogResponse) -> AttemptResult:
    """Return whether signing was refused. The server refuses with 400, 403 and 404, by the reason."""
    if response.is_success:
        return "allowed"
    return "denied" if 400 <= response.status < 500 and response.kind else "not proven"
