"""IcebergTable: a table through Iceberg's Java library, with its files, properties and procedures."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakewright_spark.commit_conflicts import is_outdated
from lakewright_spark.errors import JobFailedError, NoSuchResultError
from lakewright_spark.iceberg_values import is_switched_off
from lakewright_spark.maintenance.table.row_buffer import RowBuffer
from lakewright_spark.session.own_classes import find_class, use_loaded_jars
from lakewright_spark.table_identifier import TableIdentifier, quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class SqlSession(Protocol):
    """A session as `cast(SqlSession, spark)` has it."""

    def sql(self, query: str, /) -> DataFrame:
        """Run a statement of Spark SQL."""
        ...

    def createDataFrame(self, data: Sequence[tuple[Any, ...]], schema: str | StructType, /) -> DataFrame:  # noqa: N802
        """Return a frame of rows with this schema."""
        ...


_Result = TypeVar("_Result")
MARK = "lakewright.change"
"""Key in a snapshot's summary that identifies the job's own commit."""


COMMIT_ATTEMPTS = 4
"""Attempts to commit a transaction."""
_SEPARATOR = "\0"
"""Character that no name or path has. A key in S3 may have a line break."""
_BATCH_SIZE = 10_000
"""Paths in one call into Java."""


@dataclass(frozen=True)
class IcebergTable:
    """A table as of when it was opened. `java` is Iceberg's `Table`."""

    spark: SparkSession
    table: TableIdentifier
    java: Any
    buffer: RowBuffer | None = None
    """Collects rows of the tables of `ops`. Without one, each job commits its rows itself."""

    @classmethod
    def open(cls, spark: SparkSession, table: TableIdentifier, buffer: RowBuffer | None = None) -> IcebergTable:
        """Open the table's newest state, past Spark's cache.

        Raises:
            NoSuchResultError: The table does not exist.
            JobFailedError: The catalog failed.
        """
        try:
            catalog_and_name = _resolve(spark, table)
            # One request to the catalog: Spark's `refreshTable` loads the table three times.
            catalog_and_name.catalog().invalidateTable(catalog_and_name.identifier())
            java = catalog_and_name.catalog().loadTable(catalog_and_name.identifier()).table()
        except (Py4JJavaError, PySparkException) as error:
            raise _build_open_error(table, first_line(error)) from error
        return cls(spark, table, java, buffer)

    @classmethod
    def open_kept(cls, spark: SparkSession, table: TableIdentifier) -> IcebergTable:
        """Open the newest state of a table that Spark's catalog may have loaded, without another load.

        Raises:
            NoSuchResultError: The table does not exist.
            JobFailedError: The catalog failed.
        """
        try:
            catalog_and_name = _resolve(spark, table)
            opened = cls(spark, table, catalog_and_name.catalog().loadTable(catalog_and_name.identifier()).table())
            if not opened.renews_credentials:
                return cls.open(spark, table)
            opened.refresh()
        except (Py4JJavaError, PySparkException, NoSuchResultError, JobFailedError):
            return cls.open(spark, table)  # another table has this name, or the error says what is wrong
        return opened

    @property
    def uuid(self) -> str:
        """UUID, which differs from that of another table with the same name."""
        return self.java.uuid().toString()

    @property
    def location(self) -> str:
        """Location without a trailing slash."""
        return self.java.location().rstrip("/")

    @property
    def format_version(self) -> int:
        """Version of the table's format."""
        return self.java.operations().current().formatVersion()

    @property
    def keeps_garbage(self) -> bool:
        """Return whether `gc.enabled=false` forbids to delete files, since other tables may use them."""
        return is_switched_off(self.java.properties(), "gc.enabled")

    @property
    def deletes_files(self) -> bool:
        """Return whether this session may delete files. A catalog with soft delete tells clients not to."""
        return not is_switched_off(self.java.io().properties(), "s3.delete-enabled")

    @property
    def metadata_folder(self) -> str:
        """Folder of metadata files, manifests and manifest lists, with a trailing slash."""
        return self.java.operations().metadataFileLocation("")

    def find_class(self, name: str) -> Any:
        """Return a Java class, given its full name."""
        return find_class(self.spark, name)

    def columns(self) -> dict[str, str]:
        """Return the Iceberg type of each top-level column."""
        return {field.name(): field.type().toString() for field in iterate(self.java.schema().columns())}

    def partitions(self) -> list[tuple[str, str]]:
        """Return column and transform of each partition field."""
        schema = self.java.schema()
        fields = self.java.spec().fields()
        return [(schema.findColumnName(field.sourceId()), field.transform().toString()) for field in iterate(fields)]

    def list_specs(self) -> list[Any]:
        """Return the current partition spec and the earlier specs."""
        specs = self.java.specs()
        return [specs[number] for number in iterate(specs.keySet())]

    def read_metadata(self, name: str) -> DataFrame:
        """Return the rows of a metadata table, such as `snapshots`, of the opened table.

        By its name, Spark would ask the catalog for a table of this name, and then load the table again.
        """
        kind = self.find_class("org.apache.iceberg.MetadataTableType").valueOf(name.upper())
        session = cast(Any, self.spark)._jsparkSession
        java = self.find_class("org.apache.iceberg.spark.SparkTableUtil").loadMetadataTable(session, self.java, kind)
        return DataFrame(java, self.spark)

    @property
    def renews_credentials(self) -> bool:
        """Return whether access to the table's files outlives its credentials. Some servers cannot renew them."""
        io = self.java.io()
        properties = set(self.to_strings(io.properties().keySet()))
        if self.find_class("py4j.reflection.TypeUtil").isInstanceOf(_WITH_CREDENTIALS, io):
            for credential in iterate(io.credentials()):
                properties |= set(self.to_strings(credential.config().keySet()))
        has_token = any(
            key.endswith(("session-token", "oauth2.token")) or key.startswith("adls.sas-token") for key in properties
        )
        return not has_token or any(key.endswith("refresh-credentials-endpoint") for key in properties)

    def refresh(self) -> None:
        """Read the table's newest metadata if it changed. The credentials of the storage remain.

        Raises:
            NoSuchResultError: The table does not exist.
            JobFailedError: The catalog failed, or another table has this name now.
        """
        try:
            self.java.refresh()
        except (Py4JJavaError, PySparkException) as error:
            reason = first_line(error)
            if _OTHER_UUID in reason:
                raise JobFailedError(f"table {self.table} was replaced by another table of this name") from error
            raise _build_open_error(self.table, reason) from error

    def forget(self) -> None:
        """Remove the table from Spark's catalog, which otherwise keeps it for its next use by name."""
        catalog_and_name = _resolve(self.spark, self.table)
        catalog_and_name.catalog().invalidateTable(catalog_and_name.identifier())

    def call(self, procedure: str, **arguments: str) -> DataFrame:
        """Run one of Iceberg's procedures. Arguments are Spark SQL expressions."""
        argument_list = ", ".join(
            f"{name} => {value}" for name, value in {"table": self.table.argument, **arguments}.items()
        )
        return cast(SqlSession, self.spark).sql(
            f"CALL {quote_name(self.table.warehouse)}.system.{procedure}({argument_list})"
        )

    def commit(self, change: Any) -> dict[str, str]:
        """Commit a change of the Java library and return the summary of its snapshot.

        The summary is empty if another process has removed the snapshot already.

        Raises:
            Py4JJavaError: The commit failed.
        """
        mark = uuid4().hex
        change.set(MARK, mark).commit()
        newest = self.java.currentSnapshot()
        # Other processes may have committed on top of it, or rolled back to an earlier snapshot.
        for snapshot in chain([newest] if newest is not None else [], iterate(self.java.snapshots())):
            if snapshot.summary().get(MARK) == mark:
                return self.to_dict(snapshot.summary())
        return {}

    def run_transaction(self, change: Callable[[Any], _Result]) -> _Result:
        """Call a function with a new transaction on the table's newest metadata, and return its result.

        Another writer may commit before the function does. It is called again then, since its decisions come from
        metadata that is no longer the newest.

        Raises:
            Py4JJavaError: The commit failed, for a commit of another writer at each of `COMMIT_ATTEMPTS`.
        """
        for attempt in range(1, COMMIT_ATTEMPTS + 1):
            try:
                return change(self.java.newTransaction())  # refreshes the metadata
            except Py4JJavaError as error:
                if attempt == COMMIT_ATTEMPTS or not is_conflict(error):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def to_strings(self, iterable: Any) -> list[str]:
        """Return the strings of a Java Iterable in one call: a call into Java costs as much as hundreds inside it."""
        joined = self.find_class("java.lang.String").join(_SEPARATOR, iterable)
        return joined.split(_SEPARATOR) if joined else []

    def to_stream(self, strings: Sequence[str]) -> Any:
        """Return a Java Stream of strings in one call."""
        separator = self.find_class("java.util.regex.Pattern").compile(_SEPARATOR)
        return separator.splitAsStream(_SEPARATOR.join(strings))

    def to_dict(self, strings: Any) -> dict[str, str]:
        """Return the strings of a Java Map in one call; none for null.

        py4j needs a call for each value, and an error for its end.
        """
        mapper = self.find_class("org.apache.iceberg.util.JsonUtil").mapper()
        return json.loads(mapper.writeValueAsString(strings)) or {}

    def delete_files(self, paths: Sequence[str]) -> None:
        """Delete files in batches. The store may refuse some; only a new listing shows which."""
        for start in range(0, len(paths), _BATCH_SIZE):
            try:
                self.java.io().deleteFiles(self.to_stream(paths[start : start + _BATCH_SIZE]).toList())
            except Py4JJavaError as error:
                if "BulkDeletionFailure" not in first_line(error):
                    raise

    def write(self, path: str, text: str) -> None:
        """Write a file with the table's credentials."""
        stream = self.java.io().newOutputFile(path).createOrOverwrite()
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def read(self, path: str) -> str:
        """Return the text of a file."""
        stream = self.java.io().newInputFile(path).newStream()
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def list_files(self, prefix: str) -> list[str]:
        """Return the files whose path begins with this prefix."""
        return [file.location() for file in iterate(self.java.io().listPrefix(prefix))]


_WITH_CREDENTIALS = "org.apache.iceberg.io.SupportsStorageCredentials"
_OTHER_UUID = "Table UUID does not match"
"""Part of Iceberg's message if another table has the name of a loaded table."""


def _resolve(spark: SparkSession, table: TableIdentifier) -> Any:
    """Return Spark's catalog of the table, and the table's name in it."""
    session = cast(Any, spark)
    use_loaded_jars(spark)
    resolve = find_class(spark, "org.apache.iceberg.spark.Spark3Util").catalogAndIdentifier
    catalog_and_name = resolve(session._jsparkSession, table.sql)
    if catalog_and_name.catalog().name() != table.warehouse:
        # Iceberg takes the default catalog if this catalog cannot be loaded. Spark says why.
        spark.catalog.refreshTable(table.sql)
        catalog_and_name = resolve(session._jsparkSession, table.sql)
    return catalog_and_name


def _build_open_error(table: TableIdentifier, reason: str) -> JobFailedError | NoSuchResultError:
    """Return the error of a table that cannot be loaded, given the first line of Java's error."""
    missing = "TABLE_OR_VIEW_NOT_FOUND" in reason or "NoSuchTable" in reason or "NoSuchNamespace" in reason
    kind = NoSuchResultError if missing else JobFailedError
    return kind(f"table {table} cannot be opened: {reason}")


REFRESH_AFTER_SECONDS = 20.0
"""Time after which the next job refreshes the metadata of a shared table, since others may have committed."""


@dataclass
class SharedTable:
    """A table for several jobs in a row. It is loaded once, since each load asks the catalog for credentials.

    The table renews its credentials by itself before they expire.
    """

    spark: SparkSession
    table: TableIdentifier
    buffer: RowBuffer | None = None
    _opened: IcebergTable | None = None
    _read_at: float = 0.0

    def open(self) -> IcebergTable:
        """Return the table. Its metadata is refreshed if it was read too long ago.

        Raises:
            NoSuchResultError: The table does not exist.
            JobFailedError: The catalog failed.
        """
        if self._opened is not None and time.monotonic() - self._read_at > REFRESH_AFTER_SECONDS:
            if self._opened.renews_credentials:
                self._refresh(self._opened)
            else:
                self._opened = None
        if self._opened is None:
            self._opened, self._read_at = IcebergTable.open(self.spark, self.table, self.buffer), time.monotonic()
        return self._opened

    def _refresh(self, opened: IcebergTable) -> None:
        now = time.monotonic()
        try:
            opened.refresh()
        except (NoSuchResultError, JobFailedError):
            self._opened = None  # a new load finds another table of this name, or says what is wrong
        else:
            self._read_at = now

    def forget(self) -> None:
        """Open the table again for the next job, after a job that failed."""
        self._opened = None

    def close(self) -> None:
        """Release the memory of the table after its last job."""
        if self._opened is not None:
            self._opened.forget()
        self._opened = None


def iterate(iterable: Any) -> Iterator[Any]:
    """Iterate over a Java Iterable.

    py4j iterates over lists only, and finds their end by an error, which costs PySpark dozens of calls.
    """
    iterator = iterable.iterator()
    while iterator.hasNext():
        try:
            value = iterator.next()
        except StopIteration as end:  # py4j's form of each error of Java
            raise cast(Exception, end.__context__) from None
        yield value


def instant_sql(moment: datetime) -> str:
    """Return an instant as a literal of Spark SQL."""
    return f"TIMESTAMP '{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"


def sql_map(values: dict[str, Any]) -> str:
    """Return options of a procedure as a map of Spark SQL."""
    return "map(" + ", ".join(f"'{key}', '{value}'" for key, value in values.items()) + ")"


def is_conflict(error: Py4JJavaError) -> bool:
    """Return whether a commit failed because of another commit, so that it can be repeated on newer metadata."""
    reason = first_line(error)
    return "CommitFailedException" in reason or is_outdated(reason)


def first_line(error: Exception) -> str:
    """Return the first line of an error of Spark or Iceberg."""
    text = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return (text.strip().splitlines() or [type(error).__name__])[0]
