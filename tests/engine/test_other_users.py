"""Another user of the machine cannot call a run's monitor, engine service, callbacks or providers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from stackrunner import Stack

PROGRAM = """
import asyncio
import json
import os
import pulumi
from filestore import File
from other_user import probe

async def look(_):
    # The program's own server needs the event loop to answer.
    return json.dumps(await asyncio.to_thread(probe, int(os.environ["ENGINE"])))

hook = pulumi.ResourceHook("noop", lambda _: None)
hooks = pulumi.ResourceHookBinding(after_create=[hook])
file = File("file", "file.json", "one", opts=pulumi.ResourceOptions(hooks=hooks))
renderer = pulumi.ProviderResource("kubernetes", "renderer", {"renderYamlToDirectory": os.environ["RENDER_TO"]})
inputs = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "space"}}
rendered = pulumi.ResourceOptions(provider=renderer)
space = pulumi.CustomResource("kubernetes:core/v1:Namespace", "space", inputs, rendered)
pulumi.export("probed", pulumi.Output.all(file.etag, space.id).apply(look))
"""
RUN = """
import json
import os
import sys
os.environ["ENGINE"] = str(os.getpid())
from lakewright_engine import Operation, run
from lakewright_engine.project.project import PulumiProject
result = run(Operation("up", PulumiProject.load(sys.argv[1]), "dev", in_sandbox=True), lambda event: None)
print(json.dumps({"exit": result.exit, "messages": result.messages, "outputs": result.outputs}))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
def test_other_users_cannot_call_a_run(tmp_path: Path) -> None:
    stack = Stack(tmp_path, PROGRAM)
    environment = {**os.environ, **stack.environment, "RENDER_TO": str(tmp_path / "rendered")}
    command = [sys.executable, "-c", RUN, str(stack.program_dir)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    result = json.loads(done.stdout)
    assert result["messages"] == []

    probed = json.loads(result["outputs"]["probed"])
    responses = [code for codes in probed["self"].values() for code in codes]
    assert responses.count("OK") == 3, "this user reaches the monitor and both providers"
    assert len(probed["self"]) == 5, "and the engine for plugins, and the program's callbacks"
    refused = {code for codes in probed["stranger"].values() for code in codes}
    assert refused == {"UNAVAILABLE"}
