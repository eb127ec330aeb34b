"""`lakewright-spark job` and `restore` on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyspark
import pytest
from authenticating_proxy import AuthenticatingProxy, issue_token, serve_proxy
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark import cli
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import TokenFileAuth
from lakewright_spark.cli import app, main
from lakewright_spark.errors import DeadlineError, LeaseHeldError, NoSuchResultError
from lakewright_spark.policies.model import PolicyPattern
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.claims import active_runners
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.session import jars
from typer.testing import CliRunner

from tests.spark.maintenance.conftest import Maintained

pytestmark = pytest.mark.spark

PATTERN = {"match": "*.maintained.switched", "maintenance": {"disabled_jobs": ["compaction"]}}


@pytest.fixture
def config(tenant: CatalogConfig, tmp_path: Path) -> Path:
    path = tmp_path / "catalog.json"
    path.write_text(tenant.model_copy(update={"policies": (PolicyPattern.model_validate(PATTERN),)}).to_json())
    return path


def command(config: Path, *arguments: str) -> list[str]:
    return ["job", *arguments, "--config", str(config), "--warehouse", "soft"]


def spark_submit_command() -> list[str]:
    """Return the command for spark-submit instead of `lakewright-spark`."""
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = {"spark.ui.enabled": "false", **jars.driver_properties(jars.PACKAGES)}
    confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return [str(submit), "--master", "local[2]", *confs, str(Path(cli.__file__).parent / "__main__.py")]


@pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="starts its own JVM: test-all")
@pytest.mark.parametrize("way", ["alone", "submitted"])
def test_job_may_delete_under_soft_deletion(
    create_table: Callable[..., Maintained], tenant: CatalogConfig, config: Path, way: str
) -> None:
    program = spark_submit_command() if way == "submitted" else [sys.executable, "-m", "lakewright_spark.cli"]
    table = create_table(f"from_the_shell_{way}", "(n int) USING iceberg", "soft")
    for number in range(2):
        table.do(f"INSERT OVERWRITE THIS VALUES ({number})")
    arguments = command(config, "snapshot-expiration", "--table", f"maintained.{table.table.name}", "--json")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
    done = subprocess.run([*program, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    metrics = json.loads(done.stdout.splitlines()[-1])
    assert (metrics["state"], metrics["snapshots"], metrics["files_left"]) == ("SUCCEEDED", 0, False), (
        "younger than the policy"
    )
    catalog = open_catalog(tenant, "soft")
    (run,) = [run_record for run_record in job_runs.list_runs(catalog, "soft") if run_record.table == table.table]
    assert (run.job, run.state, run.metrics["snapshots"]) == ("snapshot-expiration", "SUCCEEDED", 0)
    assert active_runners(catalog, datetime.now(UTC)) == frozenset(), "the claim is released"


@pytest.mark.long
def test_job_switched_off_starts_no_spark(create_table: Callable[..., Maintained], config: Path) -> None:
    create_table("switched", "(n int) USING iceberg", "soft")
    done = CliRunner().invoke(app, command(config, "compaction", "--table", "maintained.switched"))
    assert done.stdout == "compaction of soft.maintained.switched: skipped, compaction is switched off\n"
    create_table("wid_1_eid_2_runtimestatistics", "(n int) USING iceberg", "soft")
    done = CliRunner().invoke(app, command(config, "compaction", "--table", "maintained.wid_1_eid_2_runtimestatistics"))
    assert "skipped, a result of execution 2, which no registry reports as ended" in done.stdout


@pytest.mark.long
def test_job_of_the_server_is_refused(
    create_table: Callable[..., Maintained],
    config: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_table("served", "(n int) USING iceberg TBLPROPERTIES ('lakekeeper.history.expire.enabled' = 'true')", "soft")
    arguments = command(config, "snapshot-expiration", "--table", "maintained.served")
    monkeypatch.setattr(sys, "argv", ["lakewright-spark", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 15
    error_text = " ".join(capsys.readouterr().err.split())
    assert (
        "snapshot-expiration of soft.maintained.served: the catalog's server does snapshot-expiration itself"
        in error_text
    )


def test_job_is_refused_while_another_job_runs(
    create_table: Callable[..., Maintained], config: Path, tenant: CatalogConfig
) -> None:
    table = create_table("contested", "(n int) USING iceberg", "soft")
    catalog = open_catalog(tenant, "soft")
    uuid = str(catalog.load_table(table.table.within).metadata.table_uuid)
    other = TableClaim(tenant, table.table, uuid, catalog, "other/1/aa")
    other.take(datetime.now(UTC))
    try:
        done = CliRunner().invoke(app, command(config, "statistics", "--table", "maintained.contested"))
    finally:
        other.release(datetime.now(UTC))
    assert isinstance(done.exception, LeaseHeldError)
    assert "maintained.contested is maintained by other/1/aa" in str(done.exception)


def test_unknown_job(config: Path) -> None:
    done = CliRunner().invoke(app, command(config, "vacuum", "--table", "a.b"))
    assert done.exit_code == 2
    assert "snapshot-expiration" in done.output


@pytest.fixture
def proxy(sandbox: Sandbox, tenant: CatalogConfig, tmp_path: Path) -> Iterator[AuthenticatingProxy]:
    """Return a proxy that requires a token; the configuration names a file with a token."""
    (tmp_path / "token").write_text(issue_token(300))
    with serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint)) as running:
        auth = TokenFileAuth(kind="token-file", path=str(tmp_path / "token"))
        config = tenant.model_copy(update={"uri": running.catalog_uri, "auth": auth})
        (tmp_path / "catalog.json").write_text(config.to_json())
        yield running


@pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="starts its own JVMs: test-all")
def test_deadline_before_the_token_expires(
    create_table: Callable[..., Maintained], proxy: AuthenticatingProxy, tmp_path: Path
) -> None:
    create_table("guarded_too", "(n int) USING iceberg", "soft").do("INSERT INTO THIS VALUES (1)")
    (first,) = {(tmp_path / "token").read_text()}
    arguments = command(
        tmp_path / "catalog.json", "statistics", "--table", "maintained.guarded_too", "--dry-run", "--json"
    )
    program = [sys.executable, "-m", "lakewright_spark.cli", *arguments, "--deadline"]
    done = subprocess.run([*program, "4m"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1])["rows"] == 1
    assert set(proxy.tokens) == {first}
    assert proxy.grants == [], "no other token was requested"
    done = subprocess.run([*program, "1s"], capture_output=True, text=True, check=False)
    assert done.returncode == DeadlineError.exit_code
    assert "statistics of soft.maintained.guarded_too was ended" in " ".join(done.stderr.split())


def test_restore_is_refused_while_a_runner_works(
    create_table: Callable[..., Maintained], config: Path, tenant: CatalogConfig
) -> None:
    table = create_table("restored_by_two", "(n int) USING iceberg", "soft")
    arguments = [
        "--table",
        "maintained.restored_by_two",
        "--config",
        str(config),
        "--warehouse",
        "soft",
        "--backup",
        "any",
    ]
    catalog = open_catalog(tenant, "soft")
    uuid = str(catalog.load_table(table.table.within).metadata.table_uuid)
    other = TableClaim(tenant, table.table, uuid, catalog, "other/1/aa")
    other.take(datetime.now(UTC))
    try:
        done = CliRunner().invoke(app, ["restore", *arguments])
    finally:
        other.release(datetime.now(UTC))
    assert isinstance(done.exception, LeaseHeldError)


@pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="starts its own JVM: test-all")
def test_restore_lists_and_restores_backups(
    create_table: Callable[..., Maintained], config: Path, tenant: CatalogConfig
) -> None:
    table = create_table("restored_by_hand", "(day string, n int) USING iceberg PARTITIONED BY (day)", "soft")
    table.do("INSERT INTO THIS VALUES ('2020-01-01', 1), ('2099-01-01', 9)")
    table.set_policies(retention={"keep": 1, "column": "day", "pattern": "", "backup": True})
    name = table.job("retention").manifest.rpartition("/")[2]

    def restore(*arguments: str) -> subprocess.CompletedProcess[str]:
        restore_command = [
            "restore",
            "--table",
            "maintained.restored_by_hand",
            "--config",
            str(config),
            "--warehouse",
            "soft",
        ]
        program = [sys.executable, "-m", "lakewright_spark.cli", *restore_command, "--json", *arguments]
        return subprocess.run(program, capture_output=True, text=True, check=False)

    listing = restore()
    assert listing.returncode == 0, listing.stderr[-2000:]
    assert json.loads(listing.stdout)["backups"] == [name]
    done = restore("--backup", name)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == {"table": str(table.table), "backup": name, "files": 1, "rows": 1}
    table.spark.catalog.refreshTable(table.sql)
    assert sorted(table.column("SELECT n FROM THIS")) == [1, 9]
    catalog = open_catalog(tenant, "soft")
    assert active_runners(catalog, datetime.now(UTC)) == frozenset(), "the claim is released"
    second_restore = restore("--backup", name)
    assert second_restore.returncode == NoSuchResultError.exit_code
    assert f"has no backup {name}; it has: none" in " ".join(second_restore.stderr.split())
