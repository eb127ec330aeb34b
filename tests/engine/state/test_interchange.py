"""A stack continues under the other engine, in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest
from stackrunner import Stack

pytestmark = pytest.mark.pulumi_cli

PROGRAM = """
import os
import pulumi
from filestore import File
step = os.environ.get("STEP", "1")
config = pulumi.Config()
class Pair(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("test:index:Pair", name, {}, opts)
        own = pulumi.ResourceOptions(parent=self)
        self.left = File(f"{name}-left", f"{name}-left.json", "l", token=config.require_secret("token"), opts=own)
        self.right = File(f"{name}-right", f"{name}-right-{step}.json", self.left.etag, opts=own)
        self.register_outputs({"right": self.right.etag})
pair = Pair("pair")
connection = {"host": "h", "password": config.require_secret("token")}
File("lone", "lone.json", f"step {step}", token=connection, opts=pulumi.ResourceOptions(
    depends_on=[pair], protect=False, retain_on_delete=False, ignore_changes=["size"],
    custom_timeouts=pulumi.CustomTimeouts(create="5m"), additional_secret_outputs=["etag", "token"]))
pulumi.export("etag", pair.right.etag)
pulumi.export("secret", config.require_secret("token"))
"""


@pytest.fixture(params=["file", "s3"])
def stack(tmp_path: Path, request: pytest.FixtureRequest) -> Stack:
    url = request.getfixturevalue("bucket_url") if request.param == "s3" else ""
    stack = Stack(tmp_path, PROGRAM, backend_url=url)
    stack.set_config("token", "s3cr3t", secret=True)
    return stack


def test_cli_continues_after_embedded_engine(stack: Stack) -> None:
    assert stack.run("up").exit == 0
    assert stack.cli("preview", "--refresh", "--expect-no-changes").exit == 0
    changed = stack.cli("up", env={"STEP": "2"})
    assert changed.exit == 0, changed.messages
    assert {step["op"] for step in changed.steps} >= {"create-replacement", "update"}
    assert stack.run("preview", "--refresh", "--expect-no-changes", env={"STEP": "2"}).exit == 0
    assert stack.cli("destroy").exit == 0
    assert stack.files() == {}


def test_embedded_engine_continues_after_cli(stack: Stack) -> None:
    assert stack.cli("up").exit == 0
    assert stack.run("preview", "--refresh", "--expect-no-changes").exit == 0
    changed = stack.run("up", env={"STEP": "2"})
    assert changed.exit == 0, changed.messages
    assert {step["op"] for step in changed.steps} >= {"create-replacement", "update"}
    assert stack.cli("preview", "--refresh", "--expect-no-changes", env={"STEP": "2"}).exit == 0
    assert stack.run("destroy").exit == 0
    assert stack.files() == {}
