"""A computing unit starts: its rendered command serves Spark Connect on a catalog that requires tokens.

The unit sees two live warehouses (Design 2). It runs with the rendered files at their paths.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import yaml
from certificates import create_certificates
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime.state import Sandbox
from projects import NAMESPACES
from pyspark.errors import PySparkException
from pyspark.sql.types import StringType
from unit_pod import UnitPod, cannot_unshare, image_variables, read_manifests

REPOSITORY = Path(__file__).parents[3]
LAKEWRIGHT = Path(sys.executable).with_name("lakewright")
REFUSED = cannot_unshare()

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.stand_in("plays an identity provider"),
    pytest.mark.skipif(REFUSED is not None, reason=str(REFUSED)),
]

TOKEN_FILE = "/var/run/secrets/lakekeeper/token"
Connect = Callable[..., Any]
ENDED_SESSIONS: list[Any] = []
"""Sessions that Python never collects. In PySpark 4.1, a collected session waits for the calls of all clients, in any
thread: also in the thread that computes the credentials of such a call, which then never ends.
"""


@dataclass(frozen=True)
class RunningUnit:
    """A unit that accepts connections."""

    pod: UnitPod
    process: subprocess.Popen[bytes]
    port: int
    sandbox: Sandbox

    @property
    def connect_token(self) -> str:
        return self.pod.secret("lab-connect")["token"]


@pytest.fixture(scope="module")
def secure_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Start a sandbox whose catalog requires tokens."""
    directory = tmp_path_factory.mktemp("guarded")
    yield lifecycle.up(directory, auth="oauth2")
    lifecycle.down(directory, purge=True)


@pytest.fixture(scope="module")
def unit(secure_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningUnit]:
    """Declare a tenant with a unit that sees two warehouses, and run the unit's pod."""
    manifests = _declare(secure_sandbox, tmp_path_factory.mktemp("project"))
    folder = tmp_path_factory.mktemp("pod")
    authority, server = create_certificates(folder)
    certificate, key = _split(server.read_text())
    secrets = {"units-tls": {"tls.crt": certificate, "tls.key": key}}
    pod = UnitPod(manifests, folder, secrets, token=_catalog_token(secure_sandbox), image=image_variables())
    with pytest.MonkeyPatch.context() as patch, pod.run() as (process, port):
        patch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(authority))
        yield RunningUnit(pod, process, port, secure_sandbox)


@pytest.fixture
def connect(unit: RunningUnit) -> Iterator[Connect]:
    """Open sessions of users, which end with the test.

    A client of Spark Connect tries a call for ten minutes by default, and `stop` is a call.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    assert unit.process.poll() is None, unit.pod.log.read_text()[-3000:]
    opened: list[Any] = []

    def open_session(user: str, token: str = unit.connect_token) -> Any:
        address = f"sc://127.0.0.1:{unit.port}/;use_ssl=true;token={token};user_id={user}"
        opened.append(SparkSession.builder.remote(address).create())
        opened[-1].client.set_retry_policies([DefaultPolicy(max_retries=4, max_backoff=2000)])
        return opened[-1]

    yield open_session
    for session in opened:
        session.stop()
    ENDED_SESSIONS.extend(opened)


def test_two_submitters_choose_their_warehouses(connect: Connect) -> None:
    """Design 2: one job in one unit, started by two users at the same time, each in a warehouse of their choice."""

    def run_job(user: str, warehouse: str) -> list[Any]:
        session = connect(user)
        session.catalog.setCurrentCatalog(warehouse)
        session.sql(f"CREATE TABLE results.job AS SELECT id, '{user}' AS submitter FROM range(3)")
        return session.sql("SELECT current_catalog(), submitter, count(*) FROM results.job GROUP BY 2").collect()

    pool = ThreadPoolExecutor(2)
    try:
        ann, bob = pool.map(run_job, ["ann", "bob"], ["executions", "curated"], timeout=200)
    finally:
        pool.shutdown(wait=False)

    assert [tuple(row) for row in ann] == [("executions", "ann", 3)]
    assert [tuple(row) for row in bob] == [("curated", "bob", 3)]


JOB = """
from lakewright_spark.run.context import current

run = current()
assert "connect" in type(run.spark).__module__
print(run.read(run.write("Job-1", run.spark.range(100))).count(), "rows in", run.facts.warehouse)
"""


@pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="two more processes: test-all")
def test_one_script_runs_in_the_warehouse_of_its_submitter(unit: RunningUnit, tmp_path: Path) -> None:
    """`lakewright-spark run` as two submitters at the same time; each owns one of the unit's warehouses."""
    catalog = yaml.safe_load((unit.pod.folder / "volumes" / "catalog" / "catalog.json").read_text())
    for warehouse, owner in zip(catalog["warehouses"], ["user:oidc~ann", "user:oidc~bob"], strict=True):
        warehouse["owner"] = owner
    (tmp_path / "token").write_text(_catalog_token(unit.sandbox))
    catalog["auth"]["path"] = str(tmp_path / "token")
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    (tmp_path / "job.py").write_text(JOB)

    def submit(number: int, submitter: str) -> str:
        command = [str(LAKEWRIGHT.with_name("lakewright-spark")), "run", str(tmp_path / "job.py"), "--no-registry"]
        command += ["--config", str(tmp_path / "catalog.json"), "--workflow", "1", "--execution", str(number)]
        command += ["--submitter", submitter, "--remote", f"sc://127.0.0.1:{unit.port}/;use_ssl=true"]
        variables = {**os.environ, "SPARK_CONNECT_AUTHENTICATE_TOKEN": unit.connect_token}
        run = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    with ThreadPoolExecutor() as pool:
        ann, bob = pool.map(submit, [1, 2], ["user:oidc~ann", "user:oidc~bob"])

    assert "100 rows in executions" in ann
    assert "100 rows in curated" in bob


def test_unit_uses_the_present_catalog_token(unit: RunningUnit, connect: Connect) -> None:
    session = connect("ann")
    session.sql("CREATE NAMESPACE executions.before")

    unit.pod.renew("token", "token", "expired")
    with pytest.raises(PySparkException, match=r"NotAuthorized|Unauthorized|401|[Aa]uthenticat"):
        session.sql("CREATE NAMESPACE executions.between")
    unit.pod.renew("token", "token", _catalog_token(unit.sandbox))
    session.sql("CREATE NAMESPACE executions.after")

    namespaces = {row[0] for row in session.sql("SHOW NAMESPACES IN executions").collect()}
    assert {"before", "after"} <= namespaces
    assert "between" not in namespaces


@pytest.mark.parametrize("token", ["another-token-of-the-same-length", ""])
def test_other_connect_tokens_are_refused(token: str, connect: Connect) -> None:
    session = connect("eve", token=token)

    with pytest.raises(PySparkException, match=r"UNAUTHENTICATED"):
        session.sql("SELECT 1").collect()


def test_no_secret_is_readable_beside_its_file(unit: RunningUnit, connect: Connect) -> None:
    """Checks command lines and variables of the unit's processes, its log, its ConfigMap and all files it wrote."""
    connect("ann").sql("SHOW NAMESPACES IN curated").collect()
    secrets = [
        unit.connect_token,
        _read_catalog_token(unit.pod),
        unit.pod.secret("units-tls")["tls.key"].splitlines()[1],
    ]
    process = Path(f"/proc/{unit.process.pid}")
    scratch = unit.pod.folder / "volumes" / "scratch"
    texts = {
        "arguments": (process / "cmdline").read_bytes(),
        "variables": (process / "environ").read_bytes(),
        "log": unit.pod.log.read_bytes(),
        "ConfigMap": str([m for m in unit.pod.manifests if m["kind"] != "Secret"]).encode(),
        **{str(file): file.read_bytes() for file in scratch.rglob("*") if file.is_file()},
    }

    assert b"ConnectServer" in texts["arguments"]
    assert any(name.endswith("spark.properties") for name in texts)
    assert [name for name, text in texts.items() for secret in secrets if secret.encode() in text] == []


def test_root_of_the_pod_is_read_only(connect: Connect) -> None:
    """The functions of clients run in the pod, where only scratch folders can be written to."""
    from pyspark.sql.connect.functions.builtin import udf

    def write(path: str) -> str:
        try:
            Path(path).write_text("x")
        except OSError as error:
            return type(error).__name__
        return "written"

    session, written = connect("ann"), cast(Any, udf(write, StringType()))
    rows = session.createDataFrame([("/etc/lakewright/x",), ("/x",), ("/scratch/x",)], "path string")

    assert [row[0] for row in rows.select(written("path")).collect()] == ["OSError", "OSError", "written"]


def _declare(sandbox: Sandbox, folder: Path) -> list[dict[str, Any]]:
    """Make the tenant's stack; return its manifests."""
    for part in ("tenants", "environments", "state"):
        (folder / part).mkdir()
    for file in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(REPOSITORY / file, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    environment = {
        "sandbox": str(sandbox.dir),
        "lakekeeper": {"jobs_auth": {"kind": "token-file", "path": TOKEN_FILE}},
        "kubernetes": {"render_to": str(folder / "rendered"), "connect": {"tls_secret": "units-tls"}},
    }
    name = f"t{uuid.uuid4().hex[:8]}"
    warehouse = {"namespaces": ["results", *NAMESPACES], "deletion": "purge"}
    spec = {
        "version": 1,
        "environment": "here",
        "name": name,
        "owner": "tests",
        "storage": {"main": {"backend": "aws", "bucket": f"{name}-lakehouse"}},
        "warehouses": [{"name": "executions", **warehouse}, {"name": "curated", **warehouse}],
        "computing_units": [{"name": "lab", "runtime": "spark", "warehouses": "all"}],
    }
    (folder / "environments" / "here.yaml").write_text(yaml.safe_dump(environment))
    (folder / "tenants" / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump({"config": {"lakewright:tenant": spec}}))
    variables = {
        **os.environ,
        "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "correct horse battery staple",
    }
    for arguments in (["stack", "init"], ["up", "--yes", "--engine", "embedded"]):
        command = [str(LAKEWRIGHT), *arguments, "--stack", name]
        run = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
    manifests = read_manifests(folder / "rendered")
    state = b"".join(file.read_bytes() for file in (folder / "state").rglob("*") if file.is_file())
    (secret,) = (manifest["data"] for manifest in manifests if manifest["kind"] == "Secret")
    assert secret["token"].encode() not in state
    return manifests


def _catalog_token(sandbox: Sandbox) -> str:
    provider = sandbox.tokens
    assert provider is not None
    form = {"grant_type": "client_credentials", "client_id": provider.jobs_client_id}
    form["client_secret"] = provider.jobs_client_secret_file.read_text().strip()
    return httpx.post(provider.token_url, data=form).raise_for_status().json()["access_token"]


def _read_catalog_token(pod: UnitPod) -> str:
    return (pod.folder / "volumes" / "token" / "token").read_text()


def _split(pem: str) -> tuple[str, str]:
    start = pem.index("-----BEGIN PRIVATE KEY-----")
    return pem[:start], pem[start:]
