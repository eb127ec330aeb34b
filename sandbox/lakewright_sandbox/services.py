"""The processes of a sandbox: how each is recognized, started, awaited and stopped."""

import contextlib
import functools
import os
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx

from lakewright_sandbox.errors import ProcessFailedError
from lakewright_sandbox.lakekeeper.protocol.settings import DATABASE_VARIABLE
from lakewright_sandbox.lakekeeper.protocol.versions import Version
from lakewright_sandbox.runtime import processes
from lakewright_sandbox.runtime.credentials import LAKEKEEPER
from lakewright_sandbox.runtime.state import Authz, AwsState, LakekeeperState, Layout, Sandbox, TokensState
from lakewright_sandbox.tokens.clients import JOBS, STACK, OAuthClient

AWS_MODULE = "lakewright_sandbox.aws"
LAKEKEEPER_MODULE = "lakewright_sandbox.lakekeeper"
TOKENS_MODULE = "lakewright_sandbox.tokens"

_REGION = "us-east-1"
_ACCOUNT_ID = "123456789012"
_START_SECONDS = 60

ServiceName = Literal["aws", "tokens", "lakekeeper", "store"]

_State = TypeVar("_State")
Starting = tuple[
    _State, Callable[[], None]
]  # the state of a started process, and a function that waits until it is healthy


class CatalogOptions(NamedTuple):
    """Options to start the catalog with."""

    database: str
    authz: Authz
    version: Version


def aws_answers(sandbox: Sandbox, layout: Layout) -> bool:
    """Return whether the process that emulates AWS runs and responds."""
    return processes.is_ours(sandbox.aws.pid, AWS_MODULE, layout.credentials) and processes.healthy(
        f"{sandbox.aws.endpoint}/moto-api/", _answers_ok
    )


def tokens_answer(sandbox: Sandbox, layout: Layout) -> bool:
    """Return whether the identity provider responds; True if there is none."""
    if sandbox.tokens is None:
        return True
    return processes.is_ours(sandbox.tokens.pid, TOKENS_MODULE, layout.clients) and processes.healthy(
        f"{sandbox.tokens.issuer}/health", reports_ok
    )


def lakekeeper_answers(sandbox: Sandbox, layout: Layout) -> bool:
    """Return whether the catalog runs and responds."""
    return processes.is_ours(sandbox.lakekeeper.pid, LAKEKEEPER_MODULE, layout.credentials) and processes.healthy(
        f"{sandbox.lakekeeper.endpoint}/health", reports_ok
    )


def stop_all(sandbox: Sandbox, layout: Layout) -> list[ServiceName]:
    """Stop all processes, the catalog first because it depends on its storage. Return the processes that ran."""
    stopped: list[ServiceName] = []
    if processes.stop(sandbox.lakekeeper.pid, LAKEKEEPER_MODULE, layout.credentials):
        stopped.append("lakekeeper")
    if stop_tokens(sandbox, layout):
        stopped.append("tokens")
    if processes.stop(sandbox.aws.pid, AWS_MODULE, layout.credentials):
        stopped.append("aws")
    return stopped


def stop_tokens(sandbox: Sandbox, layout: Layout) -> bool:
    """Stop the identity provider. Return whether it ran."""
    return sandbox.tokens is not None and processes.stop(sandbox.tokens.pid, TOKENS_MODULE, layout.clients)


def _answers_ok(response: httpx.Response) -> bool:
    return response.is_success


def reports_ok(response: httpx.Response) -> bool:
    """Return whether a response of `/health` reports success: old servers respond 200 with an error in the body."""
    return response.is_success and response.json().get("health") == "ok"


def start_aws(layout: Layout, previous: Sandbox | None, undo: contextlib.ExitStack) -> Starting[AwsState]:
    """Start the process that emulates AWS."""
    if previous:
        processes.stop(previous.aws.pid, AWS_MODULE, layout.credentials)  # it may hang rather than have ended
    port = processes.free_port(urlsplit(previous.aws.endpoint).port if previous else None)
    endpoint = f"http://127.0.0.1:{port}"
    arguments = ["--port", str(port), "--credentials-file", str(layout.credentials), "--trail", str(layout.trail)]
    process = _start(AWS_MODULE, arguments, layout, "aws", mark=layout.credentials, undo=undo)
    wait = functools.partial(
        processes.wait_until_healthy,
        process,
        "AWS",
        url=f"{endpoint}/moto-api/",
        accept=_answers_ok,
        log=layout.log("aws"),
        seconds=_START_SECONDS,
    )
    aws_state = AwsState(
        endpoint=endpoint,
        region=_REGION,
        account_id=_ACCOUNT_ID,
        pid=process.pid,
        catalog_principal_arn=f"arn:aws:iam::{_ACCOUNT_ID}:user/{LAKEKEEPER}",
        started_at=datetime.now(UTC).replace(microsecond=0),
    )
    return aws_state, wait


def start_tokens(layout: Layout, previous: Sandbox | None, undo: contextlib.ExitStack) -> Starting[TokensState]:
    """Start the identity provider."""
    before = previous.tokens if previous else None
    if previous:
        stop_tokens(previous, layout)
    port = processes.free_port(urlsplit(before.issuer).port if before else None)
    issuer = f"http://127.0.0.1:{port}"
    process = _start(
        TOKENS_MODULE,
        ["--port", str(port), "--clients", str(layout.clients)],
        layout,
        "tokens",
        mark=layout.clients,
        undo=undo,
    )
    wait = functools.partial(
        processes.wait_until_healthy,
        process,
        "identity provider",
        url=f"{issuer}/health",
        accept=reports_ok,
        log=layout.log("tokens"),
        seconds=_START_SECONDS,
    )
    tokens_state = TokensState(
        issuer=issuer,
        token_url=f"{issuer}/token",
        client_id=STACK,
        client_secret_file=layout.clients / STACK,
        jobs_client_id=JOBS,
        jobs_client_secret_file=layout.clients / JOBS,
        audience=OAuthClient.audiences[0],
        pid=process.pid,
        started_at=datetime.now(UTC).replace(microsecond=0),
    )
    return tokens_state, wait


def start_lakekeeper(
    layout: Layout,
    previous: Sandbox | None,
    aws: AwsState,
    *,
    tokens: TokensState | None,
    how: CatalogOptions,
    undo: contextlib.ExitStack,
) -> Starting[LakekeeperState]:
    """Start the catalog. It requires tokens if there is an identity provider."""
    if previous:
        processes.stop(previous.lakekeeper.pid, LAKEKEEPER_MODULE, layout.credentials)
    port = processes.free_port(urlsplit(previous.lakekeeper.endpoint).port if previous else None)
    endpoint = f"http://127.0.0.1:{port}"
    arguments = ["--port", str(port), "--authz", how.authz, "--version", how.version]
    arguments += ["--aws-endpoint", aws.endpoint, "--audit-log", str(layout.audit_log)]
    arguments += ["--credentials-file", str(layout.credentials), "--profile", LAKEKEEPER]
    if tokens:
        arguments += ["--openid-provider-uri", tokens.issuer, "--openid-audience", tokens.audience]
    variables = {DATABASE_VARIABLE: how.database}
    process = _start(
        LAKEKEEPER_MODULE, arguments, layout, "lakekeeper", mark=layout.credentials, undo=undo, more=variables
    )
    wait = functools.partial(
        processes.wait_until_healthy,
        process,
        "Lakekeeper",
        url=f"{endpoint}/health",
        accept=reports_ok,
        log=layout.log("lakekeeper"),
        seconds=_START_SECONDS,
    )
    lakekeeper_state = LakekeeperState(
        endpoint=endpoint,
        catalog_uri=f"{endpoint}/catalog",
        pid=process.pid,
        authz=how.authz,
        version=how.version,
        started_at=datetime.now(UTC).replace(microsecond=0),
    )
    return lakekeeper_state, wait


def _start(
    module: str,
    arguments: list[str],
    layout: Layout,
    name: ServiceName,
    *,
    mark: Path,
    undo: contextlib.ExitStack,
    more: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """Start a process that is recognized by `mark`, a path of this sandbox among its arguments."""
    # Drop the user's own AWS settings: nothing in a sandbox may ever reach a real account.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "MOTO_"))}
    environment |= more
    process = processes.start(module, arguments, layout.log(name), environment)

    def stop_again() -> None:
        with contextlib.suppress(ProcessFailedError):
            processes.stop(process.pid, module, mark)

    undo.callback(stop_again)
    return process
