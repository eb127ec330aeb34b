"""The provider in a program of its own, on the real Pulumi CLI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright_sandbox.state import Sandbox

from .conftest import Props

pytestmark = pytest.mark.pulumi_cli

PROGRAM = """
import json, os, pulumi
from lakewright.lakekeeper import Bootstrap, DeletionGuard, ExternalId, Namespace, Project, Warehouse

declared = json.loads(os.environ["DECLARED"])
server = declared["server"]
bootstrap = Bootstrap("server", server=server, accept_terms_of_use=True)
external = ExternalId("external-id")
within = pulumi.ResourceOptions(depends_on=[bootstrap])
project = Project("tenant", server=server, project_id=declared["project_id"], name="tenant", opts=within)
deletion = declared["deletion"]
warehouse = Warehouse(
    "main",
    server=server,
    project_id=project.project_id,
    name=declared["name"],
    storage=declared["storage"],
    credential={**declared["credential"], "external_id": external.value},
    delete_profile={"type": "soft", "expiration_seconds": declared["expiration"]},
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
"""


class Stack:
    """A program and its stack, driven as a person drives it."""

    def __init__(self, directory: Path, declared: Props) -> None:
        self.directory, self.declared = directory, declared
        (directory / "__main__.py").write_text(PROGRAM)
        options = {"name": "python", "options": {"virtualenv": sys.prefix}}
        (directory / "Pulumi.yaml").write_text(json.dumps({"name": "provider", "runtime": options}))
        (directory / "state").mkdir()
        self.run("stack", "init", "test")

    def run(self, *arguments: str, **changes: Any) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PULUMI_BACKEND_URL": f"file://{self.directory}/state",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_HOME": str(self.directory / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "DECLARED": json.dumps(self.declared | changes),
        }
        command = ["pulumi", *arguments, "--non-interactive"]
        return subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True, check=False)

    def steps(self, *arguments: str, **changes: Any) -> Props:
        """What a preview counts."""
        done = self.run("preview", "--json", *arguments, **changes)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["changeSummary"]

    def up(self, *arguments: str, **changes: Any) -> None:
        done = self.run("up", "--yes", "--skip-preview", *arguments, **changes)
        assert done.returncode == 0, done.stdout + done.stderr

    def state(self) -> str:
        return (self.directory / "state/.pulumi/stacks/provider/test.json").read_text()


@pytest.fixture
def stack(tmp_path: Path, server: Props, storage: Props, keys: Props, unique: str) -> Stack:
    declared = {"server": server, "project_id": unique, "name": "main", "storage": storage, "credential": keys}
    return Stack(tmp_path, {**declared, "deletion": "protect", "expiration": 3600})


def test_a_stack_from_first_up_to_purge(
    stack: Stack, sandbox: Sandbox, http: httpx.Client, make_table: Any, objects: Any
) -> None:
    stack.up()
    assert stack.steps("--expect-no-changes", "--refresh") == {"same": 7}

    # A second look finds what somebody changed, and heals it.
    warehouse_id = json.loads(stack.run("stack", "output", "--json").stdout)["warehouse_id"]
    soft = {"delete-profile": {"type": "soft", "expiration-seconds": 60}}
    http.post(f"/management/v1/warehouse/{warehouse_id}/delete-profile", json=soft).raise_for_status()
    http.delete(f"/catalog/v1/{warehouse_id}/namespaces/sales").raise_for_status()
    drift = stack.run("preview", "--refresh", "--expect-no-changes")
    assert drift.returncode != 0
    stack.up("--refresh")
    assert stack.steps("--refresh") == {"same": 7}

    # Secrets stay out of the state; what is secret in it is encrypted.
    external_id = json.loads(stack.run("stack", "output", "--json", "--show-secrets").stdout)["external_id"]
    for secret in (sandbox.admin.secret_access_key.get_secret_value(), sandbox.admin.access_key_id, external_id):
        assert secret not in stack.state()

    # With a table in it, nothing is destroyed or replaced, and the reason is one sentence.
    make_table(warehouse_id, "sales", "orders")
    refused = stack.run("destroy", "--yes", "--skip-preview")
    text = refused.stdout + refused.stderr
    assert refused.returncode != 0
    assert "HoldsTables: nothing was destroyed" in text
    assert "1 table: sales.orders" in text
    assert "Traceback" not in text
    moved = stack.run("preview", storage=stack.declared["storage"] | {"key_prefix": "moved"})
    assert moved.returncode != 0
    assert "HoldsTables: warehouse `main`" in moved.stdout + moved.stderr

    stack.declared["deletion"] = "purge"
    assert stack.steps() == {"same": 4, "update": 3}
    stack.up()
    destroyed = stack.run("destroy", "--yes", "--skip-preview")
    assert destroyed.returncode == 0, destroyed.stdout + destroyed.stderr
    assert http.get(f"/management/v1/warehouse/{warehouse_id}").status_code == 404
    assert objects() == []


def test_every_mistake_at_once_each_with_its_property(stack: Stack) -> None:
    done = stack.run("preview", storage={"bucket": "B", "region": "us-east-1", "nonsense": 1}, deletion="never")
    text = done.stdout + done.stderr
    assert done.returncode != 0
    for expected in ("storage.bucket", "storage.nonsense", "deletion", "is not a property here"):
        assert expected in text
    assert "lakewright/lakekeeper" not in text  # no traceback of the provider (the CLI adds one of the program's)


def test_a_server_that_is_not_there_is_one_clear_sentence(stack: Stack) -> None:
    done = stack.run("up", "--yes", "--skip-preview", server={"endpoint": "http://127.0.0.1:9"})
    text = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Unreachable: Lakekeeper at http://127.0.0.1:9 cannot be reached" in text
    assert "lakewright/lakekeeper" not in text
