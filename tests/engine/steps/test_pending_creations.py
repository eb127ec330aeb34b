"""Interrupted creations remain pending until their objects are accounted for."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from lakewright_engine.model.resources import PendingOperation, StackSnapshot
from stackrunner import Stack
from vaultplugin import install

PROGRAM = """
import json
import os
import pulumi

class Thing(pulumi.CustomResource):
    pass

props = json.loads(os.environ["PROPS"])
if props is not None:
    Thing(os.environ["TYPE"], "thing", props)
"""
BUCKET = {"TYPE": "aws:s3/bucket:Bucket"}
DEPLOYMENT = {"TYPE": "kubernetes:apps/v1:Deployment", "PROPS": '{"name": "object", "metadata": {"name": "object"}}'}
WITHOUT_NATURAL_ID = {"TYPE": "vault:index:Thing", "PROPS": "{}"}
FILE_PROGRAM = """
import os
import pulumi
from deadlystore import File
step = int(os.environ["STEP"])
if step:
    File("thing", f"thing{step}.json", "one")
"""


def describe_bucket(name: str) -> dict[str, str]:
    return BUCKET | {"PROPS": json.dumps({"name": name, "bucket": name})}


WITHOUT_BUCKET = BUCKET | {"PROPS": "null"}


def kill_creation(folder: Path, variables: dict[str, str]) -> Stack:
    """Return a stack whose `up` was killed right after the creation of its resource."""
    stack = Stack(folder, PROGRAM)
    stack.environment |= {"PATH": install(folder / "bin"), "VAULT": str(stack.store)}
    plugin = folder / "bin" / "pulumi-resource-vault"
    for package in ("aws", "kubernetes"):
        shutil.copy(plugin, plugin.with_name(f"pulumi-resource-{package}"))
    assert stack.run_up("thing", **variables).returncode == -signal.SIGKILL
    stack.backend.cancel("conf", "dev")
    assert list_pending_types(stack) == ["creating"]
    return stack


def list_pending_types(stack: Stack) -> list[str]:
    return [operation.type for operation in stack.list_pending_operations()]


def test_object_without_natural_id_stays_pending(tmp_path: Path) -> None:
    stack = kill_creation(tmp_path, WITHOUT_NATURAL_ID)
    (lost_file,) = stack.files()
    way_out = "`lakewright stack export --stack dev --file state.json`"

    outcome = stack.run("up", env=WITHOUT_NATURAL_ID)
    assert outcome.exit == 0, outcome.messages
    assert any("may have created another object" in message and way_out in message for message in outcome.messages)
    assert len(stack.files()) == 2
    assert stack.run("up", env=WITHOUT_NATURAL_ID).exit == 0
    assert list_pending_types(stack) == ["creating"]

    destroyed = stack.run("destroy")
    assert destroyed.exit == 0, destroyed.messages
    assert any("cannot be looked up" in message and way_out in message for message in destroyed.messages)
    assert list(stack.files()) == [lost_file]
    assert list_pending_types(stack) == ["creating"]

    assert stack.run("destroy").exit == 0, "a destroy may be repeated"
    assert list_pending_types(stack) == ["creating"]


def test_destroy_before_up_keeps_a_creation_without_an_id(tmp_path: Path) -> None:
    """An `up` could not find the object either."""
    stack = kill_creation(tmp_path, WITHOUT_NATURAL_ID)
    outcome = stack.run("destroy")
    assert outcome.exit == 0, outcome.messages
    assert any("cannot be looked up" in message for message in outcome.messages)
    assert list_pending_types(stack) == ["creating"]


def test_refresh_recovers_object_with_former_name(tmp_path: Path) -> None:
    stack = kill_creation(tmp_path, describe_bucket("first"))

    outcome = stack.run("up", env=describe_bucket("second"))
    assert outcome.exit == 0, outcome.messages
    assert any("`lakewright refresh --stack dev` looks up first" in message for message in outcome.messages)
    assert list_pending_types(stack) == ["creating"]

    assert stack.run("refresh").exit == 0
    assert list_pending_types(stack) == []
    assert stack.run("up", env=describe_bucket("second")).exit == 0
    assert list(stack.files()) == ["second.json"]


def test_provider_of_pending_creation_is_not_deleted(tmp_path: Path) -> None:
    stack = kill_creation(tmp_path, describe_bucket("object"))

    outcome = stack.run("up", env=WITHOUT_BUCKET)
    assert outcome.exit == 0, outcome.messages
    assert any("the provider is not deleted" in message for message in outcome.messages)
    assert list_pending_types(stack) == ["creating"]

    assert stack.run("refresh").exit == 0
    assert stack.resource("thing").id == "object"
    assert stack.run("up", env=WITHOUT_BUCKET).exit == 0
    assert stack.files() == {}
    assert [resource.type for resource in stack.resources()] == ["pulumi:pulumi:Stack"]


def test_pending_creation_without_provider_says_what_to_do(tmp_path: Path) -> None:
    stack = kill_creation(tmp_path, describe_bucket("object"))
    stack.save(StackSnapshot([], stack.list_pending_operations()))

    refreshed = stack.run("refresh")
    assert refreshed.exit == 0, refreshed.messages
    refused = stack.run("destroy")
    assert refused.exit == 1
    for outcome in (refreshed, refused):
        assert any("`lakewright stack import --stack dev" in message for message in outcome.messages)
    assert list_pending_types(stack) == ["creating"]


@pytest.mark.parametrize("verb", ["up", "destroy", "refresh"])
def test_object_that_is_not_ready_is_recovered(tmp_path: Path, verb: str) -> None:
    stack = kill_creation(tmp_path, DEPLOYMENT)
    (file,) = stack.store.glob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "unhealthy": True}))

    outcome = stack.run(verb, env=DEPLOYMENT)

    assert list_pending_types(stack) == []
    if verb == "refresh":
        assert stack.resource("thing").init_errors == ["the object is not ready"]
        return
    assert outcome.exit == 0, outcome.messages
    if verb == "up":
        assert "update object" in outcome.provider_calls
        assert stack.resource("thing").init_errors == []
    else:
        assert stack.files() == {}


def test_object_that_never_becomes_ready_is_kept_with_errors(tmp_path: Path) -> None:
    stack = kill_creation(tmp_path, DEPLOYMENT)
    props = {**json.loads(DEPLOYMENT["PROPS"]), "unhealthy": True}
    (stack.store / "object.json").write_text(json.dumps(props))

    outcome = stack.run("up", env=DEPLOYMENT | {"PROPS": json.dumps(props)})

    assert outcome.exit == 1
    thing = stack.resource("thing")
    assert (thing.id, thing.init_errors) == ("object", ["the object is not ready"])
    assert list_pending_types(stack) == []


def test_creation_that_the_cli_completed_is_cleared(tmp_path: Path) -> None:
    """The CLI keeps the pending operation. Then an `up` deletes the resource."""
    stack = Stack(tmp_path, FILE_PROGRAM)
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    thing = stack.resource("thing")
    pending = PendingOperation(replace(thing, id="", outputs={}), "creating")
    stack.save(StackSnapshot(stack.resources(), [pending]))

    assert stack.run("up", env={"STEP": "0"}).exit == 0
    assert list_pending_types(stack) == []
    destroyed = stack.run("destroy")
    assert destroyed.exit == 0, destroyed.messages


def test_interrupted_replacement_is_cleared_by_up(tmp_path: Path) -> None:
    """The program is then as before the replacement, so the resource is unchanged."""
    stack = Stack(tmp_path, FILE_PROGRAM)
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    assert stack.run_up(STEP="2", DEADLY="1:before").returncode == -signal.SIGKILL
    stack.backend.cancel("conf", "dev")
    refused = stack.run("destroy")
    assert refused.exit == 1
    assert any("Run `up` first" in message for message in refused.messages)

    assert stack.run("up", env={"STEP": "1"}).exit == 0
    assert list_pending_types(stack) == []
    assert stack.run("destroy").exit == 0
