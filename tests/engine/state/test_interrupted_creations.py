"""Interrupted creations in the form for provider processes."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from lakewright_engine.model.resources import PendingOperation, ResourceState, SecretValue, StackSnapshot
from lakewright_engine.state import interrupted_creations

TYPE = "pulumi-python:dynamic/lakekeeper:Warehouse"


def resource(urn: str, **more: Any) -> ResourceState:
    return ResourceState(urn, TYPE, custom=True, inputs={"name": "main", "credential": SecretValue("hidden")}, **more)


def export_resource(urn: str, **more: Any) -> dict[str, Any]:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x"}
    return {"urn": urn, "type": TYPE, "inputs": {"name": "main", "credential": {"external_id": secret}}} | more


def test_creations_have_no_secrets() -> None:
    state = StackSnapshot(
        [], [PendingOperation(resource("urn:a"), "creating"), PendingOperation(resource("b"), "deleting")]
    )
    assert interrupted_creations.from_snapshot(state) == [
        {"urn": "urn:a", "type": TYPE, "inputs": {"name": "main", "credential": "[secret]"}}
    ]


def test_completed_creations_are_left_out() -> None:
    operations = [PendingOperation(resource(urn), "creating") for urn in ("made", "replaced")]
    state = StackSnapshot(
        [resource("made", id="1"), resource("replaced", id="2", pending_replacement=True)], operations
    )
    assert [resource["urn"] for resource in interrupted_creations.from_snapshot(state)] == ["replaced"]


def test_creations_of_exported_state() -> None:
    operations = [{"resource": export_resource(urn), "type": "creating"} for urn in ("made", "lost")]
    deployment = {"resources": [export_resource("made", id="1")], "pending_operations": operations}
    assert interrupted_creations.from_export(deployment) == [
        {"urn": "lost", "type": TYPE, "inputs": {"name": "main", "credential": {"external_id": "[secret]"}}}
    ]
    before = {"resources": [], "pending_operations": operations}
    cleared = interrupted_creations.remove_completed(deployment, before)
    assert cleared is not None
    assert [operation["resource"]["urn"] for operation in cleared["pending_operations"]] == ["lost"]
    assert interrupted_creations.remove_completed(cleared, before) is None


def test_creations_of_deleted_resources_are_completed() -> None:
    operations = [{"resource": export_resource(urn), "type": "creating"} for urn in ("deleted", "lost")]
    before = {"resources": [export_resource("deleted", id="1")], "pending_operations": operations}
    after = {"resources": [], "pending_operations": operations}
    cleared = interrupted_creations.remove_completed(after, before)
    assert cleared is not None
    assert [operation["resource"]["urn"] for operation in cleared["pending_operations"]] == ["lost"]


def test_file_is_readable_only_by_this_user() -> None:
    with interrupted_creations.write_environment([{"urn": "urn:a"}]) as environment:
        file = Path(environment[interrupted_creations.ENVIRONMENT_VARIABLE])
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert json.loads(file.read_text()) == [{"urn": "urn:a"}]
    assert not file.exists()
