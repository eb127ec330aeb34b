"""The command lines of a session's processes, which other users can see, contain no secret."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from authenticating_proxy import AuthenticatingProxy, issue_token, serve_proxy
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, TokenAuth
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from spark_connect import connect_server

FULL_ONLY = pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="a JVM for each kind of session: test-all")
pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(600)]

SCRIPT = """
from lakewright_spark.run.context import current

run = current()
print(run.spark.sql("SHOW NAMESPACES").count() > 0, "namespaces")
"""


@dataclass
class ProcessLog:
    """Command lines and environments of the processes of this machine during the test."""

    commands: set[bytes] = field(default_factory=set)
    environments: set[bytes] = field(default_factory=set)

    def look(self) -> None:
        for process in Path("/proc").glob("[0-9]*"):
            for name, contents in (("cmdline", self.commands), ("environ", self.environments)):
                with suppress(OSError):  # the process has ended or belongs to another user
                    contents.add((process / name).read_bytes())

    def has_started_java(self) -> bool:
        return any(b"org.apache.spark.deploy.SparkSubmit" in command for command in self.commands)


@contextmanager
def watch_processes() -> Iterator[ProcessLog]:
    """Record all processes until the block ends."""
    process_log, ended = ProcessLog(), threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            process_log.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield process_log
    finally:
        ended.set()
        thread.join()


def run_command(*arguments: str, code: int = 0, **variables: str) -> str:
    command = [sys.executable, "-m", "lakewright_spark.cli", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "LAKEWRIGHT_REGISTRY"} | variables
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr[-3000:]
    return done.stdout + done.stderr


def write_files(config: CatalogConfig, proxy: AuthenticatingProxy, auth: CatalogAuth, folder: Path) -> CatalogConfig:
    guarded = config.model_copy(update={"uri": proxy.catalog_uri, "auth": auth})
    (folder / "catalog.json").write_text(guarded.to_json())
    (folder / "script.py").write_text(SCRIPT)
    return guarded


def test_run_exposes_no_client_secret(catalog_config: CatalogConfig, sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(secret := uuid.uuid4().hex)
    with (
        serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint, secret=secret)) as proxy,
        watch_processes() as process_log,
    ):
        auth = ClientCredentialsAuth(
            kind="client-credentials",
            token_url=proxy.token_url,
            client_id="job",
            client_secret=f"file:{tmp_path / 'secret'}",
        )
        write_files(catalog_config, proxy, auth, tmp_path)
        options = ["--config", str(tmp_path / "catalog.json"), "--workflow", "15", "--execution", "1", "--no-registry"]
        spark_password = uuid.uuid4().hex
        output = run_command(
            "run", *options, "--conf", f"spark.my.password={spark_password}", str(tmp_path / "script.py")
        )
    assert "True namespaces" in output
    assert process_log.has_started_java()
    started = [command for command in process_log.commands if b"lakewright_spark.cli" not in command]
    assert not [command for command in process_log.commands if secret.encode() in command]
    assert not [command for command in started if spark_password.encode() in command], (
        "a secret among the user's settings, either"
    )
    for secret_text in (secret, spark_password):
        assert not [environment for environment in process_log.environments if secret_text.encode() in environment]


def test_maintain_exposes_no_token(catalog_config: CatalogConfig, sandbox: Sandbox, tmp_path: Path) -> None:
    """The token remains in the caller's environment variable, which other users cannot read."""
    bearer = issue_token(3600, jti=uuid.uuid4().hex)
    catalog = open_catalog(catalog_config, "results")
    catalog.create_namespace_if_not_exists("watched")
    rows = pa.table({"n": [1, 2, 3]})
    catalog.create_table("watched.numbers", rows.schema).append(rows)
    with serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint)) as proxy, watch_processes() as process_log:
        auth = TokenAuth(kind="token", token="env:BEARER")
        write_files(catalog_config, proxy, auth, tmp_path)
        options = ["--config", str(tmp_path / "catalog.json"), "--namespace", "watched", "--job", "statistics"]
        output = run_command("maintain", *options, BEARER=bearer)
    assert "1 succeeded" in output
    assert process_log.has_started_java()
    assert not [command for command in process_log.commands if bearer.encode() in command]
    for environment in process_log.environments:
        variables = [variable for variable in environment.split(b"\0") if bearer.encode() in variable]
        assert not variables or variables == [b"BEARER=" + bearer.encode()]


@FULL_ONLY
def test_connect_client_exposes_no_client_secret(
    catalog_config: CatalogConfig, sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(secret := uuid.uuid4().hex)
    events = tmp_path / "events"
    events.mkdir()
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": events.as_uri()}
    with (
        serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint, secret=secret)) as proxy,
        watch_processes() as process_log,
    ):
        auth = ClientCredentialsAuth(
            kind="client-credentials",
            token_url=proxy.token_url,
            client_id="job",
            client_secret=f"file:{tmp_path / 'secret'}",
        )
        config = write_files(catalog_config, proxy, auth, tmp_path)
        arguments = ["run", "--config", str(tmp_path / "catalog.json"), "--workflow", "15", "--no-registry"]
        hidden = {"spark.redaction.regex": config.spark_properties()["spark.redaction.regex"]}
        script = str(tmp_path / "script.py")
        with connect_server(tmp_path, log | hidden) as address:
            command = [*arguments, "--execution", "2", "--remote", address, script]
            assert "expected a server without an event log" in run_command(*command, code=8)
        with connect_server(tmp_path, hidden) as address:
            assert "True namespaces" in run_command(*arguments, "--execution", "3", "--remote", address, script)
    assert not [command for command in process_log.commands if secret.encode() in command]
    assert not [environment for environment in process_log.environments if secret.encode() in environment]
    logged = "".join(path.read_text() for path in events.rglob("*") if path.is_file())
    assert "SparkListenerEnvironmentUpdate" in logged
    assert secret not in logged
