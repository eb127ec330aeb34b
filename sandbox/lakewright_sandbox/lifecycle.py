"""Start, inspect and stop a sandbox. A directory holds one sandbox; starting is idempotent and restarts what died."""

import contextlib
import fcntl
import shutil
import uuid
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from lakewright_sandbox import services
from lakewright_sandbox.errors import SandboxMissingError, SandboxOptionsError
from lakewright_sandbox.lakekeeper.protocol.versions import RELEASED, Version
from lakewright_sandbox.runtime import state
from lakewright_sandbox.runtime.credentials import load_or_create
from lakewright_sandbox.runtime.state import Authz, Layout, Sandbox, TokensState
from lakewright_sandbox.services import CatalogOptions, ServiceName
from lakewright_sandbox.store import service as store_service

DEFAULT_DIR = Path(".sandbox")

Auth = Literal["none", "oauth2"]
"""Whether the catalog takes anonymous calls, or requires tokens of the sandbox's own identity provider."""


class SandboxStatus(BaseModel):
    """A sandbox and its responding processes."""

    sandbox: Sandbox
    aws_running: bool
    lakekeeper_running: bool
    tokens_running: bool = True
    """True if there is no identity provider."""
    store_running: bool = True
    """True if the sandbox has no MinIO of its own."""

    @property
    def running(self) -> bool:
        """Return whether all processes respond."""
        return self.aws_running and self.tokens_running and self.store_running and self.lakekeeper_running


class StartResult(BaseModel):
    """The sandbox and the processes that had to be started, none if everything ran."""

    sandbox: Sandbox
    started: list[ServiceName]


class SandboxOptions(BaseModel, frozen=True):
    """Options of a sandbox. Each is kept for the next start; None means the option of the last start.

    `database` is a SQLAlchemy URL for the catalog, by default a SQLite file in the directory. The catalog enforces
    grants with `authz="openfga"`, by default every caller may do everything; it requires tokens with `auth="oauth2"`.
    `version` is the Lakekeeper version that it emulates. `s3` is the store of tenants: `moto` for the emulated AWS,
    `minio` for a MinIO of the sandbox, or the address of a running store, whose keys are in `AWS_ACCESS_KEY_ID` and
    `AWS_SECRET_ACCESS_KEY`.
    """

    database: str | None = None
    authz: Authz | None = None
    auth: Auth | None = None
    version: Version | None = None
    s3: str | None = None
    s3_region: str | None = None


def up(
    directory: Path = DEFAULT_DIR, database: str | None = None, authz: Authz | None = None, auth: Auth | None = None
) -> Sandbox:
    """Start the sandbox of a directory with some options of `SandboxOptions`; running processes are kept.

    Raises:
        ProcessFailedError: A process did not start; the message has the end of its log.
        SandboxStateError: The state file cannot be read.
        CredentialsFileError: The credentials file cannot be used.
    """
    return bring_up(directory, SandboxOptions(database=database, authz=authz, auth=auth)).sandbox


def bring_up(directory: Path = DEFAULT_DIR, options: SandboxOptions | None = None) -> StartResult:
    """Start the sandbox as `up` does, and report which processes had to be started."""
    options = options or SandboxOptions()
    chosen_store = store_service.check_choice(options.s3)
    layout = Layout(directory)
    layout.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if layout.state.exists():
        layout.root.chmod(0o700)  # an earlier release left it readable by others
    with _lock(layout):
        previous = state.read(layout)
        load_or_create(layout.credentials)
        how = _choose_catalog(layout, previous, options)
        other_database = how.database != state.read_database_url(layout)
        auth = _choose_auth(options.auth, previous, how.authz)
        started: list[ServiceName] = []
        waits: list[Callable[[], None]] = []
        # If a process does not start, stop the processes that were started for this run.
        with contextlib.ExitStack() as undo:
            if previous and services.aws_answers(previous, layout):
                aws = previous.aws
            else:
                aws, wait = services.start_aws(layout, previous, undo)
                started.append("aws")
                waits.append(wait)
            store, store_waits = store_service.connect_or_start(layout, previous, chosen_store, options.s3_region, undo)
            started.extend("store" for _ in store_waits)
            waits += store_waits
            tokens = previous.tokens if previous else None
            if auth == "none":
                tokens = None
            elif tokens is None or not (previous and services.tokens_answer(previous, layout)):
                tokens, wait = services.start_tokens(layout, previous, undo)
                started.append("tokens")
                waits.append(wait)
            started_alike = (
                previous is not None
                and previous.aws.endpoint == aws.endpoint
                and _issuer(previous.tokens) == _issuer(tokens)
                and (previous.lakekeeper.authz, previous.lakekeeper.version) == (how.authz, how.version)
                and not other_database
            )
            if previous and started_alike and services.lakekeeper_answers(previous, layout):
                lakekeeper = previous.lakekeeper
            else:
                lakekeeper, wait = services.start_lakekeeper(layout, previous, aws, tokens=tokens, how=how, undo=undo)
                started.append("lakekeeper")
                waits.append(wait)
            sandbox = Sandbox(
                id=previous.id if previous else str(uuid.uuid4()),
                dir=layout.root,
                lakekeeper=lakekeeper,
                aws=aws,
                tokens=tokens,
                store=store,
                credentials_file=layout.credentials,
            )
            # Written before the wait: if this process is killed during it, the next `up` finds the started processes.
            undo.callback(_restore, layout, previous)
            state.write(layout, sandbox)
            for wait in waits:
                wait()
            if other_database:
                state.write_database_url(layout, how.database)
            undo.pop_all()
            if previous:
                _stop_unused(previous, sandbox, layout)
        return StartResult(sandbox=sandbox, started=started)


def _choose_catalog(layout: Layout, previous: Sandbox | None, options: SandboxOptions) -> CatalogOptions:
    """Return the options of the catalog. Raises SandboxOptionsError."""
    database = options.database or state.read_database_url(layout)
    if database == state.read_database_url(layout):
        _refuse_other_authz(layout, previous, options.authz)
    before = previous.lakekeeper if previous else None
    return CatalogOptions(
        database,
        options.authz or (before.authz if before else "allowall"),
        options.version or (before.version if before else RELEASED),
    )


def _refuse_other_authz(layout: Layout, previous: Sandbox | None, authz: Authz | None) -> None:
    """Refuse to change how a catalog with data authorizes: its projects would have no grants, not even its operator's.

    Raises:
        SandboxOptionsError: The catalog was started with another mode, and its data exist.
    """
    before = previous.lakekeeper.authz if previous else authz
    if authz in (None, before) or (_has_own_database(layout) and not layout.database.exists()):
        return
    raise SandboxOptionsError(
        f"The sandbox in {layout.root} has a catalog with `--authz {before}`, which cannot change to {authz} while it"
        f" has data. `lakewright sandbox reset --dir {layout.root} --authz {authz}` deletes its catalog, buckets and"
        " roles and starts it again; `lakewright sandbox up --dir FOLDER` starts another sandbox."
    )


def _has_own_database(layout: Layout) -> bool:
    """Return whether the catalog's database is a file of the sandbox."""
    return state.read_database_url(layout) == f"sqlite:///{layout.database}"


def reset(directory: Path = DEFAULT_DIR, options: SandboxOptions | None = None) -> StartResult:
    """Delete the catalog, buckets and roles of a sandbox, and start it again with its keys, ports and options.

    Objects in a running store that the sandbox did not start are not deleted.

    Args:
        directory: The sandbox's folder.
        options: Options that change; None for the options of the last start.

    Raises:
        SandboxMissingError: There is no sandbox.
        SandboxOptionsError: The catalog's database is not the sandbox's own.
    """
    layout = Layout(directory)
    _find_existing(layout)
    if not _has_own_database(layout):
        raise SandboxOptionsError(
            f"The catalog of the sandbox in {layout.root} has a database of its own, which `reset` does not delete."
            f" Empty that database, or start another sandbox: `lakewright sandbox up --dir FOLDER`."
        )
    with _lock(layout):
        sandbox = _find_existing(layout)
        services.stop_all(sandbox, layout)
        store_service.stop(sandbox, layout)
        _remove_data(layout)
    return bring_up(directory, options)


def _remove_data(layout: Layout) -> None:
    """Remove the data of catalog and store; the emulated AWS keeps its data in its process."""
    for path in layout.root.glob(f"{layout.database.name}*"):
        path.unlink(missing_ok=True)
    shutil.rmtree(layout.store_data, ignore_errors=True)


def _stop_unused(previous: Sandbox, sandbox: Sandbox, layout: Layout) -> None:
    """Stop the processes of the last start that the sandbox no longer has."""
    if sandbox.tokens is None:
        services.stop_tokens(previous, layout)
    if sandbox.store is None or sandbox.store.pid is None:
        store_service.stop(previous, layout)


def _choose_auth(requested: Auth | None, previous: Sandbox | None, authz: Authz) -> Auth:
    """Return the authentication mode; enforced grants require tokens."""
    if authz == "openfga" and requested == "none":
        raise SandboxOptionsError(
            "A catalog that enforces grants needs tokens to identify its callers. "
            "Leave out `--auth none`, or add `--authz allowall`."
        )
    before = previous is not None and previous.tokens is not None
    return requested or ("oauth2" if before or authz == "openfga" else "none")


def status(directory: Path = DEFAULT_DIR) -> SandboxStatus:
    """Return the status of a sandbox. Raises SandboxMissingError if there is none."""
    layout = Layout(directory)
    sandbox = _find_existing(layout)
    return SandboxStatus(
        sandbox=sandbox,
        aws_running=services.aws_answers(sandbox, layout),
        lakekeeper_running=services.lakekeeper_answers(sandbox, layout),
        tokens_running=services.tokens_answer(sandbox, layout),
        store_running=store_service.is_responding(sandbox, layout),
    )


def down(directory: Path = DEFAULT_DIR, *, purge: bool = False) -> list[ServiceName]:
    """Stop the sandbox's processes. Return the processes that ran.

    The catalog's data and the keys are kept for the next `up` unless `purge` is set.

    Raises:
        SandboxMissingError: There is no sandbox.
    """
    layout = Layout(directory)
    _find_existing(layout)
    with _lock(layout):
        stopped = services.stop_all(_find_existing(layout), layout)
        if store_service.stop(_find_existing(layout), layout):
            stopped.append("store")
        if purge:
            _purge(layout)
    return stopped


def _issuer(tokens: TokensState | None) -> str | None:
    return tokens.issuer if tokens else None


def _find_existing(layout: Layout) -> Sandbox:
    sandbox = state.read(layout)
    if sandbox is None:
        raise SandboxMissingError(
            f"There is no sandbox in {layout.root}. Run `lakewright sandbox up --dir {layout.root}`."
        )
    return sandbox


@contextlib.contextmanager
def _lock(layout: Layout) -> Generator[None, None, None]:
    """Allow one `up` or `down` at a time; others wait. The system releases the lock when its process ends."""
    with layout.lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _restore(layout: Layout, previous: Sandbox | None) -> None:
    if previous:
        state.write(layout, previous)
    else:
        layout.state.unlink(missing_ok=True)


def _purge(layout: Layout) -> None:
    _remove_data(layout)
    for path in (
        layout.database_url,
        layout.credentials,
        layout.state,
        layout.lock,
    ):
        path.unlink(missing_ok=True)
    for folder in (layout.logs, layout.clients, layout.store):
        shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        layout.root.rmdir()  # fails if other files are in it
