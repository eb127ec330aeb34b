"""Probe the calls that another user of the machine can make to a run. Programs of tests call `probe`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

NOBODY = 65534
_LISTENING_TCP = "0A"
_CALLER = """
import json, os, sys
import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import provider_pb2_grpc, resource_pb2_grpc
if uid := int(sys.argv[1]):
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
answers = {}
for address in sys.argv[2:]:
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        calls = [
            resource_pb2_grpc.ResourceMonitorStub(channel).GetDeploymentInfo,
            provider_pb2_grpc.ResourceProviderStub(channel).GetPluginInfo,
        ]
        for call in calls:
            try:
                call(Empty(), timeout=20)
                answers.setdefault(address, []).append("OK")
            except grpc.RpcError as error:
                answers.setdefault(address, []).append(error.code().name)
print(json.dumps(answers))
"""


def probe(engine: int) -> dict[str, Any]:
    """Call all addresses on which an engine and its children listen, as this user and as another user.

    Args:
        engine: Process id of the engine.

    Returns:
        The status codes of two calls by address, for `self` and `stranger`.
    """
    addresses = _addresses(_descendants(engine))
    return {"self": _call(addresses, 0), "stranger": _call(addresses, NOBODY)}


def _call(addresses: list[str], uid: int) -> dict[str, list[str]]:
    command = [sys.executable, "-c", _CALLER, str(uid), *addresses]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _descendants(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    processes, size = {root}, 0
    while len(processes) > size:
        size = len(processes)
        processes |= {pid for pid, parent in parents.items() if parent in processes}
    return processes


def _addresses(pids: set[int]) -> list[str]:
    """Return the gRPC addresses of the sockets that processes listen on."""
    inodes: set[str] = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
    tcp = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ports = {int(row[1].rpartition(":")[2], 16) for row in tcp if row[3] == _LISTENING_TCP and row[9] in inodes}
    tcp6 = [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    ports |= {int(row[1].rpartition(":")[2], 16) for row in tcp6 if row[3] == _LISTENING_TCP and row[9] in inodes}
    unix = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    # Flag 00010000: the socket accepts connections.
    paths = {row[7] for row in unix if len(row) == 8 and row[3] == "00010000" and row[6] in inodes}
    return [*(f"127.0.0.1:{port}" for port in sorted(ports)), *(f"unix:{path}" for path in sorted(paths))]
