"""Probe: the catalog signs no request for files outside of the unit's tables, nor for other addresses."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.client_access.catalog_access import CatalogResponse
from lakewright.client_access.check import Attempt, AttemptResult, expect_denied
from lakewright.client_access.object_store import StoreAddress, make_sign_request
from lakewright.client_access.probe_table import Location
from lakewright.verify.probes.foreign_warehouses import judge_visibility, list_foreign_warehouses, list_namespaces
from lakewright.verify.probes.table_access import CANARY
from lakewright.verify.session.sessions import WarehouseSession

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

    targets = [("an object beside the warehouse", address.build_url(table.location.bucket, f"{CANARY}/object"))]
    targets += [
        (
            f"tenant {warehouse.project_id}'s prefix",
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
