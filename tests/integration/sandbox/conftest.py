"""A sandbox's AWS over HTTP, and clients of its identities."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from lakewright_sandbox.runtime import processes
from lakewright_sandbox.runtime.credentials import ADMIN, LAKEKEEPER, IamAccessKey, load, load_or_create

ACCOUNT = "123456789012"
CATALOG_ARN = f"arn:aws:iam::{ACCOUNT}:user/lakekeeper"


@dataclass(frozen=True)
class Aws:
    """A running AWS, and clients of it."""

    endpoint: str
    keys: dict[str, IamAccessKey]

    def client(self, service: str, identity: str | dict[str, Any] = ADMIN, **config: Any) -> Any:
        """Return a client of a profile's user, or of credentials that STS or IAM issued."""
        if isinstance(identity, str):
            key, secret, token = (
                self.keys[identity].access_key_id,
                self.keys[identity].secret_access_key.get_secret_value(),
                None,
            )
        else:
            key, secret, token = identity["AccessKeyId"], identity["SecretAccessKey"], identity.get("SessionToken")
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
            config=Config(retries={"total_max_attempts": 1}, **config),
        )

    def bucket(self) -> str:
        """Create a bucket; return its name."""
        name = f"bucket-{uuid.uuid4()}"
        self.client("s3").create_bucket(Bucket=name)
        return name

    def user(self, *statements: dict[str, Any], path: str = "/") -> tuple[str, dict[str, Any]]:
        """Create a user with these rights; return the ARN and the access key."""
        iam, name = self.client("iam"), f"user-{uuid.uuid4()}"
        arn = iam.create_user(UserName=name, Path=path)["User"]["Arn"]
        if statements:
            iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=policy(*statements))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        if path.startswith("/accounts/"):
            arn = f"arn:aws:iam::{path.split('/')[2]}:user/{name}"
        return arn, key

    def role(self, trust: dict[str, Any], *statements: dict[str, Any], **more: Any) -> str:
        """Create a role with this trust and these rights; return its ARN."""
        iam, name = self.client("iam"), f"role-{uuid.uuid4()}"
        placed = {"Path": "/lakewright/", **more}
        created = iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust), **placed)
        if statements:
            iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=policy(*statements))
        return str(created["Role"]["Arn"])

    def assume(self, role: str, identity: str | dict[str, Any] = LAKEKEEPER, **parameters: Any) -> dict[str, Any]:
        """Return the credentials of a session of the role."""
        session_request = {"RoleArn": role, "RoleSessionName": "session", **parameters}
        return dict(self.client("sts", identity).assume_role(**session_request)["Credentials"])


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(action: str | list[str], resource: str | list[str] = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def trusts(principal: str, **conditions: Any) -> dict[str, Any]:
    condition = {"Condition": conditions} if conditions else {}
    return {
        "Effect": "Allow",
        "Principal": {"AWS": principal},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        **condition,
    }


@contextlib.contextmanager
def expect_refusal(code: str = "AccessDenied", message: str = "") -> Iterator[None]:
    """Expect this error from the call in the block. A response to HEAD has only the status."""
    with pytest.raises(ClientError) as caught:
        yield
    error = caught.value.response["Error"]
    assert error["Code"] in {code, "403"}, error
    assert message in error["Message"] or error["Code"] == "403", error


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    """An AWS process for the tests that do not stop it."""
    directory = tmp_path_factory.mktemp("aws")
    credentials, port = directory / "credentials", processes.free_port()
    module = "lakewright_sandbox.aws"
    arguments = ["--port", str(port), "--credentials-file", str(credentials)]
    process = processes.start(module, arguments, directory / "aws.log", os.environ)
    endpoint = f"http://127.0.0.1:{port}"
    processes.wait_until_healthy(
        process,
        "AWS",
        url=f"{endpoint}/moto-api/",
        accept=lambda response: response.is_success,
        log=directory / "aws.log",
        seconds=60,
    )
    yield Aws(endpoint, load(credentials))
    processes.stop(process.pid, module, credentials)


class AwsClock:
    """The time of an AWS, which a test may move ahead."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture(scope="session")
def aws_with_clock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Aws, AwsClock]]:
    """An AWS in this process, with a clock to set."""
    from lakewright_sandbox.aws.authorizing_proxy import AuthorizingProxy
    from lakewright_sandbox.aws.identities import create_initial_identities
    from lakewright_sandbox.aws.moto_app import create_app
    from lakewright_sandbox.aws.server import create_server

    keys = load_or_create(tmp_path_factory.mktemp("clocked") / "credentials")
    create_initial_identities(keys)
    clock, port = AwsClock(), processes.free_port()
    server = create_server(AuthorizingProxy(create_app(), clock), "127.0.0.1", port)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.run)
    thread.start()
    endpoint = f"http://127.0.0.1:{port}"
    while not processes.healthy(f"{endpoint}/moto-api/", lambda response: response.is_success):
        assert thread.is_alive()
    yield Aws(endpoint, keys), clock
    server.should_exit = True
    thread.join()


@pytest.fixture
def sandbox_command() -> Any:
    """Return a function that runs `lakewright sandbox ...` in its own process."""

    def run(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        code = "from lakewright_sandbox.cli import app; app()"
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **more)

    return run


@pytest.fixture
def directory(tmp_path: Path, sandbox_command: Any) -> Iterator[Path]:
    """A directory for a sandbox, which is stopped after the test."""
    yield tmp_path / "sandbox"
    sandbox_command("down", "--dir", str(tmp_path / "sandbox"))


def kill(pid: int) -> None:
    """Kill a process as a crash does, and wait for its end."""
    os.kill(pid, signal.SIGKILL)
    while processes.command_line(pid):
        pass
