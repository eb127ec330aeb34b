"""Invalid input to every command: one clear error, the exit code of its kind, and no change."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from authenticating_proxy import AuthenticatingProxy, issue_token, serve_proxy
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark import cli
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import TokenFileAuth
from lakewright_spark.execution_registry.records import ExecutionStatus
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

COMMANDS: dict[str, list[str]] = {
    "policy show": ["policy", "show", "bad.input"],
    "policy set": ["policy", "set", "bad.input", "history", '{"versions": 5}'],
    "policy unset": ["policy", "unset", "bad.input", "history"],
    "job": ["job", "compaction", "--table", "bad.input"],
    "usage": ["usage"],
    "maintain": ["maintain"],
    "runs list": ["runs", "list"],
    "runs show": ["runs", "show", "0123abcd"],
    "read": ["read", "vfs:///wid/1/eid/1/runtimestatistics"],
}
TABLE_COMMANDS = sorted(name for name, arguments in COMMANDS.items() if "bad.input" in arguments)
EVERY_COMMAND = pytest.mark.parametrize("command", sorted(COMMANDS))

Refused = Callable[..., str]


@pytest.fixture
def refused(
    catalog_config: CatalogConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Refused]:
    """Return a function that runs a command, expects this exit code and returns the error text.

    The table `bad.input` must be unchanged afterwards.
    """
    catalog = open_catalog(catalog_config, "results")
    catalog.create_namespace_if_not_exists("bad")
    table = catalog.create_table("bad.input", Schema(NestedField(1, "n", LongType(), required=False)))
    file = tmp_path / "catalog.json"

    def run(arguments: list[str], code: int, *, config: CatalogConfig | str | None = catalog_config) -> str:
        file.unlink(missing_ok=True)
        if config is not None:
            file.write_text(config if isinstance(config, str) else config.to_json())
        monkeypatch.setattr("sys.argv", ["lakewright-spark", *arguments, "--config", str(file)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert (ended.value.code, printed.out) == (code, ""), printed.err
        assert "Traceback" not in printed.err
        return " ".join(printed.err.split())

    yield run
    assert catalog.load_table("bad.input").metadata_location == table.metadata_location
    catalog.drop_table("bad.input")
    catalog.drop_namespace("bad")


@EVERY_COMMAND
def test_unknown_warehouse(refused: Refused, command: str) -> None:
    error_text = refused([*COMMANDS[command], "--warehouse", "sales"], 4)
    assert "has no warehouse 'sales' in this configuration; it has: results" in error_text


@pytest.mark.parametrize("command", ["orphans", "sweep", "list"])
def test_clean_up_without_registry_or_catalog(
    refused: Refused, command: str, catalog_config: CatalogConfig, tmp_path: Path
) -> None:
    arguments = ["executions", command, "--registry"]
    assert "no catalog configuration at" in refused([*arguments, f"sqlite:///{tmp_path}/e.db"], 3, config=None)
    assert "s3cr3t" not in refused([*arguments, "postgresql://me:s3cr3t@127.0.0.1:1/executions"], 10)
    if command == "sweep":
        register_ended_execution(catalog_config, f"sqlite:///{tmp_path}/e.db")
    if command != "list":
        down = catalog_config.model_copy(update={"uri": "http://127.0.0.1:1/catalog"})
        assert "does not respond" in refused([*arguments, f"sqlite:///{tmp_path}/e.db"], 6, config=down)


def register_ended_execution(config: CatalogConfig, url: str) -> None:
    """Register an execution that a sweep removes; without one, a sweep opens no warehouse."""
    registry, ended = ExecutionRegistry(config.tenant, url), datetime.now(UTC) - timedelta(days=3)
    registry.begin(1, 1, computing_unit=None, warehouse="results", now=ended)
    registry.finish(1, 1, ExecutionStatus.COMPLETED, now=ended)
    registry.close()


@pytest.mark.parametrize("name", ["input", "", "bad..input", ".input", "bad.`input", "bad.in`put`", "bad.input."])
@pytest.mark.parametrize("command", TABLE_COMMANDS)
def test_invalid_table_name(refused: Refused, command: str, name: str) -> None:
    arguments = [name if word == "bad.input" else word for word in COMMANDS[command]]
    assert "expected NAMESPACE.TABLE, with parts that contain a dot in backquotes" in refused(arguments, 5)


@pytest.mark.parametrize("command", TABLE_COMMANDS)
def test_table_name_with_dots_and_quotes(refused: Refused, command: str) -> None:
    name = "bad.`in.put``; DROP TABLE bad.input`"
    arguments = [name if word == "bad.input" else word for word in COMMANDS[command]]
    table = TableIdentifier.parse("results", name)
    assert table.within == ("bad", "in.put`; DROP TABLE bad.input")
    assert f"has no table {table}" in refused(arguments, 5)


@pytest.mark.parametrize(
    ("policy", "value", "says"),
    [
        ("history", '{"versions": 101}', "history.versions: Input should be less than or equal to 100"),
        ("history", '{"max_age_days": 0}', "greater than or equal to 1"),
        ("history", "null", "history: expected a value, found null; use `policy unset` to remove it"),
        ("retention", '{"keep": 1001, "unit": "year", "column": "n"}', "keep: expected at most 1000 units of a year"),
        ("orphan-files", '{"older_than_days": 0}', "greater than or equal to 1"),
        ("staged-files", '{"older_than_days": 1000000000}', "less than or equal to 36525"),
        ("compaction", '{"min_input_files": 10000000000}', "less than or equal to 1000000"),
        ("column-tags", '{"email": ["PII"]}', "column_tags: expected columns of the table, n; there is no email"),
        ("column-tags", '{"n": ["SECRET"]}', "'PII' or 'HC'"),
        ("sharing", '"perhaps"', "sharing"),
        ("lock", '{"since": "2026-01-01T00:00:00"}', "with a zone"),
    ],
)
def test_policy_out_of_range(refused: Refused, policy: str, value: str, says: str) -> None:
    assert says in refused(["policy", "set", "bad.input", policy, value], 11)


@EVERY_COMMAND
def test_missing_newer_or_invalid_configuration(refused: Refused, command: str, catalog_config: CatalogConfig) -> None:
    arguments = COMMANDS[command]
    assert "no catalog configuration at" in refused(arguments, 3, config=None)
    newer = catalog_config.to_json().replace('"version": 1', '"version": 2')
    assert "is no catalog configuration: version: Input should be 1" in refused(arguments, 3, config=newer)
    assert "is no catalog configuration" in refused(arguments, 3, config="not JSON")


@EVERY_COMMAND
def test_catalog_is_down(refused: Refused, command: str, catalog_config: CatalogConfig) -> None:
    down = catalog_config.model_copy(update={"uri": "http://127.0.0.1:1/catalog"})
    assert "warehouse results of http://127.0.0.1:1/catalog does not respond" in refused(
        COMMANDS[command], 6, config=down
    )


@EVERY_COMMAND
def test_expired_token(
    refused: Refused, command: str, catalog_config: CatalogConfig, sandbox: Sandbox, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(ended := issue_token(-60))
    with serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint)) as proxy:
        auth = TokenFileAuth(kind="token-file", path=str(file))
        error_text = refused(
            COMMANDS[command], 7, config=catalog_config.model_copy(update={"uri": proxy.catalog_uri, "auth": auth})
        )
    assert "does not accept this identity" in error_text
    assert ended not in error_text


def test_machine_without_java(catalog_config: CatalogConfig, refused: Refused, tmp_path: Path) -> None:
    """The command runs in its own process: where a JVM runs already, Spark starts no other."""
    file = tmp_path / "catalog.json"
    file.write_text(catalog_config.to_json())
    arguments = ["-m", "lakewright_spark.cli", "job", "statistics", "--table", "bad.input", "--config", str(file)]
    environment = os.environ | {"JAVA_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "expected Java 17 or newer in JAVA_HOME or on the PATH" in " ".join(done.stderr.split())
