"""Postgres with TLS and the addresses of a primary and of a replica, as a managed database has them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.authorities import Authority, write_certificate
from tests.platform.network import PodNetwork, run_command
from tests.postgres_server import AS_NOBODY, find_postgres_program

DATABASE_HOST, DATABASE_READ_HOST = "db.platform.example", "db-ro.platform.example"
PASSWORDS = {"lakekeeper": "password-of-lakekeeper", "openfga": "password-of-openfga"}


class Postgres:
    """Postgres with TLS only, at the addresses of a primary and of a replica."""

    def __init__(self, folder: Path, network: PodNetwork, authority: Authority) -> None:
        """Start the server with the databases of Lakekeeper and OpenFGA."""
        self._folder = folder
        folder.mkdir()
        shutil.chown(folder, "nobody")
        certificates = write_certificate(authority, folder / "tls", DATABASE_HOST, DATABASE_READ_HOST)
        addresses = [network.add_host(host) for host in (DATABASE_HOST, DATABASE_READ_HOST)]
        for file in (certificates, *certificates.iterdir()):
            shutil.chown(file, "nobody")
            file.chmod(0o700 if file.is_dir() else 0o600)
        self._data = folder / "data"
        self._run("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust")
        (self._data / "pg_hba.conf").write_text("local all all trust\nhostssl all all all scram-sha-256\n")
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(
                f"listen_addresses = '{','.join(addresses)}'\nunix_socket_directories = '{folder}'\nfsync = off\n"
                f"ssl = on\nssl_cert_file = '{certificates}/public.crt'\nssl_key_file = '{certificates}/private.key'\n"
                "max_connections = 300\n"
            )
        self.start()
        for name, password in PASSWORDS.items():
            self.query(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
            self.query(f"CREATE DATABASE {name} OWNER {name}")

    def start(self) -> None:
        """Start the server."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-l", f"{self._folder}/log", "start")

    def stop(self) -> None:
        """Stop the server at once: all connections are lost."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")

    def suspend(self) -> None:
        """Let all processes of the server hang: connections remain open, without a response."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let all processes of the server continue."""
        self._signal(signal.SIGCONT)

    def query(self, statement: str, database: str = "postgres") -> list[str]:
        """Run a statement as the administrator and return the lines of its result."""
        command = ["psql", "-h", str(self._folder), "-U", "postgres", "-d", database, "-XAtq", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run([*command, "-c", statement], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def _signal(self, number: signal.Signals) -> None:
        leader = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
        for process in (leader, *map(int, children)):
            os.kill(process, number)

    def _run(self, program: str, *arguments: str) -> None:
        path = find_postgres_program(program)
        assert path is not None, f"{program} is not installed"
        run_command(*AS_NOBODY, path, *arguments)
