"""A Postgres server for one test, over TCP on 127.0.0.1. Postgres refuses to run as root."""

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


@contextmanager
def postgres(*, password_users: Sequence[str] = ()) -> Iterator[str]:
    """Run the server; yield the URL of its database `postgres`. Skip the test if Postgres is not installed.

    Args:
        password_users: Users who must send a password. The server accepts all other users without one.
    """
    control, initdb = shutil.which("pg_ctl"), shutil.which("initdb")
    if control is None or initdb is None:
        pytest.skip("Postgres is not installed: initdb and pg_ctl are not on the PATH")
    with tempfile.TemporaryDirectory(prefix="postgres") as directory:
        port = free_port()
        user = ["/usr/sbin/runuser", "-u", "nobody", "--"] if os.geteuid() == 0 else []
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
