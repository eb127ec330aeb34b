"""The documented rights of a migration's user in Texera's database: enough for its statements, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.execution_registry import database
from lakewright_spark.migration.ledger import open_ledger
from lakewright_spark.migration.texera import TexeraRows
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError
from texera_database import TexeraDatabase

from tests.postgres_server import postgres

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "migration.md"
TARGET = CatalogConfig.model_validate(
    {
        "tenant": "acme",
        "uri": "https://lakekeeper.example/catalog",
        "project_id": "acme",
        "auth": {"kind": "none"},
        "warehouses": [{"name": "user-3-main", "id": "01a0ab33-5f0b-7000-8000-9d9f10d7d0a9"}],
    }
)
REFUSED = [
    'SELECT name FROM texera_db."user"',
    "SELECT last_value FROM texera_db.user_warehouse_whid_seq",
    "DELETE FROM texera_db.workflow_executions",
    "INSERT INTO texera_db.operator_executions (workflow_execution_id, operator_id) VALUES (1, 'Op-2')",
    "UPDATE texera_db.user_warehouse SET name = 'other'",
    "UPDATE texera_db.workflow_version SET content = ''",
]


@pytest.fixture(scope="module")
def texera() -> Iterator[TexeraDatabase]:
    """Return Texera's database after the statements of the page, with an execution."""
    (grants,) = re.findall(r"```sql\n(CREATE ROLE texera_migration.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    with postgres() as url:
        run_statements(url, "CREATE DATABASE texera_db")
        texera = TexeraDatabase(url.replace("/postgres", "/texera_db"))
        texera.add_execution(1, user=3)
        run_statements(texera.url, grants)
        yield texera


@pytest.fixture(scope="module")
def migration_url(texera: TexeraDatabase) -> str:
    """Return the address of Texera's database with the migration's user."""
    return texera.url.replace("lakewright@", "texera_migration@")


def run_statements(url: str, statements: str) -> None:
    engine = database.connect(url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements.strip().rstrip(";").split(";\n"):
            connection.exec_driver_sql(statement)
    engine.dispose()


def test_migration_may_run_its_statements(texera: TexeraDatabase, migration_url: str, tmp_path: Path) -> None:
    rows = TexeraRows(migration_url, TARGET)
    execution = (1, 1)
    columns = ("whid, runtime_stats_uri", "workflow_executions", "eid")
    before = texera.read(*columns)
    with open_ledger(tmp_path / "migration.db", "route") as ledger:
        rows.add_warehouses([(execution, "user-3-main")])
        rows.point(execution, "user-3-main", ledger)
        assert texera.read(*columns) == [(1, "vfs:///wh/user-3-main/wid/1/eid/1/runtimestatistics")]
        rows.restore(execution, "user-3-main", ledger)
    rows.close()
    assert texera.read(*columns) == before


@pytest.mark.parametrize("statement", REFUSED)
def test_migration_may_do_nothing_else(migration_url: str, statement: str) -> None:
    engine = database.connect(migration_url)
    with engine.begin() as connection, pytest.raises(ProgrammingError, match="permission denied"):
        connection.execute(text(statement))
    engine.dispose()
