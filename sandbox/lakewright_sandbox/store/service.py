"""Start, check and stop the store of a sandbox; build MinIO once from the Go module that `sandbox/minio` pins."""

import contextlib
import functools
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from lakewright_sandbox.errors import ProcessFailedError, SandboxOptionsError
from lakewright_sandbox.runtime import processes
from lakewright_sandbox.runtime.credentials import IamAccessKey
from lakewright_sandbox.runtime.state import Layout, Sandbox, StoreState
from lakewright_sandbox.store import access

MOTO = "moto"
MINIO = "minio"

_START_SECONDS = 60
_HEALTH = "/minio/health/ready"
_CHECKOUT = Path(__file__).parents[3]
_BUILD = _CHECKOUT / "scripts" / "go_program.sh"
_MODULE = _CHECKOUT / "sandbox" / "minio"


def check_choice(choice: str | None) -> str | None:
    """Return the choice of a store: `moto`, `minio`, an address, or None. Raises SandboxOptionsError."""
    if choice is None or choice in {MOTO, MINIO}:
        return choice
    parts = urlsplit(choice)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/") or parts.username:
        raise SandboxOptionsError(
            "`--s3`: expected `moto`, `minio` or the address of a running store, as in `http://127.0.0.1:9000`."
        )
    return choice.rstrip("/")


def find_choice(sandbox: Sandbox | None) -> str:
    """Return the choice of the last start."""
    store = sandbox.store if sandbox else None
    if store is None:
        return MOTO
    return MINIO if store.pid is not None else store.endpoint


def is_responding(sandbox: Sandbox, layout: Layout) -> bool:
    """Return whether the sandbox's own MinIO runs and responds; True without a MinIO."""
    store = sandbox.store
    if store is None or store.pid is None:
        return True
    return _is_ours(store.pid, layout) and processes.healthy(store.endpoint + _HEALTH, lambda it: it.is_success)


def stop(sandbox: Sandbox, layout: Layout) -> bool:
    """Stop the sandbox's own MinIO. Return whether it ran."""
    store = sandbox.store
    if store is None or store.pid is None or store.program is None:
        return False
    return processes.stop(store.pid, str(store.program), layout.store_data)


def connect_or_start(
    layout: Layout, previous: Sandbox | None, choice: str | None, region: str | None, undo: contextlib.ExitStack
) -> tuple[StoreState | None, list[Callable[[], None]]]:
    """Return the chosen store, or that of the last start; start a MinIO that does not run.

    Args:
        layout: The sandbox's files.
        previous: The sandbox of the last start.
        choice: The choice of a store; None for that of the last start.
        region: Region of a running store.
        undo: Stops the started processes.

    Returns:
        The store, None for the emulated AWS; and functions that wait for the started processes.
    """
    before, choice = previous.store if previous else None, choice or find_choice(previous)
    if choice == MOTO:
        return None, []
    if choice != MINIO:
        return connect(layout, choice, region or (before.region if before else "us-east-1")), []
    if previous and before and before.pid and is_responding(previous, layout):
        return before, []
    store_state, wait = start(layout, previous, undo)
    return store_state, [wait]


def connect(layout: Layout, endpoint: str, region: str) -> StoreState:
    """Return a running store, with the keys of the environment or of the last start. Raises SandboxOptionsError."""
    keys = access.keys_from_environment(layout)
    access.require_access(endpoint, region, keys)
    access.save_keys(layout, keys)
    return _state(layout, endpoint, region)


def start(
    layout: Layout, previous: Sandbox | None, undo: contextlib.ExitStack
) -> tuple[StoreState, Callable[[], None]]:
    """Start a MinIO with its data in the sandbox's folder. Return it, and a function that waits for it."""
    before = previous.store if previous else None
    if previous:
        stop(previous, layout)
    program = minio_program()
    keys = access.load_or_create_keys(layout)
    port = processes.free_port(urlsplit(before.endpoint).port if before and before.pid else None)
    pid, wait = start_minio(program, layout.store_data, port, keys, log=layout.log("minio"), undo=undo)
    store_state = _state(layout, f"http://127.0.0.1:{port}", "us-east-1")
    return store_state.model_copy(
        update={"pid": pid, "program": program, "started_at": datetime.now(UTC).replace(microsecond=0)}
    ), wait


def start_minio(
    program: Path,
    data: Path,
    port: int,
    keys: IamAccessKey,
    *,
    log: Path,
    undo: contextlib.ExitStack,
    certificates: Path | None = None,
    trusted: Path | None = None,
) -> tuple[int, Callable[[], None]]:
    """Start a MinIO server on loopback, and stop it with `undo`.

    Args:
        program: The server.
        data: Folder of its data.
        port: Port on 127.0.0.1.
        keys: Its administrator.
        log: File for its output.
        undo: Stops the process.
        certificates: Folder with `public.crt` and `private.key`, for TLS.
        trusted: File with the authority of these certificates, in PEM.

    Returns:
        The process's id, and a function that waits until the server responds.
    """
    data.mkdir(parents=True, exist_ok=True)
    command = [str(program), "server", str(data), "--address", f"127.0.0.1:{port}", "--quiet"]
    if certificates:
        command += ["--certs-dir", str(certificates)]
    dropped = ("AWS_", "MINIO_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(dropped)} | {
        "MINIO_ROOT_USER": keys.access_key_id,
        "MINIO_ROOT_PASSWORD": keys.secret_access_key.get_secret_value(),
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }
    process = processes.start_program(command, log, environment)

    def stop_again() -> None:
        with contextlib.suppress(ProcessFailedError):
            processes.stop(process.pid, str(program), data)

    undo.callback(stop_again)
    wait = functools.partial(
        processes.wait_until_healthy,
        process,
        "MinIO",
        url=f"{'https' if certificates else 'http'}://127.0.0.1:{port}{_HEALTH}",
        accept=lambda response: response.is_success,
        log=log,
        seconds=_START_SECONDS,
        trusted=trusted,
    )
    return process.pid, wait


def _is_ours(pid: int, layout: Layout) -> bool:
    return str(layout.store_data) in processes.command_line(pid)


def _state(layout: Layout, endpoint: str, region: str) -> StoreState:
    return StoreState(
        endpoint=endpoint,
        region=region,
        access_key_id=f"file:{layout.store_key_id}",
        secret_access_key=f"file:{layout.store_secret}",
    )


def minio_program() -> Path:
    """Return the MinIO server; build it if the user's cache has none, which takes minutes.

    Raises:
        SandboxOptionsError: This is no checkout of the repository, so there is nothing to build from.
        ProcessFailedError: The build failed; its output is on stderr.
    """
    if not _BUILD.is_file():
        raise SandboxOptionsError(
            "`--s3 minio` builds MinIO in a checkout of the repository; this is an installed package. Start a store,"
            " and name its address: `--s3 http://127.0.0.1:9000`."
        )
    build = subprocess.run([_BUILD, _MODULE, "github.com/minio/minio"], stdout=subprocess.PIPE, text=True, check=False)
    if build.returncode:
        raise ProcessFailedError("MinIO could not be built for the reason above. Put Go 1.24 or newer on the PATH.")
    return Path(build.stdout.strip())
