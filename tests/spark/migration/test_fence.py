"""Maintenance, clean-up and results leave the files of fenced tables alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from fault_proxy import FaultInjectingProxy, unavailable
from lakewright_sandbox.in_process import serve
from lakewright_spark.errors import MigrationError
from lakewright_spark.maintenance.registry import MAINTENANCE_JOBS
from lakewright_spark.maintenance.switches import reason_to_skip
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.fence import FENCE, build_fence, read_fence, remove_fence
from lakewright_spark.migration.ledger import Step
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.tables import ResultTables
from lakewright_spark.results.writer import ResultWriter
from lakewright_spark.table_identifier import TableIdentifier
from migration_catalogs import NEW, OLD, Catalogs, build_catalogs
from projects import Project
from pyiceberg.table import Table

NOW = datetime(2026, 11, 26, tzinfo=UTC)
URI = Execution(1, 1).result(Port("Op-1"))


@pytest.fixture
def catalogs(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    return build_catalogs(project, tmp_path, monkeypatch)


def test_fence_keeps_earlier_values() -> None:
    properties = {"gc.enabled": "true", "lakewright.policy.lock": json.dumps({"since": NOW.isoformat()}), "a": "b"}
    fenced = {**properties, **build_fence(properties, "r1", NOW, was_protected=True)}
    assert fenced["gc.enabled"] == fenced["write.metadata.delete-after-commit.enabled"] == "false"
    fence = read_fence(fenced)
    assert fence
    assert (fence.run, fence.was_protected) == ("r1", True)
    values, removed = remove_fence(fence)
    assert {name: value for name, value in {**fenced, **values}.items() if name not in removed} == properties


@pytest.mark.parametrize("text", ["no json", "{}", "[]", '{"run": "r", "previous": 3}'])
def test_unreadable_fence_is_an_error(text: str) -> None:
    with pytest.raises(MigrationError, match="expected the JSON of a migration's fence"):
        read_fence({FENCE: text})


def test_maintenance_skips_fenced_tables(catalogs: Catalogs) -> None:
    catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    for config, warehouse in ((catalogs.source, OLD), (catalogs.target, NEW)):
        policies = PolicyTables(config, warehouse).show(TableIdentifier(warehouse, ("sales",), "orders")).policies
        for job in MAINTENANCE_JOBS:
            reason = reason_to_skip(job.name, policies, NOW)
            if job.read_only:
                assert reason is None
            else:
                assert reason
                assert "`lakewright-spark migrate` with --finish removes this lock" in reason


@dataclass
class GuardedMigration:
    """A migration from Lakekeeper to a database, and the proxy in front of Lakekeeper."""

    catalogs: Catalogs
    proxy: FaultInjectingProxy

    @property
    def source(self) -> Endpoint:
        return Endpoint.open(self.catalogs.source, self.catalogs.source_warehouse)

    def load_table(self) -> Table:
        table = self.source.find_table(("sales", "orders"))
        assert table
        return table


@pytest.fixture
def guarded_migration(catalogs: Catalogs, tmp_path: Path) -> Iterator[GuardedMigration]:
    """Return a migration of `sales.orders`."""
    proxy = FaultInjectingProxy(catalogs.target.uri.removesuffix("/catalog"))
    with serve(proxy) as address:
        source = catalogs.target.model_copy(update={"uri": f"{address}/catalog"})
        target = catalogs.source.model_copy(update={"uri": f"sqlite:///{tmp_path}/new.db"})
        moving = Catalogs(source, target, catalogs.ledger, catalogs.sandbox, NEW, OLD)
        moving.add_table("sales.orders")
        yield GuardedMigration(moving, proxy)


def refuse_protection(line: str, forward: Callable[[], httpx.Response]) -> httpx.Response:
    return unavailable() if "/protection" in line else forward()


def test_unreadable_protection_stops_the_migration(guarded_migration: GuardedMigration) -> None:
    """An undo would remove the owner's protection, if a failed request counted as no protection."""
    catalogs, source = guarded_migration.catalogs, guarded_migration.source
    assert source.protect(guarded_migration.load_table(), is_protected=True)
    with (
        guarded_migration.proxy.inject(refuse_protection),
        pytest.raises(MigrationError, match=r"expected the protection of table sales.orders, found response 503"),
    ):
        catalogs.migrate(depth="metadata")
    assert FENCE not in guarded_migration.load_table().properties

    catalogs.migrate(depth="metadata")
    catalogs.migrate(Action.UNDO)

    assert source.is_protected(guarded_migration.load_table())


def test_protection_that_remains_is_reported(guarded_migration: GuardedMigration) -> None:
    catalogs = guarded_migration.catalogs
    catalogs.migrate(depth="metadata")

    def refuse_change(line: str, forward: Callable[[], httpx.Response]) -> httpx.Response:
        return unavailable() if line.startswith("POST") and "/protection" in line else forward()

    with guarded_migration.proxy.inject(refuse_change):
        result = catalogs.migrate(Action.UNDO)

    assert [entry.step for entry in result.entries] == [Step.UNDONE]
    (note,) = result.plan.losses
    assert "still protects the table" in note
    assert guarded_migration.source.is_protected(guarded_migration.load_table())


def test_result_in_two_catalogs_is_not_dropped(catalogs: Catalogs) -> None:
    """A new write of the result keeps the fence, although results delete their old metadata files."""
    rows = pa.table({"number": [1, 2]})
    ResultWriter(catalogs.source, OLD).write(URI, rows)
    catalogs.migrate(depth="metadata")
    for config, warehouse in ((catalogs.source, OLD), (catalogs.target, NEW)):
        with pytest.raises(MigrationError, match=r"is not dropped: migration .* has it in two catalogs"):
            ResultTables(config, warehouse).drop(URI)
    catalogs.migrate(Action.CUT_OVER)
    ResultWriter(catalogs.target, NEW).write(URI, rows)
    properties = ResultReader(catalogs.target, NEW).table(URI).properties
    assert properties["write.metadata.delete-after-commit.enabled"] == "false"
    catalogs.migrate(Action.FINISH)
    properties = ResultReader(catalogs.target, NEW).table(URI).properties
    assert properties["write.metadata.delete-after-commit.enabled"] == "true"
    assert ResultTables(catalogs.target, NEW).drop(URI)
