"""A provider that listens on a port, as the Pulumi CLI needs it, responds to its own user only."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from lakewright_sandbox.providers.protocol import callers

NOBODY = 65534
CALL = """
import os, sys
import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import provider_pb2_grpc
if uid := int(sys.argv[1]):
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
with grpc.insecure_channel(f"127.0.0.1:{sys.argv[2]}", [("grpc.enable_http_proxy", 0)]) as channel:
    try:
        provider_pb2_grpc.ResourceProviderStub(channel).GetPluginInfo(Empty(), timeout=60)
        print("OK")
    except grpc.RpcError as error:
        print(error.code().name)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
@pytest.mark.skipif(not callers.lists_connections(), reason="this system does not say whose a connection is")
def test_attached_provider_refuses_other_users() -> None:
    command = [sys.executable, "-m", "lakewright_sandbox.providers", "kubernetes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as provider:
        try:
            assert provider.stdout is not None
            port = provider.stdout.readline().strip()
            responses = [
                subprocess.run(
                    [sys.executable, "-c", CALL, str(uid), port], capture_output=True, text=True, check=True
                ).stdout.strip()
                for uid in (0, NOBODY)
            ]
        finally:
            provider.kill()
    assert responses == ["OK", "PERMISSION_DENIED"]
