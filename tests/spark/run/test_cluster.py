"""Jobs on a standalone cluster: remote executors get catalog and credentials; a killed worker loses no data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from authenticating_proxy import AuthenticatingProxy, serve_proxy
from certificates import create_certificates
from cluster import (
    ENCRYPTED,
    SMALL,
    StandaloneCluster,
    environment_without_credentials,
    standalone_cluster,
    write_spark_conf,
)
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import ClientCredentialsAuth, TokenAuth
from lakewright_spark.errors import IdentityError
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.session import truststore

from tests.real_servers import leave_out

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(600)]

FULL_ONLY = pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="a second cluster: test-all")
LIFETIME = 20
"""Lifetime of a token in seconds."""

SCRIPT = Path(__file__).parent / "cluster_job.py"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path) as running:
        yield running


def run(
    script: Path,
    *arguments: str,
    config: CatalogConfig,
    cluster: StandaloneCluster,
    folder: Path,
    execution: int,
    refused: int = 0,
    **variables: str,
) -> str:
    """Run a script as an execution on the cluster with nothing but the configuration; return its output."""
    (folder / "catalog.json").write_text(config.to_json())
    command = [sys.executable, "-m", "lakewright_spark.cli", "run", "--config", str(folder / "catalog.json")]
    command += ["--workflow", "8", "--execution", str(execution), "--no-registry", "--master", cluster.master]
    for key, value in SMALL.items():
        command += ["--conf", f"{key}={value}"]
    finished = subprocess.run(
        [*command, str(script), *arguments],
        env=environment_without_credentials() | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == refused, finished.stderr[-4000:]
    return " ".join(finished.stderr.split()) if refused else finished.stdout


@pytest.mark.parametrize("stage", ["write", pytest.param("shuffle", marks=FULL_ONLY)])
def test_remote_executors_survive_a_killed_worker(
    catalog_config: CatalogConfig, cluster: StandaloneCluster, tmp_path: Path, stage: str
) -> None:
    if catalog_config.auth:
        leave_out("the cluster encrypts no messages, so it gets no credential of the catalog")
    settings = {"config": catalog_config, "cluster": cluster, "folder": tmp_path, "execution": 1}
    output = run(SCRIPT, str(cluster.workers[0]), stage, **settings)
    report = json.loads(output.splitlines()[0])
    assert len(set(report["computed_by"])) == 2
    assert len(set(report["read_by"])) == 2
    assert report["driver"] not in {*report["computed_by"], *report["read_by"]}
    done, total = report["killed_after"]
    assert 0 < done < total, "the worker was killed in the middle of the job"
    assert (report["executors_before"], report["executors_after"]) == (2, 1)
    result = ResultReader(catalog_config).read_all(Execution(8, 1, "results").result(Port("Survived-1")))
    assert sorted(result["id"].to_pylist()) == list(range(report["rows"])), "every row exists exactly once"


LONG = f"""
import time
from lakewright_spark.run.context import current

run = current()
uri = run.write("Long-1", run.spark.range(0, 1000, 1, 4))
until = time.monotonic() + {LIFETIME} * 1.2
while time.monotonic() < until:
    assert run.read(uri).selectExpr("sum(id)").collect()[0][0] == 499500
    time.sleep(1)
print("still here")
"""


@FULL_ONLY
def test_custom_certificate_authority_and_expiring_tokens(
    catalog_config: CatalogConfig, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, certificate = create_certificates(tmp_path)
    (tmp_path / "script.py").write_text(LONG)
    monkeypatch.setenv("JOB_SECRET", "s3cr3t")
    conf = write_spark_conf(tmp_path, ENCRYPTED)
    with (
        serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint, life=LIFETIME), certificate) as proxy,
        standalone_cluster(tmp_path, conf=conf) as cluster,
    ):
        auth = ClientCredentialsAuth(
            kind="client-credentials", token_url=proxy.token_url, client_id="job", client_secret="env:JOB_SECRET"
        )
        changes = {"ca_bundle": str(authority), "truststore": str(truststore.create_truststore(authority))}
        config = catalog_config.model_copy(update={"uri": proxy.catalog_uri, "auth": auth, **changes})
        settings = {"config": config, "cluster": cluster, "folder": tmp_path, "execution": 2}
        assert "still here" in run(tmp_path / "script.py", **settings, SPARK_CONF_DIR=str(conf))
        assert len(set(proxy.tokens) - {None}) > 2
    for log in tmp_path.rglob("std*"):
        assert "s3cr3t" not in log.read_text()


def test_secrets_are_refused_without_encryption(
    catalog_config: CatalogConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "script.py").write_text("raise AssertionError('it ran')")
    monkeypatch.setenv("JOB_SECRET", "s3cr3t")
    config = catalog_config.model_copy(update={"auth": TokenAuth(kind="token", token="env:JOB_SECRET")})
    settings = {
        "config": config,
        "cluster": StandaloneCluster("spark://127.0.0.1:1", ()),
        "folder": tmp_path,
        "execution": 3,
    }
    error_text = run(tmp_path / "script.py", **settings, refused=IdentityError.exit_code)
    assert "expected spark.authenticate=true and spark.network.crypto.enabled=true" in error_text
    assert "s3cr3t" not in error_text


@FULL_ONLY
def test_maintenance_on_a_cluster(catalog_config: CatalogConfig, cluster: StandaloneCluster, tmp_path: Path) -> None:
    schema = pa.schema([pa.field("n", pa.int64())])
    catalog = open_catalog(catalog_config, "results")
    catalog.create_namespace_if_not_exists("clustered")
    table = catalog.create_table("clustered.small", schema)
    for number in range(6):
        table.append(pa.table({"n": [number]}, schema=schema))
    (tmp_path / "catalog.json").write_text(catalog_config.to_json())
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in SMALL.items()))
    environment = environment_without_credentials() | {"SPARK_CONF_DIR": str(tmp_path)}

    def run_command(*arguments: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "lakewright_spark.cli", *arguments, "--json"]
        command += ["--config", str(tmp_path / "catalog.json"), "--master", cluster.master]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    assert run_command("job", "compaction", "--table", "clustered.small")["rewritten"] == 6
    table = table.refresh()
    for number in range(6, 12):
        table.append(pa.table({"n": [number]}, schema=schema))
    report = run_command("maintain", "--namespace", "clustered", "--parallel", "2")
    assert (report["tables"], report["states"]) == (1, {"SUCCEEDED": 3}), report
    metrics = {run["job"]: run["metrics"] for run in report["runs"]}
    assert sorted(metrics) == ["compaction", "orphan-files", "statistics"]
    assert metrics["compaction"]["rewritten"] == 7
    assert sorted(catalog.load_table("clustered.small").scan().to_arrow()["n"].to_pylist()) == list(range(12))
