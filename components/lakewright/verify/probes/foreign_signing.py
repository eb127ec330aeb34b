"""Probe: the catalog signs no request for files outside of the unit's tables, nor for other addresses."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.verify.attempts.catalog_access import CatalogResponse
from lakewright.verify.attempts.check import Attempt, Found, expect_denied
from lakewright.verify.probes.foreign_catalog import foreign_warehouses, list_namespaces, visibility
from lakewright.verify.probes.other_prefixes import CANARY
from lakewright.verify.session.sessions import WarehouseSession
from lakewright.verify.table.object_store import StoreAddress, sign_request
from lakewright.verify.table.probe_table import Location

METADATA_URL = "http://169.254.169.254/latest/meta-data/iam/security-credentials/"


def probe_foreign_signing(session: WarehouseSession) -> Iterator[Attempt]:
    """Ask for signatures with the signers of the own warehouse and of other tenants' warehouses."""
    table = session.table("first")
    address = StoreAddress.from_config(session.warehouse.s3)
    own = f"/catalog/v1/signer/{session.warehouse.id}/tabular-id/{table.metadata['table-uuid']}/v1/aws/s3/sign"
    project = session.tenant.config.project_id

    def sign(path: str, method: str, url: str, project_id: str | None) -> CatalogResponse:
        body = sign_request(method, url, address.region)
        return session.identity.catalog.request("POST", path, body=body, project=project_id)

    targets = [("an object beside the warehouse", address.url(table.location.bucket, f"{CANARY}/object"))]
    targets += [
        (f"tenant {place.project_id}'s prefix", address.url(place.bucket, f"{place.key_prefix}/{CANARY}"))
        for place in session.tenant.others_on_store(session.place)
    ]
    targets.append(("the metadata address", METADATA_URL))
    for title, url in targets:
        for method in ("GET", "PUT"):
            response = sign(own, method, url, project)
            yield expect_denied(f"have {method} of {title} signed", _found(response), str(response))
    for foreign in foreign_warehouses(session.identity):
        listed = list_namespaces(session.identity, foreign)
        for declared in foreign.tables:
            path = f"/catalog/v1/signer/{foreign.warehouse_id}/tabular-id/{declared.table_id}/v1/aws/s3/sign"
            place = Location.parse(declared.location) if declared.location else table.location
            response = sign(path, "GET", address.url(place.bucket, f"{place.key}/data/{CANARY}"), foreign.project_id)
            title = f"use the signer of {declared.namespace}.{declared.name} of {foreign.title}"
            yield expect_denied(title, visibility(response, listed), str(response))


def _found(response: CatalogResponse) -> Found:
    """Return whether signing was refused. The server refuses with 400, 403 and 404, by the reason."""
    if response.is_success:
        return "allowed"
    return "denied" if 400 <= response.status < 500 and response.kind else "not proven"
