"""Creates without a response: the provider reports that the object may exist, and calls AWS only once."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import grpc
import httpx
import pytest
from lakewright_sandbox.providers.protocol.properties import Properties

BUCKET = "aws:s3/bucket:Bucket"
ROLE = "aws:iam/role:Role"
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"},
    }
)
HOP_BY_HOP = {"transfer-encoding", "content-encoding", "content-length", "connection"}


class Proxy(http.server.ThreadingHTTPServer):
    """Forwards every request to the sandbox; hangs up without a response if `loses` selects the request."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), Forward)
        self.target = target
        self.loses: Callable[[str, bytes], bool] = lambda _line, _body: False
        self.lost: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Forward(http.server.BaseHTTPRequestHandler):
    server: Proxy

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        response = httpx.request(
            self.command,
            self.server.target + self.path,
            # The signature covers the original headers, including the host.
            headers=[(name, value) for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP],
            content=body,
            trust_env=False,
        )
        line = f"{self.command} {self.path}"
        self.close_connection = True
        if self.server.loses(line, body):
            self.server.lost.append(f"{line} {response.status_code}")
            return
        self.send_response(response.status_code)
        for name, value in response.headers.items():
            if name not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815  http.server's names

    def log_message(self, *_: Any) -> None:
        """Write no log: the tests assert the requests."""


@pytest.fixture
def proxy(aws: Any) -> Iterator[Proxy]:
    server = Proxy(aws.endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def provider_through_proxy(proxy: Proxy, aws: Any, aws_port: int, connect: Any) -> Any:
    endpoints = f'[{{"s3": "{proxy.url}", "iam": "{proxy.url}", "sts": "{proxy.url}"}}]'
    return connect(aws_port).configure(aws.provider_args | {"endpoints": endpoints})


def read_error(call: Callable[[], Any]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code(), str(error.value.details())


def bucket_inputs() -> Properties:
    return {"bucket": f"b-{uuid4().hex[:12]}", "tags": {"owner": "data"}}


def test_a_bucket_whose_create_had_no_response_may_exist(provider_through_proxy: Any, proxy: Proxy) -> None:
    inputs = bucket_inputs()
    proxy.loses = lambda line, _body: line == f"PUT /{inputs['bucket']}"

    code, message = read_error(lambda: provider_through_proxy.create(BUCKET, inputs))

    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert f"creating the bucket {inputs['bucket']}: no usable response from {proxy.url}" in message
    assert "the next `up` looks for it" in message
    assert proxy.lost == [f"PUT /{inputs['bucket']} 200"]
    assert provider_through_proxy.read(BUCKET, "", inputs=inputs)[0] == inputs["bucket"]


def test_a_role_whose_create_had_no_response_may_exist(provider_through_proxy: Any, proxy: Proxy) -> None:
    inputs = {"name": f"r-{uuid4().hex[:12]}", "assumeRolePolicy": TRUST}
    proxy.loses = lambda _line, body: b"Action=CreateRole" in body

    code, message = read_error(lambda: provider_through_proxy.create(ROLE, inputs))

    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert f"creating the role {inputs['name']}" in message
    assert proxy.lost == ["POST / 200"]
    assert provider_through_proxy.read(ROLE, "", inputs=inputs)[0] == inputs["name"]


@pytest.mark.parametrize("step", ["PUT /{}?tagging", "GET /{}?tagging"], ids=["its tags", "reading it back"])
def test_a_created_bucket_may_exist_if_a_later_step_fails(provider_through_proxy: Any, proxy: Proxy, step: str) -> None:
    inputs = bucket_inputs()
    proxy.loses = lambda line, _body: line == step.format(inputs["bucket"])

    code, message = read_error(lambda: provider_through_proxy.create(BUCKET, inputs))

    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert "the next `up` looks for it" in message
    assert proxy.lost


def test_a_bucket_that_was_only_looked_up_was_not_created(provider_through_proxy: Any, proxy: Proxy, aws: Any) -> None:
    inputs = bucket_inputs()
    proxy.loses = lambda line, _body: line.startswith("HEAD ")

    code, message = read_error(lambda: provider_through_proxy.create(BUCKET, inputs))

    assert code == grpc.StatusCode.UNKNOWN
    assert "looking for the bucket" in message
    assert inputs["bucket"] not in [bucket["Name"] for bucket in aws.client("s3").list_buckets()["Buckets"]]


def test_a_refused_connection_created_nothing(aws: Any, aws_port: int, connect: Any) -> None:
    stopped_proxy = Proxy(aws.endpoint)
    thread = threading.Thread(target=stopped_proxy.serve_forever)
    thread.start()
    endpoints = f'[{{"s3": "{stopped_proxy.url}", "iam": "{stopped_proxy.url}", "sts": "{stopped_proxy.url}"}}]'
    provider = connect(aws_port).configure(aws.provider_args | {"endpoints": endpoints})
    stopped_proxy.shutdown()
    thread.join()
    stopped_proxy.server_close()

    code, message = read_error(lambda: provider.create(ROLE, {"name": "never", "assumeRolePolicy": TRUST}))

    assert code == grpc.StatusCode.UNKNOWN
    assert f"creating the role never: no usable response from {stopped_proxy.url}" in message
    assert "may exist" not in message
