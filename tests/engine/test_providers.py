"""A provider that is replaced goes on serving what it made until that is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
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
def test_a_replaced_provider_deletes_its_own_objects_and_not_the_new_ones(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
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
