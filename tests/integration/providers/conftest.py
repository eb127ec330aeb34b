"""Fixtures of the provider tests: the sandbox's AWS, a provider process, and a client of its protocol."""

from __future__ import annotations

import configparser
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import grpc
import httpx
import pytest
from lakewright_sandbox.providers.protocol.properties import Properties, from_struct, to_struct
from lakewright_sandbox.runtime.processes import free_port
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed


@dataclass(frozen=True)
class SandboxAws:
    """The sandbox's AWS, and clients of its administrator that bypass the provider."""

    endpoint: str
    credentials_file: Path

    @property
    def provider_args(self) -> Properties:
        return {
            "endpoints": f'[{{"s3":"{self.endpoint}","iam":"{self.endpoint}","sts":"{self.endpoint}"}}]',
            "profile": "admin",
            "region": "us-east-1",
            "s3UsePathStyle": "true",
            "sharedCredentialsFiles": f'["{self.credentials_file}"]',
            "skipCredentialsValidation": "true",
        }

    def client(self, service: str) -> Any:
        credentials = configparser.ConfigParser()
        credentials.read(self.credentials_file)
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            **credentials["admin"],
        )


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxAws]:
    folder = tmp_path_factory.mktemp("aws")
    port = free_port()
    sandbox = SandboxAws(f"http://127.0.0.1:{port}", folder / "credentials")
    command = [sys.executable, "-m", "lakewright_sandbox.aws", "--port", str(port)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--credentials-file", str(sandbox.credentials_file)], stdout=log, stderr=log
        )
    try:
        _wait_until_ready(f"{sandbox.endpoint}/moto-api/")
        yield sandbox
    finally:
        process.terminate()
        process.wait(10)


@retry(retry=retry_if_exception_type(httpx.HTTPError), wait=wait_fixed(0.1), stop=stop_after_delay(30), reraise=True)
def _wait_until_ready(url: str) -> None:
    httpx.get(url, trust_env=False).raise_for_status()


@dataclass
class Provider:
    """One configured connection to a provider server, as an engine would hold it."""

    port: int
    channels: list[grpc.Channel] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Channels to one address share a connection by default, and configuration is by connection.
        options = [("grpc.use_local_subchannel_pool", 1)]
        self.channels.append(grpc.insecure_channel(f"127.0.0.1:{self.port}", options=options))
        self.stub = provider_pb2_grpc.ResourceProviderStub(self.channels[0])

    def configure(self, args: Properties) -> Provider:
        self.stub.Configure(provider_pb2.ConfigureRequest(args=to_struct(args), acceptSecrets=True), timeout=30)
        return self

    def check(self, kind: str, news: Properties, olds: Properties | None = None, name: str = "it") -> Any:
        request = provider_pb2.CheckRequest(
            urn=urn(kind, name), olds=to_struct(olds or {}), news=to_struct(news), randomSeed=b"7" * 32
        )
        return self.stub.Check(request, timeout=30)

    def create(self, kind: str, inputs: Properties, *, preview: bool = False) -> tuple[str, Properties]:
        request = provider_pb2.CreateRequest(urn=urn(kind), properties=to_struct(inputs), preview=preview)
        response = self.stub.Create(request, timeout=30)
        return response.id, from_struct(response.properties)

    def read(
        self, kind: str, resource_id: str, outputs: Properties | None = None, inputs: Properties | None = None
    ) -> tuple[str, Properties, Properties]:
        request = provider_pb2.ReadRequest(
            id=resource_id, urn=urn(kind), properties=to_struct(outputs or {}), inputs=to_struct(inputs or {})
        )
        response = self.stub.Read(request, timeout=30)
        return response.id, from_struct(response.properties), from_struct(response.inputs)

    def diff(self, kind: str, resource_id: str, outputs: Properties, news: Properties, **options: Any) -> Any:
        request = provider_pb2.DiffRequest(
            id=resource_id, urn=urn(kind), olds=to_struct(outputs), news=to_struct(news), **options
        )
        return self.stub.Diff(request, timeout=30)

    def list_changes(self, kind: str, resource_id: str, outputs: Properties, news: Properties) -> list[str]:
        return sorted(self.diff(kind, resource_id, outputs, news).detailedDiff)

    def update(self, kind: str, resource_id: str, outputs: Properties, news: Properties, **options: Any) -> Properties:
        request = provider_pb2.UpdateRequest(
            id=resource_id, urn=urn(kind), olds=to_struct(outputs), news=to_struct(news), **options
        )
        return from_struct(self.stub.Update(request, timeout=30).properties)

    def delete(self, kind: str, resource_id: str, outputs: Properties) -> None:
        request = provider_pb2.DeleteRequest(id=resource_id, urn=urn(kind), properties=to_struct(outputs))
        self.stub.Delete(request, timeout=60)

    def invoke(self, token: str, args: Properties | None = None) -> Properties:
        response = self.stub.Invoke(provider_pb2.InvokeRequest(tok=token, args=to_struct(args or {})), timeout=30)
        return from_struct(getattr(response, "return"))


def urn(kind: str, name: str = "it") -> str:
    return f"urn:pulumi:dev::conf::{kind}::{name}"


Servers = Callable[[str], int]


@contextlib.contextmanager
def run_provider_server(package: str, log: Path) -> Iterator[int]:
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "lakewright_sandbox.providers", package],
            stdout=subprocess.PIPE,
            stderr=errors,
            env={key: value for key, value in os.environ.items() if not key.startswith("AWS_")},
        )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@pytest.fixture(scope="session")
def aws_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with run_provider_server("aws", tmp_path_factory.mktemp("aws-provider") / "log") as port:
        yield port


@pytest.fixture(scope="session")
def kubernetes_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with run_provider_server("kubernetes", tmp_path_factory.mktemp("kubernetes-provider") / "log") as port:
        yield port


@pytest.fixture
def connect() -> Iterator[Callable[[int], Provider]]:
    opened: list[Provider] = []

    def connect_provider(port: int) -> Provider:
        opened.append(Provider(port))
        return opened[-1]

    yield connect_provider
    for provider in opened:
        provider.channels[0].close()


@pytest.fixture
def provider(aws: SandboxAws, aws_port: int, connect: Callable[[int], Provider]) -> Provider:
    return connect(aws_port).configure(aws.provider_args)


@pytest.fixture
def pulumi_cli() -> str:
    executable = shutil.which("pulumi")
    if executable is None:
        pytest.skip("`pulumi` is not on the PATH")
    return executable
