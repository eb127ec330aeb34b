"""The database of the registry, SQLite by default or Postgres, and the version of its tables."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from lakewright_spark.errors import RegistryError
from lakewright_spark.iceberg_values import CONNECT_SECONDS, SOCKET_SECONDS

VARIABLE = "LAKEWRIGHT_REGISTRY"
"""Names the database, as in `postgresql://user@host/db`; it may contain a password, which is never printed."""


def default_url(environ: Mapping[str, str] = os.environ) -> str:
    """$LAKEWRIGHT_REGISTRY, else a SQLite file in the user's data folder."""
    if url := environ.get(VARIABLE):
        return url
    data = Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return f"sqlite:///{data / 'lakewright' / 'executions.db'}"


def connect(url: str, *, read_only: bool = False) -> Engine:
    """Return an engine for an address.

    Raises:
        RegistryError: Not an address of SQLite or Postgres.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise RegistryError(
            "the registry has no valid address: expected sqlite:///PATH or postgresql://HOST/DATABASE"
        ) from None
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed, read_only=read_only)
    if parsed.get_backend_name() != "postgresql":
        raise RegistryError(f"registry {redact(parsed)}: expected sqlite:///PATH or postgresql://HOST/DATABASE")
    # A statement in a read-only transaction that would change something fails in the server.
    options: dict[str, Any] = {"execution_options": {"postgresql_readonly": True}} if read_only else {}
    # By default, the driver waits without a time limit.
    options["connect_args"] = {"connect_timeout": int(CONNECT_SECONDS), "tcp_user_timeout": int(SOCKET_SECONDS * 1000)}
    return create_engine(parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True, **options)


@contextmanager
def explain_errors(engine: Engine) -> Generator[None, None, None]:
    """Turn errors of the database into RegistryError, without parameters."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        first = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        raise RegistryError(f"registry {redact(engine.url)}: {first}") from error


def upgrade(engine: Engine) -> str:
    """Create or upgrade the tables to this release's version, and return it."""
    with explain_errors(engine), engine.begin() as connection:
        config = _config(connection)
        command.upgrade(config, "head")
        return _head(config)


def check(engine: Engine) -> None:
    """Raise RegistryError unless the tables have this release's version."""
    with explain_errors(engine), engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "lakewright_registry_version"})
        actual_version, expected_version = context.get_current_revision(), _head(_config(connection))
    if actual_version != expected_version:
        raise RegistryError(
            f"registry {redact(engine.url)}: expected tables of version {expected_version}, found "
            f"{actual_version or 'none'}: upgrade older tables with `lakewright-spark registry upgrade`"
        )


def redact(url: URL) -> str:
    """Return the address without its password."""
    return url.render_as_string(hide_password=True)


def _sqlite(url: URL, *, read_only: bool) -> Engine:
    path = url.database or ""
    if read_only:
        url = url.set(database=f"file:{path}").update_query_dict({"mode": "ro", "uri": "true"})
    elif path:
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    engine = create_engine(url, connect_args={"timeout": 30})
    event.listen(engine, "connect", _prepare_sqlite)
    # A transaction is a writer from its start, so that two transactions that read before they write do not conflict.
    event.listen(engine, "begin", begin)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys=ON")


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _head(config: Config) -> str:
    return ScriptDirectory.from_config(config).get_current_head() or ""
