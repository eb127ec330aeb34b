"""Tables, stores and catalogs that cannot be read: other tables continue, and writers of the source do, too."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from lakewright_spark.errors import CatalogUnreachableError, MigrationError
from lakewright_spark.migration import steps
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.endpoint import Endpoint, RenamingMover
from lakewright_spark.migration.ledger import Step
from migration_catalogs import NEW, Catalogs, build_catalogs, build_rows, count_rows
from projects import Project
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier


@pytest.fixture
def catalogs(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    return build_catalogs(project, tmp_path, monkeypatch)


def test_missing_data_file_is_an_error_of_its_table(catalogs: Catalogs) -> None:
    damaged = catalogs.add_table("sales.damaged")
    for name in ("orders", "returns", "shops", "zones"):
        catalogs.add_table(f"sales.{name}")
    path = next(iter(damaged.scan().plan_files())).file.file_path
    damaged.io.delete(path)
    with pytest.raises(MigrationError, match=r"1 of 5 tables .* sales.damaged: files of table .* a file is missing"):
        catalogs.migrate()
    plan = catalogs.migrate(Action.PLAN).plan
    assert {str(entry): entry.step for entry in plan.entries} == {
        "sales.damaged": Step.REGISTERED,
        **dict.fromkeys(("sales.orders", "sales.returns", "sales.shops", "sales.zones"), Step.VERIFIED),
    }


def test_store_error_after_the_stop_lets_writers_continue(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    writer.refresh()
    with monkeypatch.context() as failing:
        failing.setattr(steps, "verify", _fail_to_read)
        with pytest.raises(MigrationError, match=r"sales.orders: OSError: the store does not respond"):
            catalogs.migrate(Action.CUT_OVER)
    writer.append(build_rows(2))
    catalogs.migrate(Action.CUT_OVER)
    assert count_rows(catalogs.open_target(), "sales.orders") == 8


def test_programming_error_has_its_traceback(
    catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    catalogs.add_table("sales.orders")
    monkeypatch.setattr(steps, "verify", _use_wrong_type)
    with pytest.raises(MigrationError, match=r"sales.orders: TypeError: "):
        catalogs.migrate()
    # The text of the record depends on whether PySpark has configured its logging in this process.
    (error,) = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert error is not None
    assert "_use_wrong_type" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def _use_wrong_type(*_: object) -> None:
    raise TypeError("expected a number")


def test_target_down_after_the_stop_lets_writers_continue(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    writer.refresh()
    with monkeypatch.context() as failing:
        failing.setattr(RenamingMover, "stop_writers", _stop_writers_and_target(failing))
        with pytest.raises(MigrationError, match=r"sales.orders: the target does not respond"):
            catalogs.migrate(Action.CUT_OVER)
    writer.append(build_rows(2))
    catalogs.migrate(Action.CUT_OVER)
    assert count_rows(catalogs.open_target(), "sales.orders") == 8


def test_failed_undo_lets_the_writers_of_the_target_continue(
    catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    catalogs.migrate(Action.CUT_OVER)
    writer = catalogs.open_target().load_table("sales.orders")
    writer.append(build_rows(2))
    with monkeypatch.context() as failing:
        failing.setattr(RenamingMover, "repoint_stopped", _fail_to_read)
        with pytest.raises(MigrationError, match=r"OSError: the store does not respond"):
            catalogs.migrate(Action.UNDO)
    writer.append(build_rows(1))
    catalogs.migrate(Action.UNDO)
    assert count_rows(catalogs.open_source(), "sales.orders") == 9


def _fail_to_read(*_: object) -> None:
    raise OSError("the store does not respond")


def _stop_writers_and_target(patch: pytest.MonkeyPatch) -> object:
    """Return a `stop_writers` after which the target does not respond."""
    stop_writers, find_table = RenamingMover.stop_writers, Endpoint.find_table

    def find_in_source(endpoint: Endpoint, identifier: Identifier) -> Table | None:
        if endpoint.warehouse == NEW:
            raise CatalogUnreachableError("the target does not respond")
        return find_table(endpoint, identifier)

    def stop(mover: RenamingMover, identifier: Identifier) -> None:
        stop_writers(mover, identifier)
        patch.setattr(Endpoint, "find_table", find_in_source)

    return stop
