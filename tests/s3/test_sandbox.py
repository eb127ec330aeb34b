"""`lakewright sandbox up --s3`: its own MinIO, whose data stay, and the way back to the emulated AWS."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime import state
from lakewright_sandbox.runtime.processes import command_line
from lakewright_sandbox.runtime.state import Layout, Sandbox

from tests.s3.conftest import read_secret

LAKEWRIGHT = Path(sys.executable).with_name("lakewright")


def sandbox_command(directory: Path, *arguments: str) -> str:
    command = [LAKEWRIGHT, "sandbox", *arguments, "--dir", directory]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def open_client(sandbox: Sandbox) -> Any:
    store = sandbox.store
    assert store is not None
    return boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name=store.region,
        aws_access_key_id=read_secret(store.access_key_id),
        aws_secret_access_key=read_secret(store.secret_access_key),
    )


def read_sandbox(directory: Path) -> Sandbox:
    sandbox = state.read(Layout(directory))
    assert sandbox is not None
    return sandbox


def test_minio_of_a_sandbox(tmp_path: Path) -> None:
    directory = tmp_path / "sandbox"
    printed = sandbox_command(directory, "up", "--s3", "minio")
    first = read_sandbox(directory)
    assert first.store is not None
    assert first.store.pid is not None
    secret = read_secret(first.store.secret_access_key)
    assert "backend: s3" in printed
    assert secret not in printed + (directory / "sandbox.json").read_text()
    assert secret not in " ".join(command_line(first.store.pid))
    open_client(first).create_bucket(Bucket="lasting")

    sandbox_command(directory, "down")
    with pytest.raises(httpx.ConnectError):
        httpx.get(first.store.endpoint)
    sandbox_command(directory, "up")

    second = read_sandbox(directory)
    assert second.store is not None
    assert [bucket["Name"] for bucket in open_client(second).list_buckets()["Buckets"]] == ["lasting"]
    status = json.loads(sandbox_command(directory, "status", "--json"))
    assert status["running"]["store"] is True

    sandbox_command(directory, "up", "--s3", "moto")
    assert read_sandbox(directory).store is None
    with pytest.raises(httpx.ConnectError):
        httpx.get(second.store.endpoint)
    lifecycle.down(directory, purge=True)
    assert not directory.exists()
