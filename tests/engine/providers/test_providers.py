"""A replaced provider deletes its own objects, and a plugin that does not start is reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lakewright_engine.processes import child_process
from stackrunner import Stack

RENDER = """
import os
import pulumi
import pulumi_kubernetes as k8s
provider = k8s.Provider("render", render_yaml_to_directory=os.environ["RENDER_TO"])
opts = pulumi.ResourceOptions(provider=provider)
space = k8s.core.v1.Namespace("space", metadata={"name": "space"}, opts=opts)
k8s.core.v1.ConfigMap("map", metadata={"name": "map", "namespace": space.metadata.name}, data={"a": "b"}, opts=opts)
"""


def manifests(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.yaml"))


@pytest.mark.parametrize("options", [(), ("--refresh",)], ids=["plain", "refreshed"])
def test_replaced_provider_deletes_only_its_own_objects(tmp_path: Path, options: tuple[str, ...]) -> None:
    stack = Stack(tmp_path, RENDER)
    first, second = tmp_path / "first", tmp_path / "second"
    assert stack.run("up", env={"RENDER_TO": str(first)}).exit == 0
    rendered = manifests(first)
    assert len(rendered) == 2

    outcome = stack.run("up", *options, env={"RENDER_TO": str(second)})
    assert outcome.exit == 0, outcome.messages
    assert manifests(second) == rendered
    assert manifests(first) == []
    assert stack.run("preview", "--expect-no-changes", env={"RENDER_TO": str(second)}).exit == 0
    assert stack.run("destroy").exit == 0
    assert manifests(second) == []


def test_plugin_without_a_port_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = tmp_path / "bin" / "pulumi-resource-silent"
    plugin.parent.mkdir()
    plugin.write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    plugin.chmod(0o755)
    monkeypatch.setattr(child_process, "START_SECONDS", 1)
    stack = Stack(tmp_path, "import pulumi\npulumi.CustomResource('silent:index:Thing', 'thing')\n")

    outcome = stack.run("up", env={"PATH": f"{plugin.parent}:{os.environ['PATH']}"})

    assert outcome.exit != 0
    assert "provider 'silent' did not start: it printed no port for 1 s" in str(outcome.messages)
