"""`lakewright-spark` reports missing input in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_spark import cli
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import DataMissingError

from demo import nycflights

TWO = CatalogConfig(
    tenant="acme",
    uri="http://127.0.0.1:1/catalog",
    project_id="acme",
    warehouses=[CatalogWarehouse(name="raw", id="1"), CatalogWarehouse(name="curated", id="2")],
)
ADDRESS = "vfs:///wid/1/eid/1/runtimestatistics"


def run_failing_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str, code: int
) -> str:
    """Run a command that must fail with this exit code; return its error text, without traceback or output."""
    monkeypatch.setattr("sys.argv", ["lakewright-spark", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == code
    printed = capsys.readouterr()
    assert not printed.out
    return " ".join(printed.err.split())


def test_no_configuration(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    message = run_failing_command(monkeypatch, capsys, "read", ADDRESS, code=3)
    assert "no catalog configuration: give --config FILE or set LAKEWRIGHT_CATALOG" in message


def test_invalid_configuration_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrong = tmp_path / "catalog.json"
    wrong.write_text('{"version": 2}')
    assert "is no catalog configuration" in run_failing_command(
        monkeypatch, capsys, "read", ADDRESS, "--config", str(wrong), code=3
    )


def test_several_warehouses_without_a_choice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAKEWRIGHT_CATALOG", TWO.to_json())
    assert "set --warehouse: raw, curated" in run_failing_command(monkeypatch, capsys, "read", ADDRESS, code=3)


def test_unknown_warehouse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LAKEWRIGHT_CATALOG", TWO.to_json())
    elsewhere = "vfs:///wh/cooked/wid/1/eid/1/runtimestatistics"
    assert "tenant acme has no warehouse 'cooked'" in run_failing_command(
        monkeypatch, capsys, "read", elsewhere, code=4
    )


def test_flights_data_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataMissingError, match=r"expected airlines\.csv, airports\.csv"):
        nycflights.unpack(tmp_path, tmp_path)
