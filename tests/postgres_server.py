"""A Postgres server for tests, over TCP on 127.0.0.1. Postgres refuses to run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from lakewright_sandbox.runtime.processes import free_port

AS_NOBODY = ("/usr/sbin/runuser", "-u", "nobody", "--")
"""Beginning of a command that root runs as a user without rights."""
DEBIAN_RELEASES = Path("/usr/lib/postgresql")
"""Folder of Debian's releases of Postgres, whose servers are on no PATH."""


def find_postgres_program(name: str) -> str | None:
    """Return the path of a program of Postgres; None if it is not installed."""
    releases = sorted(DEBIAN_RELEASES.glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True)
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, releases)))


@contextmanager
def postgres(*, password_users: Sequence[str] = ()) -> Iterator[str]:
    """Run the server; yield the URL of its database `postgres`. Skip the test if Postgres is not installed.

    Args:
        password_users: Users who must send a password. The server accepts all other users without one.
    """
    control, initdb = find_postgres_program("pg_ctl"), find_postgres_program("initdb")
    if control is None or initdb is None:
        pytest.skip(f"Postgres is not installed: initdb and pg_ctl are neither on the PATH nor below {DEBIAN_RELEASES}")
    with tempfile.TemporaryDirectory(prefix="postgres") as directory:
        port = free_port()
        user = AS_NOBODY if os.geteuid() == 0 else ()
        if user:
            shutil.chown(directory, "nobody")
        data, options = f"{directory}/data", f"-p {port} -c unix_socket_directories={directory} -c fsync=off"
        run = partial(subprocess.run, check=True, capture_output=True, cwd=directory)
        run([*user, initdb, "-D", data, "-U", "lakewright", "-A", "trust"])
        rules = Path(data, "pg_hba.conf")
        password_rules = [f"host all {name} all scram-sha-256\n" for name in password_users]
        rules.write_text("".join([*password_rules, rules.read_text()]))
        run([*user, control, "-D", data, "-w", "-o", options, "-l", f"{directory}/log", "start"])
        try:
            yield f"postgresql://lakewright@127.0.0.1:{port}/postgres"
        finally:
            run([*user, control, "-D", data, "-w", "-m", "immediate", "stop"])
