"""The documented rights of a unit's user in Texera's database: enough for the statements of a unit, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lakewright_spark.execution_registry import database
from sqlalchemy import Engine, text
from sqlalchemy.exc import ProgrammingError

from tests.postgres_server import postgres

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "texera.md"
TABLES = """
CREATE SCHEMA texera_db;
CREATE TABLE texera_db."user" (uid SERIAL PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE,
  avatar TEXT, role TEXT NOT NULL, comment TEXT);
CREATE TABLE texera_db.auth_provider (uid INT REFERENCES texera_db."user", provider_type TEXT, password TEXT);
CREATE TABLE texera_db.user_config (uid INT REFERENCES texera_db."user", key TEXT, value TEXT);
CREATE TABLE texera_db.workflow (wid SERIAL PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE texera_db.workflow_of_user (uid INT REFERENCES texera_db."user", wid INT REFERENCES texera_db.workflow);
CREATE TABLE texera_db.workflow_user_access (uid INT, wid INT REFERENCES texera_db.workflow, privilege TEXT);
CREATE TABLE texera_db.workflow_version (vid SERIAL PRIMARY KEY,
  wid INT REFERENCES texera_db.workflow ON DELETE CASCADE, content TEXT NOT NULL);
CREATE TABLE texera_db.workflow_computing_unit (cuid SERIAL PRIMARY KEY, uid INT REFERENCES texera_db."user", uri TEXT);
CREATE TABLE texera_db.computing_unit_user_access (cuid INT, uid INT, privilege TEXT);
CREATE TABLE texera_db.user_warehouse (whid SERIAL PRIMARY KEY, uid INT REFERENCES texera_db."user",
  lakekeeper_warehouse_name TEXT NOT NULL);
CREATE TABLE texera_db.workflow_executions (eid SERIAL PRIMARY KEY,
  vid INT NOT NULL REFERENCES texera_db.workflow_version ON DELETE CASCADE,
  uid INT NOT NULL REFERENCES texera_db."user", cuid INT REFERENCES texera_db.workflow_computing_unit,
  whid INT REFERENCES texera_db.user_warehouse, status SMALLINT NOT NULL DEFAULT 1, result TEXT,
  starting_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, last_update_time TIMESTAMP,
  environment_version TEXT NOT NULL, log_location TEXT, runtime_stats_uri TEXT, runtime_stats_size INT DEFAULT 0);
CREATE TABLE texera_db.operator_executions (workflow_execution_id INT REFERENCES texera_db.workflow_executions,
  operator_id TEXT, console_messages_uri TEXT, console_messages_size INT DEFAULT 0);
CREATE TABLE texera_db.operator_port_executions (workflow_execution_id INT REFERENCES texera_db.workflow_executions,
  global_port_id TEXT, result_uri TEXT, result_size INT DEFAULT 0);
CREATE TABLE texera_db.dataset (did SERIAL PRIMARY KEY, owner_uid INT REFERENCES texera_db."user", name TEXT,
  repository_name TEXT);
CREATE TABLE texera_db.dataset_version (dvid SERIAL PRIMARY KEY, did INT REFERENCES texera_db.dataset, name TEXT,
  version_hash TEXT);
CREATE TABLE texera_db.dataset_user_access (did INT REFERENCES texera_db.dataset, uid INT, privilege TEXT);
INSERT INTO texera_db."user" (name, email, role) VALUES ('a', 'a@acme.example', 'REGULAR');
INSERT INTO texera_db.workflow (name, content) VALUES ('w', '{}');
INSERT INTO texera_db.workflow_version (wid, content) VALUES (1, '{}');
INSERT INTO texera_db.workflow_computing_unit (uid, uri) VALUES (1, 'unit:8085');
INSERT INTO texera_db.user_warehouse (uid, lakekeeper_warehouse_name) VALUES (1, 'user-1-1');
INSERT INTO texera_db.dataset (owner_uid, name, repository_name) VALUES (1, 'tweets', 'dataset-1');
INSERT INTO texera_db.dataset_version (did, name, version_hash) VALUES (1, 'v1', 'abc')
"""
"""Texera's tables, with the columns that the statements below use."""

NEEDED = {
    "the version that runs": "SELECT vid, content FROM workflow_version WHERE wid = 1 ORDER BY vid DESC",
    "the rights of the user": "SELECT a.privilege FROM workflow_user_access a JOIN workflow_of_user USING (uid, wid)"
    " JOIN workflow w USING (wid) WHERE a.uid = 1",
    "the rights on the unit": "SELECT * FROM workflow_computing_unit LEFT JOIN computing_unit_user_access USING (cuid)",
    "the warehouse that was chosen": "SELECT lakekeeper_warehouse_name FROM user_warehouse WHERE whid = 1",
    "a new execution": "INSERT INTO workflow_executions (vid, uid, cuid, whid, environment_version)"
    " VALUES (1, 1, 1, 1, '1.0') RETURNING eid, status, starting_time",
    "its status": "UPDATE workflow_executions SET status = 3, last_update_time = now() WHERE eid = 1",
    "its statistics": "UPDATE workflow_executions SET runtime_stats_uri = 'vfs:///wid/1' WHERE eid = 1"
    " AND vid IN (SELECT vid FROM workflow_version WHERE wid = 1)",
    "a console": "INSERT INTO operator_executions (workflow_execution_id, operator_id) VALUES (1, 'Op-1')",
    "the size of a console": "UPDATE operator_executions SET console_messages_size = 9 WHERE operator_id = 'Op-1'",
    "a result": "INSERT INTO operator_port_executions (workflow_execution_id, global_port_id) VALUES (1, 'p')",
    "the size of a result": "UPDATE operator_port_executions SET result_size = 9 WHERE global_port_id = 'p'",
    "executions with their users": "SELECT e.*, u.name, u.avatar FROM workflow_executions e"
    ' JOIN workflow_version USING (vid) JOIN "user" u ON e.uid = u.uid',
    "a file of a dataset": 'SELECT d.*, v.version_hash FROM dataset d LEFT JOIN "user" u ON u.uid = d.owner_uid'
    " JOIN dataset_version v USING (did) WHERE u.email = 'a@acme.example' AND d.name = 'tweets'",
    "the rights on a dataset": "SELECT privilege FROM dataset_user_access WHERE did = 1 AND uid = 1",
    "results of the last execution": "DELETE FROM operator_port_executions WHERE workflow_execution_id = 1",
    "consoles of the last execution": "DELETE FROM operator_executions WHERE workflow_execution_id = 1",
}
"""Statements of a unit, in this order, by what it reads or writes."""
REFUSED = [
    "SELECT password FROM auth_provider",
    'SELECT * FROM "user"',
    "UPDATE \"user\" SET role = 'ADMIN'",
    "SELECT value FROM user_config",
    "DELETE FROM workflow_executions",
    "INSERT INTO workflow_version (wid, content) VALUES (1, '{}')",
    "UPDATE user_warehouse SET lakekeeper_warehouse_name = 'user-2-2'",
    "UPDATE dataset SET owner_uid = 1",
    "CREATE TABLE texera_db.mine (x INT)",
]


@pytest.fixture(scope="module")
def unit() -> Iterator[Engine]:
    """Return connections of `texera_unit` to Texera's database, after the statements of the page."""
    (grants,) = re.findall(r"```sql\n(CREATE ROLE texera_unit.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    with postgres() as url:
        run_statements(database.connect(url), "CREATE DATABASE texera_db")
        texera_url = url.replace("/postgres", "/texera_db")
        run_statements(database.connect(texera_url), TABLES)
        run_statements(database.connect(texera_url), grants)
        schemas = "options=-csearch_path%3Dtexera_db%2Cpublic"
        engine = database.connect(f"{texera_url.replace('lakewright@', 'texera_unit@')}?{schemas}")
        yield engine
        engine.dispose()


def run_statements(engine: Engine, statements: str) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements.strip().rstrip(";").split(";\n"):
            connection.exec_driver_sql(statement)
    engine.dispose()


def test_unit_may_run_its_statements(unit: Engine) -> None:
    for purpose, statement in NEEDED.items():
        with unit.begin() as connection:
            result = connection.execute(text(statement))
            is_change = not statement.startswith("SELECT")
            assert not is_change or result.rowcount == 1, purpose


@pytest.mark.parametrize("statement", REFUSED)
def test_unit_may_do_nothing_else(unit: Engine, statement: str) -> None:
    with unit.begin() as connection, pytest.raises(ProgrammingError, match="permission denied"):
        connection.execute(text(statement))
