"""Commands of an identity that may use only one of two warehouses, on a catalog that enforces grants."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from fault_proxy import FaultInjectingProxy, unavailable
from lakewright_sandbox import lifecycle
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.runtime.state import Sandbox, TokensState
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import ClientCredentialsAuth
from lakewright_spark.cli import startup_warnings
from lakewright_spark.execution_registry.records import ExecutionStatus
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.schemas import CONSOLE_MESSAGES
from lakewright_spark.results.tables import ResultTables
from lakewright_spark.results.writer import ResultWriter
from projects import Project, post

ROWS = pa.table({"id": [1, 2, 3]})
LONG_AGO = datetime.now(UTC) - timedelta(days=2)
UNSEEN = "left out, since this identity may not use it: warehouse vault"

SCRIPT = """
from lakewright_spark.run.context import current

run = current()
run.write("Range-1", run.spark.range(3))
"""
STREAM = """
import pyarrow as pa
from lakewright_spark.run.context import current

with current().stream("Range-1", pa.schema([("id", pa.int64())])) as result:
    result.append((1,))
"""

Command = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.long, pytest.mark.stand_in("starts its own sandbox")]


@pytest.fixture(scope="module")
def secure_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Start a sandbox that enforces grants, as OpenFGA does, and requires tokens."""
    directory = tmp_path_factory.mktemp("guarded")
    yield lifecycle.up(directory, authz="openfga")
    lifecycle.down(directory)


@pytest.fixture(scope="module")
def tokens(secure_sandbox: Sandbox) -> TokensState:
    assert secure_sandbox.tokens
    return secure_sandbox.tokens


@pytest.fixture(scope="module")
def owner(secure_sandbox: Sandbox, tokens: TokensState) -> Iterator[httpx.Client]:
    """Return a client with the identity that creates the project and everything in it."""
    form = {"grant_type": "client_credentials", "client_id": tokens.client_id}
    secret = tokens.client_secret_file.read_text()
    response = httpx.post(tokens.token_url, data={**form, "client_secret": secret}).raise_for_status()
    headers = {"authorization": f"Bearer {response.json()['access_token']}"}
    with httpx.Client(base_url=secure_sandbox.lakekeeper.endpoint, headers=headers, timeout=60) as server:
        post(server, "/management/v1/bootstrap", {"accept-terms-of-use": True, "is-operator": True})
        yield server


@pytest.fixture(scope="module")
def owner_config(owner: httpx.Client, secure_sandbox: Sandbox, tokens: TokensState) -> CatalogConfig:
    """Return the owner's configuration: `lake`, which jobs may use, and `vault`, which they must not see."""
    project = Project(owner, secure_sandbox)
    lake, vault = project.warehouse("lake"), project.warehouse("vault")
    for privilege in ("create", "modify", "select"):
        project.grant(f"oidc~{tokens.jobs_client_id}", privilege, lake)
    config = project.config(lake, vault, auth=_client(tokens, tokens.client_id, tokens.client_secret_file))
    for warehouse in ("lake", "vault"):
        catalog = open_catalog(config, warehouse)
        catalog.create_namespace("sales")
        catalog.create_table("sales.orders", ROWS.schema).append(ROWS)
    return config


@pytest.fixture
def config(owner_config: CatalogConfig, tokens: TokensState) -> CatalogConfig:
    """Return the jobs' configuration of the same tenant."""
    return owner_config.model_copy(
        update={"auth": _client(tokens, tokens.jobs_client_id, tokens.jobs_client_secret_file)}
    )


def _client(tokens: TokensState, name: str, secret: Path) -> ClientCredentialsAuth:
    return ClientCredentialsAuth(
        kind="client-credentials",
        token_url=tokens.token_url,
        client_id=name,
        client_secret=f"file:{secret}",
        scope=tokens.audience,
    )


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[ExecutionRegistry]:
    opened = ExecutionRegistry("spark-tests", f"sqlite:///{tmp_path}/executions.db")
    yield opened
    opened.close()


@pytest.fixture
def workflow() -> int:
    return uuid.uuid4().int % 10**9


@pytest.fixture
def command(config: CatalogConfig, tmp_path: Path) -> Command:
    """Return a function that runs a command in its own process, with the jobs' identity."""

    def run(
        *arguments: str, config: CatalogConfig = config, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        (tmp_path / "catalog.json").write_text(config.to_json())
        config_options = ["--config", str(tmp_path / "catalog.json")]
        if arguments[0] in {"run", "executions"}:
            config_options += ["--registry", f"sqlite:///{tmp_path}/executions.db"]
        name = arguments[: 2 if arguments[0] in {"executions", "runs"} else 1]
        line = [sys.executable, "-m", "lakewright_spark.cli", *options, *name, *config_options, *arguments[len(name) :]]
        return subprocess.run(line, check=False, capture_output=True, text=True, timeout=300)

    return run


def create_execution(
    config: CatalogConfig, registry: ExecutionRegistry, workflow: int, execution: int, warehouse: str
) -> Execution:
    """Create an execution of two days ago with a result in a warehouse."""
    run = Execution(workflow, execution, warehouse)
    registry.begin(workflow, execution, computing_unit=None, warehouse=warehouse, now=LONG_AGO)
    ResultWriter(config, warehouse).write_rows(run.result(Port("Op-1")), CONSOLE_MESSAGES, [("x",)])
    registry.finish(workflow, execution, ExecutionStatus.COMPLETED, now=LONG_AGO)
    return run


def has_result(config: CatalogConfig, run: Execution) -> bool:
    assert run.warehouse
    return ResultTables(config, run.warehouse).exists(run.result(Port("Op-1")))


@pytest.mark.spark
def test_run_opens_only_its_own_warehouse(
    owner_config: CatalogConfig, registry: ExecutionRegistry, workflow: int, command: Command, tmp_path: Path
) -> None:
    visible, unseen = (
        create_execution(owner_config, registry, workflow, n, name) for n, name in ((1, "lake"), (2, "vault"))
    )
    (tmp_path / "script.py").write_text(SCRIPT)
    which = ["--workflow", str(workflow), "--execution", "3", "--warehouse", "lake"]
    done = command("run", *which, "--json", str(tmp_path / "script.py"))
    assert done.returncode == 0, done.stderr
    result = str(Execution(workflow, 3, "lake").result(Port("Range-1")))
    assert json.loads(done.stdout)["tables"][result]["rows"] == 3
    assert done.stderr.count(UNSEEN) == 1
    assert (has_result(owner_config, visible), has_result(owner_config, unseen)) == (False, True)
    execution = registry.find(workflow, 2)
    assert execution is not None
    assert execution.replaced_at is None
    assert command("read", result, "--count").stdout == "3\n"


def test_read_of_an_invisible_warehouse(command: Command, workflow: int) -> None:
    done = command("read", str(Execution(workflow, 1, "vault").runtime_statistics()))
    assert done.returncode == 4
    assert "warehouse vault" in done.stderr
    assert "does not exist, or this identity may not use it" in done.stderr


@pytest.mark.spark
def test_maintain_skips_invisible_warehouses(command: Command) -> None:
    done = command("maintain", "--job", "statistics", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert "lake.sales.orders" in {run["table"] for run in report["runs"]}
    assert {run["state"] for run in report["runs"]} == {"SUCCEEDED"}
    assert list(report["left_out"]) == ["vault"]
    assert done.stderr.count(UNSEEN) == 1
    runs = command("runs", "list", "--json")
    assert {run["warehouse"] for run in json.loads(runs.stdout)} == {"lake"}
    assert runs.stderr.count(UNSEEN) == 1


def test_requested_warehouse_is_not_skipped(command: Command) -> None:
    for arguments in (["maintain", "--dry-run"], ["usage"], ["runs", "list"]):
        done = command(*arguments, "--warehouse", "vault")
        assert done.returncode == 4, done.stderr
        assert "does not exist, or this identity may not use it" in done.stderr


@pytest.mark.spark
def test_job_opens_only_the_warehouse_of_its_table(command: Command) -> None:
    done = command("job", "statistics", "--table", "sales.orders", "--warehouse", "lake", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "SUCCEEDED"
    assert find_startup_warnings(done) == []
    verbose = command("job", "statistics", "--table", "sales.orders", "--warehouse", "lake", options=("--verbose",))
    assert len(find_startup_warnings(verbose)) >= 5


def find_startup_warnings(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if startup_warnings.is_startup_warning(line.encode())]


def test_usage_skips_invisible_warehouses(command: Command) -> None:
    done = command("usage", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [warehouse["warehouse"] for warehouse in report["warehouses"]] == ["lake"]
    assert list(report["left_out"]) == ["vault"]
    assert done.stderr.count(UNSEEN) == 1


def test_executions_of_invisible_warehouses_are_kept(
    owner_config: CatalogConfig, registry: ExecutionRegistry, workflow: int, command: Command
) -> None:
    visible, unseen = (
        create_execution(owner_config, registry, workflow, n, name) for n, name in ((1, "lake"), (2, "vault"))
    )
    orphans = command("executions", "orphans", "--json")
    assert orphans.returncode == 0, orphans.stderr
    assert json.loads(orphans.stdout)["rows"] == []
    assert orphans.stderr.count(UNSEEN) == 1
    swept = command("executions", "sweep", "--json")
    assert swept.returncode == 0, swept.stderr
    assert [execution["execution"] for execution in json.loads(swept.stdout)["executions"]] == [1]
    assert swept.stderr.count(UNSEEN) == 1
    assert (has_result(owner_config, visible), has_result(owner_config, unseen)) == (False, True)
    assert [execution["execution"] for execution in json.loads(command("executions", "list", "--json").stdout)] == [2]


@pytest.fixture
def half_down(owner_config: CatalogConfig, secure_sandbox: Sandbox) -> Iterator[CatalogConfig]:
    """Return the owner's configuration; the catalog responds with 503 to every request for `vault`."""
    proxy = FaultInjectingProxy(secure_sandbox.lakekeeper.endpoint)
    vault = owner_config.warehouse("vault")

    def fail_vault(line: str, forward: Callable[[], httpx.Response]) -> httpx.Response:
        return unavailable() if vault.id in line or line.endswith("vault") else forward()

    with serve(proxy) as endpoint, proxy.inject(fail_vault):
        yield owner_config.model_copy(update={"uri": f"{endpoint}/catalog"})


def test_run_succeeds_while_another_warehouse_is_down(
    half_down: CatalogConfig, owner_config: CatalogConfig, registry: ExecutionRegistry, command: Command, tmp_path: Path
) -> None:
    workflow = uuid.uuid4().int % 10**9
    visible, failed = (
        create_execution(owner_config, registry, workflow, n, name) for n, name in ((1, "lake"), (2, "vault"))
    )
    (tmp_path / "script.py").write_text(STREAM)
    which = ["--workflow", str(workflow), "--execution", "3", "--warehouse", "lake"]
    done = command("run", *which, str(tmp_path / "script.py"), config=half_down)
    assert done.returncode == 0, done.stderr
    assert "warehouse vault of" in done.stderr
    assert (has_result(owner_config, visible), has_result(owner_config, failed)) == (False, True)


def test_outage_of_one_warehouse_is_reported_at_the_end(
    half_down: CatalogConfig, owner_config: CatalogConfig, registry: ExecutionRegistry, workflow: int, command: Command
) -> None:
    visible, failed = (
        create_execution(owner_config, registry, workflow, n, name) for n, name in ((1, "lake"), (2, "vault"))
    )
    usage = command("usage", "--json", config=half_down)
    assert [warehouse["warehouse"] for warehouse in json.loads(usage.stdout)["warehouses"]] == ["lake"]
    maintain = command("maintain", "--json", "--namespace", "none", config=half_down)
    assert list(json.loads(maintain.stdout)["failed"]) == ["vault"]
    runs = command("runs", "list", config=half_down)
    orphans = command("executions", "orphans", config=half_down)
    swept = command("executions", "sweep", config=half_down)
    assert [done.returncode for done in (usage, maintain, runs, orphans, swept)] == [6, 12, 6, 6, 1]
    assert all("warehouse vault of" in done.stderr for done in (usage, maintain, runs, orphans, swept))
    assert (has_result(owner_config, visible), has_result(owner_config, failed)) == (False, True)
