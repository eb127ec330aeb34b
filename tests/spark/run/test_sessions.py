"""Sessions of scripts, each in its own process: custom TLS with expiring tokens, a database, Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from authenticating_proxy import AuthenticatingProxy, serve_proxy
from certificates import create_certificates
from cluster import SMALL, standalone_cluster
from jdbc_catalog import jdbc_catalog_config
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog.auth import ClientCredentialsAuth, PasswordAuth
from lakewright_spark.catalog.config import CatalogConfig
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.session import jars
from spark_connect import connect_server

from tests.postgres_server import postgres

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(600)]

FULL_ONLY = pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="a JVM for each kind of session: test-all")

LIFETIME = 20
"""Lifetime of a token in seconds."""

LONG = f"""
import time
from lakewright_spark.run.context import current

run = current()
uri = run.write("Numbers-1", run.spark.range(100))
until = time.monotonic() + {LIFETIME} * 1.2
while time.monotonic() < until:  # with the same session, after its first token expired
    assert run.read(uri).count() == 100
    time.sleep(1)
print("still here")
"""

SHORT = """
from lakewright_spark.run.context import current

run = current()
print(run.read(run.write("Numbers-1", run.spark.range(100))).count(), "rows")
"""


def run(script: str, config: CatalogConfig, folder: Path, *options: str, **variables: str) -> str:
    """Run a script as an execution; return its output and Spark's event log."""
    (folder / "script.py").write_text(script)
    (folder / "catalog.json").write_text(config.to_json())
    (folder / "events").mkdir()
    command = [sys.executable, "-m", "lakewright_spark.cli", "run", "--config", str(folder / "catalog.json")]
    command += ["--workflow", "5", "--execution", "1", "--no-registry", *options]
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
    conf["spark.eventLog.dir"] = (folder / "events").as_uri()
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    environment = os.environ | variables
    finished = subprocess.run(
        [*command, str(folder / "script.py")], env=environment, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    events = "".join(path.read_text() for path in (folder / "events").rglob("*") if path.is_file())
    assert "SparkListenerEnvironmentUpdate" in events
    return finished.stdout + finished.stderr + events


def test_session_outlives_its_tokens_over_tls(catalog_config: CatalogConfig, sandbox: Sandbox, tmp_path: Path) -> None:
    authority, certificate = create_certificates(tmp_path)
    with serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint, life=LIFETIME), certificate) as proxy:
        auth = ClientCredentialsAuth(
            kind="client-credentials", token_url=proxy.token_url, client_id="job", client_secret="env:JOB_SECRET"
        )
        changes = {"uri": proxy.catalog_uri, "auth": auth, "ca_bundle": str(authority)}
        config = catalog_config.model_copy(update=changes)
        output = run(LONG, config, tmp_path, "--warehouse", "results", JOB_SECRET="s3cr3t")
    assert "still here" in output
    assert "s3cr3t" not in output
    assert not [token for token in proxy.tokens if token and token in output]
    assert len({token for token in proxy.tokens if token}) > 2
    uri = Execution(5, 1, "results").result(Port("Numbers-1"))
    assert ResultReader(catalog_config).count(uri) == 100


@FULL_ONLY
def test_jdbc_catalog_of_texera(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres() as url:
        auth = PasswordAuth(kind="password", user="lakewright", password="env:DB_PASSWORD")
        monkeypatch.setenv("DB_PASSWORD", "p4ssw0rd")
        uri = url.replace("lakewright@", "")
        config = jdbc_catalog_config(sandbox, uri, monkeypatch).model_copy(update={"auth": auth})
        output = run(SHORT, config, tmp_path)
        assert "100 rows" in output
        assert "p4ssw0rd" not in output
        assert sandbox.admin.secret_access_key.get_secret_value() not in output
        execution = Execution(5, 1, "texera_iceberg")
        reader = ResultReader(config)
        assert reader.read_all(execution.result(Port("Numbers-1")))["id"].to_pylist() == list(range(100))
        assert reader.read_all(execution.console_messages("script"))["message"].to_pylist() == ["100 rows"]


CONNECTED = """
from lakewright_spark.run.context import current

run = current()
assert "connect" in type(run.spark).__module__
print(run.read(run.write("Connected-1", run.spark.range(100))).count(), "rows")
"""


@FULL_ONLY
@pytest.mark.parametrize("mode", ["one machine", "a cluster"])
def test_spark_connect_client(catalog_config: CatalogConfig, tmp_path: Path, mode: str) -> None:
    (tmp_path / "script.py").write_text(CONNECTED)
    (tmp_path / "catalog.json").write_text(catalog_config.to_json())
    with ExitStack() as stack:
        more = {}
        if mode == "a cluster":
            cluster = stack.enter_context(standalone_cluster(tmp_path))
            more = SMALL | jars.spark_properties() | {"spark.master": cluster.master}
        address = stack.enter_context(connect_server(tmp_path, more))
        command = [sys.executable, "-m", "lakewright_spark.cli", "run", "--config", str(tmp_path / "catalog.json")]
        command += ["--workflow", "6", "--execution", "1", "--no-registry", "--remote", address]
        finished = subprocess.run([*command, str(tmp_path / "script.py")], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert finished.stdout.startswith("100 rows")
    assert ResultReader(catalog_config).count(Execution(6, 1, "results").result(Port("Connected-1"))) == 100
