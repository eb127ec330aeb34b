"""Probe: the catalog authenticates its callers, and enforces rights."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.client_access.catalog_access import CatalogAccess
from lakewright.client_access.check import Attempt, expect_allowed, expect_denied
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.server import NoServerAuth, ServerRef
from lakewright.verify.session.sessions import RETRY, IdentitySession

ALLOW_ALL = "allow-all"
_REMEDY = "start Lakekeeper with the authorizer `openfga`, and with an identity provider that authenticates its callers"


def probe_authorization(session: IdentitySession) -> Iterator[Attempt]:
    """Check the server's authorizer, and that requests without a token are refused."""
    info = session.server.request("GET", "/management/v1/info")
    backend = str(info.body.get("authz-backend") or "")
    if not info.is_success or not backend:
        yield expect_allowed("have rights enforced", "not proven", f"info: {info}")
    elif backend == ALLOW_ALL:
        yield expect_allowed(
            "have rights enforced", "denied", "no isolation: the catalog allows every request", _REMEDY
        )
    else:
        yield expect_allowed("have rights enforced", "allowed", f"authz-backend {backend}")
    anonymous = _open_anonymous_access(session)
    try:
        response = anonymous.request("GET", "/catalog/v1/config", params={"warehouse": _format_any_warehouse(session)})
    finally:
        anonymous.close()
    yield expect_denied("use the catalog without a token", response.judge_denial(), f"config: {response}")


def _open_anonymous_access(session: IdentitySession) -> CatalogAccess:
    bundle = session.tenant.settings.server.ca_bundle
    server = ServerRef(endpoint=session.catalog.endpoint, auth=NoServerAuth(), ca_bundle=bundle)
    return CatalogAccess(Client(server, lambda reference: reference, retry=RETRY))


def _format_any_warehouse(session: IdentitySession) -> str:
    config = session.tenant.config
    return f"{config.project_id}/{config.warehouses[0].name}"
