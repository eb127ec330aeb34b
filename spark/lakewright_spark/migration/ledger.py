"""The ledger of a migration: one row per table with its last completed step, in a SQLite file beside the run.

Every step of a migration can be repeated. A killed run therefore continues from the ledger, whether the kill came
before or after the row of its step was written.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from lakewright_spark.errors import MigrationError

VERSION = 1
"""Version of the file's tables."""

_TABLES = """
CREATE TABLE IF NOT EXISTS run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS entries (
  namespace TEXT NOT NULL, name TEXT NOT NULL, entry TEXT NOT NULL, updated_at TEXT NOT NULL,
  PRIMARY KEY (namespace, name)
);
CREATE TABLE IF NOT EXISTS executions (
  workflow INTEGER NOT NULL, execution INTEGER NOT NULL, previous TEXT NOT NULL, PRIMARY KEY (workflow, execution)
);
CREATE TABLE IF NOT EXISTS grants (
  warehouse TEXT NOT NULL, level TEXT NOT NULL, identifier TEXT NOT NULL, path TEXT NOT NULL, privilege TEXT NOT NULL,
  kind TEXT NOT NULL, principal TEXT NOT NULL, PRIMARY KEY (path, privilege, kind, principal)
);
"""


class Step(Enum):
    """The last completed step of a table."""

    PLANNED = "planned"
    FENCED = "fenced"
    REGISTERED = "registered"
    VERIFIED = "verified"
    CUT_OVER = "cut over"
    FINISHED = "finished"
    UNDONE = "undone"

    def explain_cut_over(self) -> str:
        """Return how to cut over a table that is not cut over.

        >>> Step.VERIFIED.explain_cut_over(), Step.UNDONE.explain_cut_over()
        ('run --cut-over first', 'run without --finish first, and then --cut-over')
        """
        return "run --cut-over first" if self is Step.VERIFIED else "run without --finish first, and then --cut-over"


class Method(Enum):
    """How a table gets into the target catalog."""

    REGISTER = "register"
    """The files remain where they are; both catalogs have the table until the migration is finished."""
    COPY = "copy"
    """The files are copied to a location that the target catalog chooses."""
    CREATE = "create"
    """A view, which has no files: the target gets a view with the same history."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A table or view of a migration."""

    namespace: tuple[str, ...]
    name: str
    warehouse: str
    """Warehouse in the target catalog."""
    method: Method = Method.REGISTER
    step: Step = Step.PLANNED
    rows: int = 0
    bytes: int = 0
    registered: tuple[str, ...] = ()
    """Metadata files that this migration registered in the target. A table with another file has other writers."""
    target_location: str | None = None
    """Location of the copy. None: the table is not copied."""
    is_protected: bool = False
    """Whether the target's server refuses to drop the table."""
    verified: str = ""
    """The parts that the last verification compared."""
    verified_snapshot: int | None = None
    """Snapshot whose files were compared last, -1 for a table without rows; None: no comparison is known."""
    stopped_seconds: float | None = None
    """Time for which the cut-over stopped the writers; None: no cut-over, or a killed cut-over stopped them."""
    previous_owner: str | None = None
    """Document of the object that named an earlier owner of the files, which an undo restores. Empty: no object
    existed; None: no cut-over began."""
    note: str = ""
    """A task that the last completed step left to the user."""
    error: str = ""
    """Why the last attempt failed."""

    @property
    def identifier(self) -> tuple[str, ...]:
        """Return the name within a warehouse."""
        return (*self.namespace, self.name)

    @property
    def is_view(self) -> bool:
        """Return whether this is a view."""
        return self.method is Method.CREATE

    @property
    def is_unprotected(self) -> bool:
        """Return whether a drop of the table in the target could delete files that the source needs."""
        return bool(self.registered) and not self.is_protected and not self.is_view

    def __str__(self) -> str:
        """Return the text form."""
        return ".".join(self.identifier)

    def to_json(self) -> dict[str, Any]:
        """Return the entry for JSON."""
        return {**asdict(self), "method": self.method.value, "step": self.step.value}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Return the entry of a document that `to_json` returned."""
        values: dict[str, Any] = {
            **document,
            "namespace": tuple(document["namespace"]),
            "registered": tuple(document["registered"]),
            "method": Method(document["method"]),
            "step": Step(document["step"]),
        }
        return cls(**values)


@dataclass(frozen=True, order=True)
class CarriedGrant:
    """A privilege of a user or role on an object."""

    privilege: str
    kind: str
    """`user` or `role`."""
    principal: str
    """ID of the user or role."""


class Ledger:
    """The ledger of one migration. Only one process has it open at a time; its threads share it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        """Use an open database; see `open_ledger`."""
        self._connection, self.path = connection, path
        self._guard = threading.Lock()

    @property
    def run(self) -> str:
        """ID of the migration, which tables have in their fence."""
        return self._read("run") or ""

    def add(self, entries: Iterable[Entry]) -> None:
        """Add tables that the ledger does not have, and tables whose migration was undone."""
        existing = {entry.identifier: entry for entry in self.list_entries()}
        states = ((entry, existing.get(entry.identifier)) for entry in entries)
        self._write_entries(entry for entry, old in states if old is None or old.step is Step.UNDONE)

    def record(self, entry: Entry) -> None:
        """Write an entry; it is on the disk when this returns."""
        self._write_entries([entry])

    def _write_entries(self, entries: Iterable[Entry]) -> None:
        """Write entries in one transaction."""
        now = datetime.now(UTC).isoformat()
        rows = [(json.dumps(entry.namespace), entry.name, json.dumps(entry.to_json()), now) for entry in entries]
        with self._guard, self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", rows)

    def list_entries(self) -> list[Entry]:
        """Return all entries by namespace and name."""
        with self._guard:
            rows = self._connection.execute("SELECT entry FROM entries ORDER BY namespace, name").fetchall()
        return [Entry.from_json(json.loads(text)) for (text,) in rows]

    def find(self, entry: Entry) -> Entry:
        """Return the current state of an entry."""
        key = (json.dumps(entry.namespace), entry.name)
        with self._guard:
            row = self._connection.execute("SELECT entry FROM entries WHERE namespace = ? AND name = ?", key).fetchone()
        return Entry.from_json(json.loads(row[0])) if row else entry

    def record_error(self, entry: Entry, error: str) -> None:
        """Write why a table's step failed; the step remains."""
        self.record(replace(self.find(entry), error=error))

    def record_execution(self, key: tuple[int, int], previous: dict[str, Any]) -> None:
        """Write the earlier values of an execution's rows in Texera's database."""
        with self._guard, self._connection:
            self._connection.execute("INSERT INTO executions VALUES (?, ?, ?)", (*key, json.dumps(previous)))

    def find_execution(self, key: tuple[int, int]) -> dict[str, Any] | None:
        """Return the earlier values of an execution's rows; None if the migration did not change them."""
        query = "SELECT previous FROM executions WHERE workflow = ? AND execution = ?"
        with self._guard:
            row = self._connection.execute(query, key).fetchone()
        return json.loads(row[0]) if row else None

    def forget_execution(self, key: tuple[int, int]) -> None:
        """Remove the earlier values of an execution's rows, which are restored."""
        with self._guard, self._connection:
            self._connection.execute("DELETE FROM executions WHERE workflow = ? AND execution = ?", key)

    def record_grants(
        self, warehouse: str, key: tuple[str, tuple[str, ...]], path: str, grants: Iterable[CarriedGrant]
    ) -> None:
        """Write grants that are about to be added to an object of the target.

        Args:
            warehouse: The target's warehouse.
            key: Level and name of the object.
            path: Path of the object's permissions.
            grants: The grants.
        """
        values = (warehouse, key[0], json.dumps(key[1]), path)
        rows = [(*values, grant.privilege, grant.kind, grant.principal) for grant in grants]
        with self._guard, self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def list_grants(self) -> list[tuple[str, tuple[str, tuple[str, ...]], str, CarriedGrant]]:
        """Return the grants that the migration added, each with the values that `record_grants` got."""
        with self._guard:
            rows = self._connection.execute("SELECT * FROM grants ORDER BY path").fetchall()
        return [(row[0], (row[1], tuple(json.loads(row[2]))), row[3], CarriedGrant(*row[4:])) for row in rows]

    def forget_grants(self, path: str) -> None:
        """Remove the grants on an object."""
        with self._guard, self._connection:
            self._connection.execute("DELETE FROM grants WHERE path = ?", (path,))

    def _read(self, key: str) -> str | None:
        with self._guard:
            row = self._connection.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def check_route(self, route: str) -> None:
        """Write which catalogs the migration connects, or compare it with the ledger.

        Raises:
            MigrationError: The ledger belongs to another migration.
        """
        existing = self._read("route")
        if existing is None:
            self._write({"version": str(VERSION), "run": uuid4().hex[:12], "route": route})
        elif existing != route:
            raise MigrationError(
                f"ledger {self.path}: expected the migration {route}, found {existing}. Give another --ledger"
            )
        elif (version := self._read("version")) != str(VERSION):
            raise MigrationError(f"ledger {self.path}: expected version {VERSION}, found {version}")

    def _write(self, values: Mapping[str, str]) -> None:
        with self._guard, self._connection:
            self._connection.executemany("INSERT INTO run VALUES (?, ?)", values.items())


@contextmanager
def open_ledger(path: Path, route: str) -> Generator[Ledger]:
    """Open the ledger of a migration, and create it if it does not exist.

    Args:
        path: The file.
        route: Text that identifies source and target.

    Raises:
        MigrationError: Another process has the ledger open, the file is no ledger, or it belongs to another migration.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(f"{path.name}.lock").open("w")
    except OSError as error:
        raise MigrationError(f"ledger {path} cannot be written: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MigrationError(f"ledger {path}: another process runs this migration; wait for its end") from None
        connection = sqlite3.connect(path, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.executescript(_TABLES)
            ledger = Ledger(connection, path)
            ledger.check_route(route)
            yield ledger
        except sqlite3.DatabaseError as error:
            raise MigrationError(f"ledger {path} cannot be used: {error}") from None
        finally:
            connection.close()
