"""Migrate the database, and wait for it: each release marks the database that it migrated."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.database.models import LakekeeperBase

_MARK = "stand_in_migration"


class DatabaseNotReadyError(SandboxError):
    """The database cannot be reached, or another release migrated it."""


def migrate(url: str, release: str) -> None:
    """Create missing tables and mark the database with the release. A newer mark is kept."""
    engine = create_engine(url)
    LakekeeperBase.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE IF NOT EXISTS {_MARK} (release text PRIMARY KEY, applied timestamptz)"))
        connection.execute(
            text(f"INSERT INTO {_MARK} VALUES (:release, now()) ON CONFLICT DO NOTHING"),  # noqa: S608 - a constant
            {"release": release},
        )
    engine.dispose()


def wait_for_database(
    url: str, *, release: str | None, retries: int, backoff: float, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait until the database responds and, with `release`, until that release migrated it.

    Args:
        url: The database.
        release: The release that must have migrated it; None for any state.
        retries: Further attempts.
        backoff: Seconds between attempts.
        sleep: Waits for some seconds.

    Raises:
        DatabaseNotReadyError: It is not ready after all attempts, or a newer release migrated it.
    """
    engine = create_engine(url)
    try:
        for attempt in range(retries + 1):
            problem = _find_problem(engine, release)
            if problem is None:
                return
            print(f"{problem}; attempt {attempt + 1} of {retries + 1}", flush=True)
            if attempt < retries:
                sleep(backoff)
    finally:
        engine.dispose()
    raise DatabaseNotReadyError("the database is not ready")


def _find_problem(engine: Engine, release: str | None) -> str | None:
    """Return why the database is not ready, None if it is. Raises DatabaseNotReadyError if waiting does not help."""
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
            if release is None:
                return None
            rows = connection.execute(text(f"SELECT release FROM {_MARK}"))  # noqa: S608 - a constant
            marks = [str(row[0]) for row in rows]
    except OperationalError as error:
        return f"the database does not respond: {type(error.orig).__name__}"
    except ProgrammingError:
        return "the database is not migrated"
    newest = max(marks, key=_parse_minor, default="0.0")
    if _parse_minor(newest) > _parse_minor(release) >= (0, 13):
        raise DatabaseNotReadyError(f"the database was migrated by {newest}, which is newer than {release}")
    return None if release in marks else f"the database is migrated by {newest}, not by {release}"


def _parse_minor(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".")[:2])
