"""Sessions on the server's database: a SQLite file in WAL mode, or Postgres."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.database.models import LakekeeperBase


class Database:
    """`read()` and `write()` open a session each; `write()` commits at the end of the block, or rolls back.

    SQLite has one writer: a lock in the process queues writers without busy waiting.
    """

    def __init__(
        self,
        url: str,
        info: dict[str, Any] | None = None,
        *,
        read_url: str | None = None,
        creates_tables: bool = True,
    ) -> None:
        """Connect to a database URL and, for reading, to another URL; create missing tables; sessions carry `info`."""
        self._info = info or {}
        parsed = make_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        if self.is_sqlite and parsed.database and parsed.database != ":memory:":
            _restrict_access(Path(parsed.database))
        self.engine = self._create_engine(parsed)
        self._reader = self._create_engine(make_url(read_url)) if read_url else self.engine
        self._writer = threading.RLock() if self.is_sqlite else nullcontext()
        if self.is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        if creates_tables:
            LakekeeperBase.metadata.create_all(self.engine)

    def _create_engine(self, url: URL) -> Engine:
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        options: dict[str, Any] = {"connect_args": {"timeout": 30}} if self.is_sqlite else {"pool_pre_ping": True}
        return create_engine(url, pool_size=20, max_overflow=40, **options)

    @contextmanager
    def read(self) -> Generator[Session, None, None]:
        """Open a session for reading."""
        with Session(self._reader, expire_on_commit=False, autoflush=False, info=self._info) as session:
            yield session

    @contextmanager
    def write(self) -> Generator[Session, None, None]:
        """Open a session for writing."""
        with self._writer, Session(self.engine, expire_on_commit=False, info=self._info) as session:
            if self.is_sqlite:
                session.connection(execution_options={"lakekeeper_write": True})
            yield session
            session.commit()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()
        self._reader.dispose()


def _restrict_access(file: Path) -> None:
    """Let only this user read the database and SQLite's other files, since it contains storage credentials."""
    file.touch(mode=0o600)  # SQLite's other files get the mode of the database
    for path in (file, *file.parent.glob(f"{file.name}-*")):
        path.chmod(0o600)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "busy_timeout=30000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    write = connection.get_execution_options().get("lakekeeper_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
