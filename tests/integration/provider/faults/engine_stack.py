"""A random stack that an engine runs: a program declares its objects, and the state is a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from lakewright.drift.detection.run import find_drift
from lakewright.fleet.selection import SelectedStack
from lakewright_engine.project.project import PulumiProject

from tests.command_server import run_command
from tests.integration.provider.faults.found_drift import CHANGED, GONE, TYPES, get_key
from tests.integration.provider.faults.random_stack import Declarations, Key, Managed, OperatedStack, sort_by_creation
from tests.integration.provider.resource import Props

PROGRAM = """
import json, os, pulumi
from lakewright import lakekeeper

document = json.loads(os.environ["DECLARED"])
resources = {}
for item in document["objects"]:
    ids = {name: resources[other].id for name, other in item["made_in"].items()}
    opts = pulumi.ResourceOptions(depends_on=[resources[item["needs"]]] if item["needs"] else [])
    kind = getattr(lakekeeper, item["kind"])
    resources[item["key"]] = kind(item["name"], server=document["server"], opts=opts, **item["props"], **ids)
"""


class EngineStack(OperatedStack):
    """A stack whose operations are commands on the embedded engine or the Pulumi CLI."""

    def __init__(self, server: Props, folder: Path, engine: str) -> None:
        super().__init__(server)
        self._folder, self._engine = folder, engine
        self._applied: Declarations = {}
        (folder / "state").mkdir(parents=True)
        (folder / "__main__.py").write_text(PROGRAM)
        runtime = {"name": "python", "options": {"virtualenv": sys.prefix}}
        (folder / "Pulumi.yaml").write_text(json.dumps({"name": "lives", "runtime": runtime}))
        self._run("stack", "init")

    def up(self, declarations: Declarations) -> None:
        """Run `up --refresh` on the engine, and read the state."""
        self._applied = declarations
        self._verb("up", "--refresh", "--yes")
        exported = json.loads(self._run("stack", "export").stdout)
        kinds = {name: kind for kind, name in TYPES.items()}
        for state in exported["deployment"]["resources"]:
            name = state["type"].rpartition(":")[2]
            if name in kinds:
                key = kinds[name], state["urn"].rpartition("::")[2]
                resource = Managed(declarations[key].provider())
                resource.id, resource.inputs, resource.outs = state["id"], state["inputs"], state["outputs"]
                self._state[key] = resource

    def find_by_preview(self) -> tuple[dict[Key, str], bool]:
        """Return the objects that `preview --refresh` would create or change, and whether it refuses some of them."""
        result = self._verb("preview", "--refresh", exits=range(256))
        kinds = {name: kind for kind, name in TYPES.items()}
        operations: dict[Key, str] = {}
        for step in result["steps"]:
            if step["op"] not in {"same", "refresh", "read"}:
                kind = step["type"].rpartition(":")[2]
                operations[kinds[kind], step["name"]] = GONE if step["op"] == "create" else CHANGED
        return operations, bool(result["exit"])

    def find_by_drift(self) -> dict[Key, str]:
        """Return the objects that `lakewright drift` finds to differ."""
        (report,) = find_drift(PulumiProject.load(self._folder), [SelectedStack("test")]).stacks
        assert report.problems == []
        return {get_key(difference): difference.kind.value for difference in report.differences}

    def _verb(self, verb: str, *options: str, exits: Collection[int] = (0,)) -> Props:
        completed = self._run(verb, *options, "--engine", self._engine, "--json", exits=exits)
        return json.loads(completed.stdout)

    def _run(self, *arguments: str, exits: Collection[int] = (0,)) -> subprocess.CompletedProcess[str]:
        objects = [
            {
                "key": "/".join(key),
                "name": key[1],
                "kind": TYPES[key[0]],
                "props": self._applied[key].props,
                "needs": "/".join(self._applied[key].needs or ()),
                "made_in": {name: "/".join(other) for name, other in self._applied[key].made_in.items()},
            }
            for key in sort_by_creation(self._applied)
        ]
        environment = {
            **os.environ,
            "PULUMI_HOME": str(self._folder / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "DECLARED": json.dumps({"server": self._server, "objects": objects}),
        }
        completed = run_command([*arguments, "--stack", "test"], self._folder, environment)
        assert completed.returncode in exits, completed.stdout + completed.stderr
        return completed
