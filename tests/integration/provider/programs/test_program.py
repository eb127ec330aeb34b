"""The provider in a separate program, on both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.programs.program_stack import FAILED, ProgramStack, format_messages
from tests.integration.provider.resource import Props

PROGRAM = """
import json, os, pulumi
from lakewright.lakekeeper import (
    Bootstrap, DeletionGuard, ExternalId, Namespace, Project, Warehouse, get_server_info, get_warehouse_output
)

declaration = json.loads(os.environ["DECLARED"])
server = declaration["server"]
bootstrap = Bootstrap("server", server=server, accept_terms_of_use=True)
external = ExternalId("external-id")
within = pulumi.ResourceOptions(depends_on=[bootstrap])
project = Project(
    "tenant",
    server=server,
    project_id=declaration["project_id"],
    name="tenant",
    adopt=declaration.get("adopt", False),
    opts=within,
)
deletion = declaration["deletion"]
warehouse = Warehouse(
    "main",
    server=server,
    project_id=project.project_id,
    name=declaration["name"],
    storage=declaration["storage"],
    credential={**declaration["credential"], "external_id": external.value},
    delete_profile={"type": "soft", "expiration_seconds": declaration["expiration"]},
    deletion=deletion,
)
sales = Namespace("sales", server=server, warehouse_id=warehouse.warehouse_id, name="sales", deletion=deletion)
DeletionGuard(
    "guard",
    server=server,
    warehouses={"main": warehouse.warehouse_id},
    deletion=deletion,
    opts=pulumi.ResourceOptions(depends_on=[sales]),
)
pulumi.export("warehouse_id", warehouse.warehouse_id)
pulumi.export("external_id", external.value)
pulumi.export("authorizer", get_server_info(server=server).authz_backend)
live_warehouse = get_warehouse_output(server=server, warehouse_id=warehouse.warehouse_id)
pulumi.export("bucket", live_warehouse.storage["bucket"])
"""


@pytest.fixture(params=["embedded", pytest.param("pulumi", marks=pytest.mark.pulumi_cli)])
def stack(  # noqa: PLR0917 - fixtures
    request: Any, tmp_path: Path, server: Props, storage: Props, keys: Props, unique: str
) -> ProgramStack:
    declaration = {"server": server, "project_id": unique, "name": "main", "storage": storage, "credential": keys}
    return ProgramStack(tmp_path, request.param, PROGRAM, {**declaration, "deletion": "protect", "expiration": 3600})


@pytest.mark.timeout(600)  # about ten commands, each of which is two processes on the Pulumi CLI
def test_stack_from_first_up_to_purge(
    stack: ProgramStack, sandbox: Sandbox, http: httpx.Client, make_table: Any, objects: Any
) -> None:
    result = stack.run("up")
    assert result["changes"] == {"create": 7}
    info = http.get("/management/v1/info").raise_for_status().json()
    assert result["outputs"]["authorizer"] == info["authz-backend"]
    assert result["outputs"]["bucket"] == stack.declaration["storage"]["bucket"]
    assert stack.run("preview", "--expect-no-changes", "--refresh")["changes"] == {"same": 7}
    warehouse_id = result["outputs"]["warehouse_id"]

    # A refresh finds another user's changes, and `up` restores them.
    soft = {"delete-profile": {"type": "soft", "expiration-seconds": 60}}
    http.post(f"/management/v1/warehouse/{warehouse_id}/delete-profile", json=soft).raise_for_status()
    http.delete(f"/catalog/v1/{warehouse_id}/namespaces/sales").raise_for_status()
    drift = stack.run("preview", "--refresh", "--expect-no-changes", exits=[7])
    assert {step["name"] for step in drift["steps"] if step["op"] in {"update", "create"}} == {"main", "sales"}
    stack.run("up", "--refresh")
    assert stack.run("preview", "--expect-no-changes", "--refresh")["changes"] == {"same": 7}

    # It also does this for a deactivated warehouse, whose contents are hidden until the warehouse is active.
    http.delete(f"/catalog/v1/{warehouse_id}/namespaces/sales").raise_for_status()
    http.post(f"/management/v1/warehouse/{warehouse_id}/deactivate").raise_for_status()
    hidden = stack.run("preview", "--refresh", "--expect-no-changes", exits=[7])
    assert {step["name"] for step in hidden["steps"] if step["op"] == "update"} == {"main", "sales"}
    stack.run("up", "--refresh")
    assert stack.run("preview", "--expect-no-changes", "--refresh")["changes"] == {"same": 7}

    # The state contains no secret; its secret outputs are encrypted.
    for secret in (sandbox.admin.secret_access_key.get_secret_value(), sandbox.admin.access_key_id):
        assert secret not in stack.state()

    # With a table in it, nothing is destroyed or replaced, and the reason is one sentence.
    make_table(warehouse_id, "sales", "orders")
    refused = format_messages(stack.run("destroy", exits=FAILED))
    assert "HoldsTablesError: nothing was destroyed" in refused
    assert "1 table: sales.orders" in refused
    assert "Traceback" not in refused
    moved = stack.run("preview", storage=stack.declaration["storage"] | {"key_prefix": "moved"}, exits=FAILED)
    assert "HoldsTablesError: warehouse `main`" in format_messages(moved)

    stack.declaration["deletion"] = "purge"
    assert stack.run("preview")["changes"] == {"same": 4, "update": 3}
    stack.run("up")
    stack.run("destroy")
    assert http.get(f"/management/v1/warehouse/{warehouse_id}").status_code == 404
    assert objects() == []


def test_preview_reports_the_changes_of_adoption(stack: ProgramStack, project_id: str) -> None:
    text = stack.output("preview", adopt=True)
    assert f"note: project {project_id} at http" in text
    changes = f"exists already and is adopted; this changes: name: '{project_id}' -> 'tenant'"
    assert changes in text
    notes = [message for message in stack.run("preview", adopt=True)["messages"] if message.startswith("note: project")]
    assert len(notes) == 1
    assert changes in notes[0]


def test_all_mistakes_are_reported_with_their_properties(stack: ProgramStack) -> None:
    bad = {"bucket": "B", "region": "us-east-1", "nonsense": 1}
    text = format_messages(stack.run("preview", storage=bad, deletion="never", exits=FAILED))
    for expected in ("storage.bucket", "storage.nonsense", "deletion", "is not a property here"):
        assert expected in text
    assert "lakewright/lakekeeper" not in text  # No traceback of the provider.


def test_unreachable_server_is_one_sentence(stack: ProgramStack) -> None:
    text = format_messages(stack.run("up", server={"endpoint": "http://127.0.0.1:9"}, exits=FAILED))
    assert "UnreachableError: Lakekeeper at http://127.0.0.1:9 cannot be reached" in text
    assert "lakewright/lakekeeper" not in text
