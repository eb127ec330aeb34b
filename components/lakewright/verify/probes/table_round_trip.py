"""Probe: the unit writes, reads and drops a table in each of its warehouses, as its jobs do."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.client_access.check import Attempt, Note, expect_allowed
from lakewright.client_access.errors import ProbeFailedError
from lakewright.verify.session.sessions import WarehouseSession


def probe_table_round_trip(session: WarehouseSession) -> Iterator[Attempt | Note]:
    """Write, read and drop a table. A failed step is the last step."""
    if not session.warehouse.may_delete:
        yield Note(
            f"{session.warehouse.name}: the files of probe tables remain, as the storage has `may_delete: false`"
        )
    name, delegation = session.warehouse.name, session.warehouse.delegation
    config = session.tenant.config
    response = session.identity.catalog.request(
        "GET", "/catalog/v1/config", params={"warehouse": f"{config.project_id}/{name}"}
    )
    result = "allowed" if response.is_success else "denied"
    yield expect_allowed("read the catalog configuration", result, f"config: {response}")
    step = "write"
    try:
        table = session.ensure_table("written")
        written = table.append()
        yield expect_allowed("write a table", "allowed", f"{delegation}: PUT {written}, commit 200")
        step = "read"
        yield expect_allowed("read the table", "allowed", f"{delegation}: GET {table.read()}")
        step = "drop"
        dropped = table.drop()
        session.forget("written")
        title = "drop and purge the table" if session.warehouse.may_delete else "drop the table"
        yield expect_allowed(title, "allowed", f"drop: {dropped}")
    except ProbeFailedError as error:
        yield expect_allowed(f"{step} a table", "denied", str(error))
