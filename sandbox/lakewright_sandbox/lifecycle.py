"""A sandbox's life: up (idempotent, mends a half that died), status, down. One directory, one sandbox."""

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel

from lakewright_sandbox import processes, state
from lakewright_sandbox.credentials import LAKEKEEPER, load_or_create
from lakewright_sandbox.errors import ProcessFailedError, SandboxMissingError
from lakewright_sandbox.lakekeeper.settings import DATABASE_VARIABLE
from lakewright_sandbox.state import Authz, AwsState, LakekeeperState, Layout, Sandbox

AWS_MODULE = "lakewright_sandbox.aws"
LAKEKEEPER_MODULE = "lakewright_sandbox.lakekeeper"
DEFAULT_DIR = Path(".sandbox")

_REGION = "us-east-1"
_ACCOUNT_ID = "123456789012"
_START_SECONDS = 60

Half = Literal["aws", "lakekeeper"]

_State = TypeVar("_State")
Starting = tuple[_State, Callable[[], None]]  # a half that was started, and what waits until it is healthy


class Catalog(NamedTuple):
    """How the catalog is to be started."""

    database: str
    authz: Authz


class Status(BaseModel):
    """A sandbox and which of its halves answer."""

    sandbox: Sandbox
    aws_running: bool
    lakekeeper_running: bool

    @property
    def running(self) -> bool:
        """Whether all of it is up."""
        return self.aws_running and self.lakekeeper_running


class Up(BaseModel):
    """What `up` did: the sandbox, and the halves it had to start (none if everything was running)."""

    sandbox: Sandbox
    started: list[Half]


def up(directory: Path = DEFAULT_DIR, database: str | None = None, authz: Authz | None = None) -> Sandbox:
    """Brings the sandbox of that directory up; what runs already is left alone.

    `database` is a SQLAlchemy URL for the catalog, kept for the next time; by default a SQLite file in the directory.
    `authz` is kept too: with `openfga` the catalog enforces grants, by default everybody may do everything.
    Raises ProcessFailedError (with the end of the log), SandboxStateError or CredentialsFileError.
    """
    return bring_up(directory, database, authz).sandbox


def bring_up(directory: Path = DEFAULT_DIR, database: str | None = None, authz: Authz | None = None) -> Up:
    """As `up`, and tells what had to be started."""
    layout = Layout(directory)
    layout.root.mkdir(parents=True, exist_ok=True)
    with _lock(layout):
        known = state.read(layout)
        load_or_create(layout.credentials)
        chosen = database or state.read_database_url(layout)
        other_database = chosen != state.read_database_url(layout)
        enforced = authz or (known.lakekeeper.authz if known else "allowall")
        started: list[Half] = []
        waits: list[Callable[[], None]] = []
        # If one half does not come up, the other one that was started for it is stopped again.
        with contextlib.ExitStack() as undo:
            if known and _aws_answers(known, layout):
                aws = known.aws
            else:
                aws, wait = _start_aws(layout, known, undo)
                started.append("aws")
                waits.append(wait)
            started_alike = known is not None and known.aws.endpoint == aws.endpoint and not other_database
            started_alike = started_alike and known is not None and known.lakekeeper.authz == enforced
            if known and started_alike and _lakekeeper_answers(known, layout):
                lakekeeper = known.lakekeeper
            else:
                lakekeeper, wait = _start_lakekeeper(layout, known, aws, Catalog(chosen, enforced), undo)
                started.append("lakekeeper")
                waits.append(wait)
            sandbox = Sandbox(
                id=known.id if known else str(uuid.uuid4()),
                dir=layout.root,
                lakekeeper=lakekeeper,
                aws=aws,
                credentials_file=layout.credentials,
            )
            # Written before the wait: if this process is killed in it, the next `up` knows what there is to take over.
            undo.callback(_restore, layout, known)
            state.write(layout, sandbox)
            for wait in waits:
                wait()
            if other_database:
                state.write_database_url(layout, chosen)
            undo.pop_all()
        return Up(sandbox=sandbox, started=started)


def status(directory: Path = DEFAULT_DIR) -> Status:
    """How the sandbox is. Raises SandboxMissingError where there is none."""
    layout = Layout(directory)
    sandbox = _existing(layout)
    return Status(
        sandbox=sandbox,
        aws_running=_aws_answers(sandbox, layout),
        lakekeeper_running=_lakekeeper_answers(sandbox, layout),
    )


def down(directory: Path = DEFAULT_DIR, purge: bool = False) -> list[Half]:
    """Stops the sandbox's processes and nothing else; returns the halves that were running.

    The catalog's data and the keys stay for the next `up`; `purge` removes them, with everything else the sandbox made.
    Raises SandboxMissingError where there is no sandbox.
    """
    layout = Layout(directory)
    _existing(layout)
    with _lock(layout):
        sandbox = _existing(layout)
        stopped: list[Half] = []
        # The catalog first: it must not see its storage go away.
        if processes.stop(sandbox.lakekeeper.pid, LAKEKEEPER_MODULE, layout.credentials):
            stopped.append("lakekeeper")
        if processes.stop(sandbox.aws.pid, AWS_MODULE, layout.credentials):
            stopped.append("aws")
        if purge:
            _purge(layout)
    return stopped


def _existing(layout: Layout) -> Sandbox:
    sandbox = state.read(layout)
    if sandbox is None:
        raise SandboxMissingError(
            f"There is no sandbox in {layout.root}. Start one with `lakewright sandbox up --dir {layout.root}`."
        )
    return sandbox


@contextlib.contextmanager
def _lock(layout: Layout) -> Iterator[None]:
    """One `up` or `down` at a time; the others wait. The system drops the lock with its process."""
    with layout.lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _restore(layout: Layout, known: Sandbox | None) -> None:
    if known:
        state.write(layout, known)
    else:
        layout.state.unlink(missing_ok=True)


def _purge(layout: Layout) -> None:
    for path in (
        *layout.root.glob(f"{layout.database.name}*"),
        layout.database_url,
        layout.credentials,
        layout.state,
        layout.lock,
    ):
        path.unlink(missing_ok=True)
    shutil.rmtree(layout.logs, ignore_errors=True)
    with contextlib.suppress(OSError):
        layout.root.rmdir()  # stays if somebody else keeps files in it


def _aws_answers(sandbox: Sandbox, layout: Layout) -> bool:
    return processes.is_ours(sandbox.aws.pid, AWS_MODULE, layout.credentials) and processes.healthy(
        f"{sandbox.aws.endpoint}/moto-api/", _answers_ok
    )


def _lakekeeper_answers(sandbox: Sandbox, layout: Layout) -> bool:
    return processes.is_ours(sandbox.lakekeeper.pid, LAKEKEEPER_MODULE, layout.credentials) and processes.healthy(
        f"{sandbox.lakekeeper.endpoint}/health", _reports_ok
    )


def _answers_ok(response: httpx.Response) -> bool:
    return response.is_success


def _reports_ok(response: httpx.Response) -> bool:
    # Old servers answer 200 with an error in the body.
    return response.is_success and response.json().get("health") == "ok"


def _start_aws(layout: Layout, known: Sandbox | None, undo: contextlib.ExitStack) -> Starting[AwsState]:
    if known:
        processes.stop(known.aws.pid, AWS_MODULE, layout.credentials)  # it may hang rather than be gone
    port = processes.free_port(urlsplit(known.aws.endpoint).port if known else None)
    endpoint = f"http://127.0.0.1:{port}"
    arguments = ["--port", str(port), "--credentials-file", str(layout.credentials)]
    process = _start(AWS_MODULE, arguments, layout, "aws", undo)
    wait = functools.partial(
        processes.wait_until_healthy,
        process,
        "AWS",
        url=f"{endpoint}/moto-api/",
        accept=_answers_ok,
        log=layout.log("aws"),
        seconds=_START_SECONDS,
    )
    found = AwsState(
        endpoint=endpoint,
        region=_REGION,
        account_id=_ACCOUNT_ID,
        pid=process.pid,
        catalog_principal_arn=f"arn:aws:iam::{_ACCOUNT_ID}:user/{LAKEKEEPER}",
        started_at=datetime.now(UTC).replace(microsecond=0),
    )
    return found, wait


def _start_lakekeeper(
    layout: Layout, known: Sandbox | None, aws: AwsState, catalog: Catalog, undo: contextlib.ExitStack
) -> Starting[LakekeeperState]:
    if known:
        processes.stop(known.lakekeeper.pid, LAKEKEEPER_MODULE, layout.credentials)
    port = processes.free_port(urlsplit(known.lakekeeper.endpoint).port if known else None)
    endpoint = f"http://127.0.0.1:{port}"
    arguments = ["--port", str(port), "--authz", catalog.authz]
    arguments += ["--aws-endpoint", aws.endpoint]
    arguments += ["--credentials-file", str(layout.credentials), "--profile", LAKEKEEPER]
    variables = {DATABASE_VARIABLE: catalog.database}
    process = _start(LAKEKEEPER_MODULE, arguments, layout, "lakekeeper", undo, more=variables)
    wait = functools.partial(
        processes.wait_until_healthy,
        process,
        "Lakekeeper",
        url=f"{endpoint}/health",
        accept=_reports_ok,
        log=layout.log("lakekeeper"),
        seconds=_START_SECONDS,
    )
    found = LakekeeperState(
        endpoint=endpoint,
        catalog_uri=f"{endpoint}/catalog",
        pid=process.pid,
        authz=catalog.authz,
        started_at=datetime.now(UTC).replace(microsecond=0),
    )
    return found, wait


def _start(
    module: str,
    arguments: list[str],
    layout: Layout,
    name: Half,
    undo: contextlib.ExitStack,
    *,
    more: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    # The keys of whoever starts the sandbox are not its business: nothing in it may ever reach a real account.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "MOTO_"))}
    environment |= more
    process = processes.start(module, arguments, layout.log(name), environment)

    def stop_again() -> None:
        with contextlib.suppress(ProcessFailedError):
            processes.stop(process.pid, module, layout.credentials)

    undo.callback(stop_again)
    return process
