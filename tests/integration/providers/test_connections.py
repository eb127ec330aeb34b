"""Connections of the aws provider: accepted endpoints, credentials, and separate connections of one server."""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from lakewright_sandbox.providers.protocol.properties import Properties, from_struct, to_struct
from pulumi.runtime.proto import provider_pb2

BUCKET = "aws:s3/bucket:Bucket"


def endpoints(url: str) -> str:
    return f'[{{"s3": "{url}", "iam": "{url}", "sts": "{url}"}}]'


@pytest.fixture
def not_a_sandbox() -> Iterator[str]:
    """An HTTP server on loopback that is no moto: it responds with 404 to everything."""
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def refusal(configure: Callable[[], Any]) -> str:
    with pytest.raises(grpc.RpcError) as refused:
        configure()
    return refused.value.details()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, "no endpoint for s3"),
        ({"endpoints": endpoints("https://s3.us-east-1.amazonaws.com")}, "https://s3.us-east-1.amazonaws.com"),
        ({"endpoints": '[{"s3": "http://127.0.0.1:9"}]'}, "no endpoint for iam"),
    ],
    ids=["none", "a real account", "one service only"],
)
def test_other_endpoints_are_refused_with_the_plugin_to_install(
    aws_port: int, connect: Any, args: Properties, expected: str
) -> None:
    message = refusal(lambda: connect(aws_port).configure({"region": "us-east-1"} | args))
    assert expected in message
    assert "the sandbox's aws provider only talks to a running sandbox" in message
    assert "pulumi-resource-aws" in message


def test_another_server_on_loopback_is_refused(aws_port: int, connect: Any, not_a_sandbox: str) -> None:
    message = refusal(lambda: connect(aws_port).configure({"region": "r", "endpoints": endpoints(not_a_sandbox)}))
    assert "does not respond as a sandbox does" in message
    assert "pulumi-resource-aws" in message


def test_a_sandbox_that_is_not_running_is_named(aws_port: int, connect: Any) -> None:
    message = refusal(
        lambda: connect(aws_port).configure({"region": "us-east-1", "endpoints": endpoints("http://127.0.0.1:9")})
    )
    assert "no response from the aws endpoint http://127.0.0.1:9" in message
    assert "lakewright sandbox up" in message


def test_each_connection_has_its_own_identity(aws: Any, aws_port: int, connect: Any) -> None:
    admin = connect(aws_port).configure(aws.provider_args)
    lakekeeper = connect(aws_port).configure(aws.provider_args | {"profile": "lakekeeper"})
    token = "aws:index/getCallerIdentity:getCallerIdentity"
    assert lakekeeper.invoke(token)["arn"].endswith(":user/lakekeeper")
    assert not admin.invoke(token)["arn"].endswith(":user/lakekeeper")

    message = refusal(lambda: lakekeeper.create(BUCKET, {"bucket": "mine"}))
    assert "creating the bucket mine" in message
    assert "AccessDenied" in message


def test_cancel_ends_one_connection_and_not_the_server(aws: Any, aws_port: int, connect: Any) -> None:
    ended, living = (connect(aws_port).configure(aws.provider_args) for _ in range(2))
    ended.stub.Cancel(empty_pb2.Empty())
    assert "before its configuration" in refusal(lambda: ended.read(BUCKET, "b"))
    assert living.read(BUCKET, "never")[0] == ""


def test_an_unknown_profile_and_half_a_key_are_reported(aws: Any, aws_port: int, connect: Any) -> None:
    message = refusal(lambda: connect(aws_port).configure(aws.provider_args | {"profile": "nobody"}))
    assert "'nobody'" in message
    message = refusal(lambda: connect(aws_port).configure(aws.provider_args | {"accessKey": "AKIA"}))
    assert "`accessKey` and `secretKey` together" in message


def test_wrong_keys_are_refused_without_being_printed(aws: Any, aws_port: int, connect: Any) -> None:
    secret = "very-secret-key-that-is-wrong"
    provider = connect(aws_port).configure(aws.provider_args | {"accessKey": "AKIAWRONG", "secretKey": secret})
    message = refusal(lambda: provider.create(BUCKET, {"bucket": "b"}))
    assert "InvalidAccessKeyId" in message
    assert secret not in message


def test_secrets_come_back_as_secrets(provider: Any) -> None:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "team-a"}
    checked = provider.check(BUCKET, {"bucket": "b", "tags": {"owner": secret}})
    assert from_struct(checked.inputs) == {"bucket": "b", "tags": {"owner": secret}}
    _, state = provider.create(BUCKET, {"bucket": "b", "tags": {"owner": secret}}, preview=True)
    assert state["tags"] == {"owner": secret}


def test_unsupported_configuration_is_refused_by_name(aws_port: int, connect: Any) -> None:
    news = to_struct({"region": "us-east-1", "assumeRoles": "[]", "version": "7.51.1"})
    response = connect(aws_port).stub.CheckConfig(provider_pb2.CheckRequest(urn="u", news=news))
    assert [f.property for f in response.failures] == ["assumeRoles"]


def test_another_version_of_the_sdk_is_no_change_of_the_provider(aws_port: int, connect: Any) -> None:
    olds, news = to_struct({"region": "a", "version": "7.1.0"}), to_struct({"region": "a", "version": "7.51.1"})
    response = connect(aws_port).stub.DiffConfig(provider_pb2.DiffRequest(urn="u", olds=olds, news=news))
    assert response.changes == provider_pb2.DiffResponse.DIFF_NONE


def test_a_taken_port_is_reported() -> None:

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "lakewright_sandbox.providers", "kubernetes", "--port", port]
        ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 1
    assert f"port {port} of 127.0.0.1 is taken" in ended.stderr
