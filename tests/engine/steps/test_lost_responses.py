"""A creation with an unknown result remains pending, and the next `up` looks up its object."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from lakewright_engine.model.errors import ProviderError
from lakewright_engine.processes import rpc
from pulumi.runtime.proto import provider_pb2_grpc
from stackrunner import Stack

PROGRAM = "import pulumi\nfrom deadlystore import File\na = File('a', 'a.json', 'one')"


def test_next_up_adopts_object_of_crashed_provider(tmp_path: Path) -> None:
    stack = Stack(tmp_path, PROGRAM)
    outcome = stack.run("up", env={"DEADLY": "1:after"})
    assert outcome.exit == 1
    assert any("not known whether the object was created" in message for message in outcome.messages)
    assert [op.type for op in stack.list_pending_operations()] == ["creating"]
    assert list(stack.files()) == ["0-a.json"]

    assert stack.run("up").exit == 0
    assert stack.list_pending_operations() == []
    assert list(stack.files()) == ["0-a.json"]


def test_failed_error_hook_keeps_an_unclear_creation(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        """
import pulumi
from deadlystore import File
def fail(args):
    raise ValueError("not today")
hooks = pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("fail", fail)])
File("a", "a.json", "one", pulumi.ResourceOptions(hooks=hooks))
""",
    )
    outcome = stack.run("up", env={"DEADLY": "1:after"})
    assert outcome.exit == 1
    assert any("not known whether the object was created" in message for message in outcome.messages)
    assert any('error hook "fail" failed: not today' in message for message in outcome.messages)
    assert [op.type for op in stack.list_pending_operations()] == ["creating"]


def test_destroy_refuses_before_up_adopts_lost_objects(tmp_path: Path) -> None:
    stack = Stack(tmp_path, f"{PROGRAM}\nFile('b', 'b.json', 'two', pulumi.ResourceOptions(depends_on=[a]))")
    assert stack.run("up", env={"DEADLY": "2:after"}).exit == 1
    file_names = list(stack.files())
    assert file_names == ["0-a.json", "1-b.json"]

    outcome = stack.run("destroy")
    assert outcome.exit == 1
    assert any("::b\n" in message and "Run `up` first" in message for message in outcome.messages)
    assert list(stack.files()) == file_names
    assert len(stack.list_pending_operations()) == 1

    assert stack.run("up").exit == 0
    assert stack.run("destroy").exit == 0
    assert stack.files() == {}


def test_pending_creation_is_removed_by_export_and_import(tmp_path: Path) -> None:
    stack = Stack(tmp_path, PROGRAM)
    assert stack.run("up", env={"DEADLY": "1:before"}).exit == 1
    refused = stack.run("destroy")
    assert refused.exit == 1
    way_out = "`lakewright stack export --stack dev --file state.json`, delete them from `pending_operations`"
    assert any(way_out in message for message in refused.messages)

    exported = stack.backend.export("conf", "dev")
    assert [op["type"] for op in exported["deployment"].pop("pending_operations")] == ["creating"]
    stack.backend.import_("conf", "dev", exported)
    assert stack.run("destroy").exit == 0
    assert stack.resources() == []


@pytest.mark.parametrize(
    ("code", "ambiguous"),
    [
        (grpc.StatusCode.DEADLINE_EXCEEDED, True),
        (grpc.StatusCode.UNAVAILABLE, True),
        (grpc.StatusCode.UNKNOWN, False),
        (grpc.StatusCode.INVALID_ARGUMENT, False),
    ],
)
def test_ambiguous_provider_errors(code: grpc.StatusCode, *, ambiguous: bool) -> None:
    class Aborting(provider_pb2_grpc.ResourceProviderServicer):
        def Create(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's names
            context.abort(code, "no luck")

    server = grpc.server(ThreadPoolExecutor(1))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Aborting(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with rpc.channel(f"127.0.0.1:{port}") as channel, pytest.raises(ProviderError, match="no luck") as raised:
        rpc.call(rpc.provider_stub(channel).Create, rpc.provider_messages.CreateRequest())
    server.stop(None)
    assert raised.value.ambiguous is ambiguous
