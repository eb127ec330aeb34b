"""A table in a separate program, on both engines: previews show drift that `up` does not undo, and `up` refuses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.provider.programs.program_stack import FAILED, ProgramStack, format_messages
from tests.integration.provider.resource import Props, Resource

PROGRAM = """
import json, os
from lakewright.lakekeeper import Table

declaration = json.loads(os.environ["DECLARED"])
Table("orders", namespace="sales", name="orders", **declaration)
"""
COLUMNS = [{"name": "id", "type": "long", "required": True}, {"name": "note", "type": "string"}]


@pytest.fixture(params=["embedded", pytest.param("pulumi", marks=pytest.mark.pulumi_cli)])
def stack(request: Any, tmp_path: Path, server: Props, warehouse: Resource, http: httpx.Client) -> ProgramStack:
    http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["sales"]}).raise_for_status()
    return ProgramStack(
        tmp_path, request.param, PROGRAM, {"server": server, "warehouse_id": warehouse.id, "columns": COLUMNS}
    )


def test_preview_refuses_a_column_that_a_job_added(
    stack: ProgramStack, warehouse: Resource, http: httpx.Client
) -> None:
    stack.run("up")
    url = f"/catalog/v1/{warehouse.id}/namespaces/sales/tables/orders"
    fields = http.get(url).json()["metadata"]["schemas"][0]["fields"]
    extra = {"id": 3, "name": "extra", "required": False, "type": "string"}
    schema = {"type": "struct", "schema-id": 1, "fields": [*fields, extra]}
    updates = [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]
    http.post(url, json={"requirements": [], "updates": updates}).raise_for_status()

    drift = stack.run("refresh", "--preview-only", "--expect-no-changes", exits=[7])
    (step,) = (item for item in drift["steps"] if item["name"] == "orders")
    assert step["op"] == "refresh"
    for verb in (["preview", "--refresh"], ["up", "--refresh"]):
        refused = format_messages(stack.run(*verb, exits=FAILED))
        assert "table `sales.orders`" in refused
        assert "`extra` is in the table and not declared" in refused
        assert "lakewright/lakekeeper" not in refused  # No traceback of the provider.
    stack.run("refresh", "--yes")
    assert "`extra` is in the table and not declared" in format_messages(stack.run("preview", exits=FAILED))

    narrowed = [{"name": "id", "type": "int", "required": True}, *COLUMNS[1:]]
    unsafe = format_messages(stack.run("preview", columns=narrowed, exits=FAILED))
    assert "`id`: long -> int would narrow it" in unsafe
