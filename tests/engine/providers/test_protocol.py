"""Provider resources and provider calls: plugin sources, unhealthy imports, unknown configuration."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from pulumi.automation.events import EngineEvent
from stackrunner import Stack
from vaultplugin import install

HEADER = """
import os
import pulumi

class Vault(pulumi.ProviderResource):
    def __init__(self, name, props=None, opts=None):
        super().__init__("vault", name, props, opts)

class Thing(pulumi.CustomResource):
    issued: pulumi.Output[str]
    def __init__(self, name, props, opts=None):
        super().__init__("vault:index:Thing", name, {**props, "issued": None}, opts)

step = int(os.environ.get("STEP", "1"))
Options = pulumi.ResourceOptions
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def create_stack(folder: Path, program: str) -> Stack:
    stack = Stack(folder, HEADER + program)
    stack.environment |= {"PATH": install(folder / "bin"), "VAULT": str(stack.store)}
    return stack


def test_plugin_source_is_kept_in_state(folder: Path) -> None:
    stack = create_stack(
        folder,
        """
own = Vault("own", {"account": "a"}, Options(plugin_download_url="https://example.com/own", version="1.2.3"))
Thing("explicit", {"name": "explicit"}, Options(provider=own))
Thing("default", {"name": "default"}, Options(plugin_download_url="https://example.com/default"))
""",
    )
    outcome = stack.run("up")
    assert outcome.exit == 0, outcome.messages
    assert stack.resource("own").inputs == {
        "__internal": {"pluginDownloadURL": "https://example.com/own"},
        "account": "a",
        "version": "1.2.3",
    }
    default = next(resource for resource in stack.resources() if "::default_" in resource.urn)
    assert default.inputs == {"__internal": {"pluginDownloadURL": "https://example.com/default"}}
    assert {step["op"] for step in stack.run("up").steps} == {"same"}


def test_large_unhealthy_object_is_kept_with_its_errors(folder: Path) -> None:
    """The object is in the trailers of the answer, for which gRPC's default is 8 KiB. A Deployment needs more."""
    stack = create_stack(folder, 'Thing("thing", {"name": "object", "unhealthy": True, "manifest": "m" * 100_000})')

    outcome = stack.run("up")

    assert outcome.exit == 1
    assert any("the object is not ready" in message for message in outcome.messages), outcome.messages
    thing = stack.resource("thing")
    assert (thing.id, thing.init_errors) == ("object", ["the object is not ready"])
    assert len(thing.outputs["manifest"]) == 100_000


def test_unhealthy_object_is_imported_with_errors(folder: Path) -> None:
    """The update after the import waits for the object to become ready, as the next `up` would."""
    stack = create_stack(
        folder,
        """
wanted = {"name": "object", "unhealthy": True} if step == 1 else {"name": "object"}
Thing("thing", wanted, Options(import_="object"))
""",
    )
    (stack.store / "object.json").write_text(json.dumps({"name": "object", "unhealthy": True}))
    outcome = stack.run("up")
    assert outcome.exit == 1
    assert [step["op"] for step in outcome.steps] == ["import", "update"]
    thing = stack.resource("thing")
    assert (thing.id, thing.init_errors) == ("object", ["the object is not ready"])
    assert stack.run("up", env={"STEP": "2"}).exit == 0
    assert stack.resource("thing").init_errors == []


def test_preview_warns_of_replacing_imported_object(folder: Path) -> None:
    stack = create_stack(
        folder, 'Thing("thing", {"name": "object", "fixed": str(step)}, Options(import_="object"))\nThing("other", {})'
    )
    (stack.store / "object.json").write_text(json.dumps({"name": "object", "fixed": "1"}))
    assert stack.run("up").exit == 0
    preview = stack.run("preview", env={"STEP": "2"})
    assert preview.exit == 0
    assert "may not be replaced" in preview.messages[0]
    assert "fixed: 1 => 2" in preview.messages[0]
    assert {"op": "replace", "type": "vault:index:Thing", "name": "thing"} in preview.steps
    assert stack.run("up", env={"STEP": "2"}).exit == 1


def test_dependents_of_delete_first_provider_are_replaced(folder: Path) -> None:
    stack = create_stack(
        folder,
        """
own = Vault("own", {"account": str(step)}, Options(delete_before_replace=True))
Thing("thing", {"name": "object"}, Options(provider=own))
Thing("other", {"name": "other"})
""",
    )
    assert stack.run("up").exit == 0
    outcome = stack.run("up", env={"STEP": "2"})
    assert outcome.exit == 0, outcome.messages
    calls = [line for line in outcome.provider_calls if not line.startswith("configure")]
    assert calls == ["delete object", "create object"]
    assert [step["op"] for step in outcome.steps if step["name"] == "thing"] == [
        "delete-replaced",
        "replace",
        "create-replacement",
    ]
    assert stack.run("destroy").exit == 0
    assert stack.files() == {}


def test_replace_on_changes_dependent_is_deleted_first(folder: Path) -> None:
    stack = create_stack(
        folder,
        """
first = Thing("first", {"name": f"first{step}", "fixed": str(step)}, Options(delete_before_replace=True))
second = Thing("second", {"name": "second", "size": first.id}, Options(replace_on_changes=["size"]))
Thing("third", {"name": "third", "size": first.id})
""",
    )
    assert stack.run("up").exit == 0
    outcome = stack.run("up", env={"STEP": "2"})
    assert outcome.exit == 0, outcome.messages
    calls = [line for line in outcome.provider_calls if not line.startswith("configure")]
    assert calls[:2] == ["delete second", "delete first1"]
    assert sorted(calls[2:]) == ["create first2", "create second", "update third"]


def test_unconfigured_provider_is_not_called_to_read(folder: Path) -> None:
    stack = create_stack(
        folder,
        """
first = Thing("first", {"name": "first"})
own = Vault("own", {"account": first.id})
Thing("found", {}, Options(id="object", provider=own))
Thing("imported", {"name": "other"}, Options(import_="other", provider=own))
""",
    )
    for name in ("object", "other"):
        (stack.store / f"{name}.json").write_text(json.dumps({"name": name}))
    preview = stack.run("preview")
    assert preview.exit == 0, preview.messages
    assert [line for line in preview.provider_calls if line.startswith("read")] == []
    outcome = stack.run("up")
    assert outcome.exit == 0, outcome.messages
    assert sorted(line for line in outcome.provider_calls if line.startswith("read")) == ["read object", "read other"]


def test_interrupt_cancels_provider_calls(folder: Path) -> None:
    stack = create_stack(folder, 'Thing("thing", {"name": "object", "patient": True})\n')

    def interrupt_create(event: EngineEvent) -> None:
        started = event.resource_pre_event
        if started is not None and started.metadata.type == "vault:index:Thing":
            os.kill(os.getpid(), signal.SIGINT)

    outcome = stack.run("up", on_event=interrupt_create)
    assert outcome.exit == 1
    assert "cancel" in outcome.provider_calls
    assert stack.resource("thing").id == "object", "a step under way is finished"
