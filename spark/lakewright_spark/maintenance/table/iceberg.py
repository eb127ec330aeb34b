"""The table as Iceberg's Java library has it: its files, properties and procedures, as jobs need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakewright_spark.errors import JobFailedError, NoSuchResultError
from lakewright_spark.maintenance.switches import switched_off
from lakewright_spark.table_identifier import TableIdentifier, quoted

if TYPE_CHECKING:
    from lakewright_spark.maintenance.table.ops_tables import RowBuffer

MARK = "lakewright.change"
"""In the summary of a snapshot that a job made: tells it from every other."""


_AT_ONCE = 10_000
"""Paths that one call hands over to Java."""


@dataclass(frozen=True)
class IcebergTable:
    """A table as it was when it was opened. `java` is Iceberg's own `Table`."""

    spark: SparkSession
    table: TableIdentifier
    java: Any
    buffer: RowBuffer | None = None
    """Takes what jobs keep about the table in `ops`; without one, each job commits that itself."""

    @classmethod
    def open(cls, spark: SparkSession, table: TableIdentifier, buffer: RowBuffer | None = None) -> IcebergTable:
        """Its newest state, whatever Spark remembers of it. NoSuchResultError, JobFailedError."""
        jvm: Any = spark._jvm
        where = jvm.org.apache.iceberg.spark.Spark3Util.catalogAndIdentifier
        try:
            found = where(spark._jsparkSession, table.sql)
            if found.catalog().name() != table.warehouse:
                # A catalog's first use has to be Spark's own: a thread of py4j's does not see the jars of its class.
                spark.catalog.refreshTable(table.sql)
                found = where(spark._jsparkSession, table.sql)
            # Asked of the catalog once: Spark's own way to refresh a table loads it three times.
            found.catalog().invalidateTable(found.identifier())
            java = found.catalog().loadTable(found.identifier()).table()
        except (Py4JJavaError, PySparkException) as error:
            reason = first_line(error)
            missing = "TABLE_OR_VIEW_NOT_FOUND" in reason or "NoSuchTable" in reason or "NoSuchNamespace" in reason
            kind = NoSuchResultError if missing else JobFailedError
            raise kind(f"table {table} cannot be opened: {reason}") from error
        return cls(spark, table, java, buffer)

    @property
    def uuid(self) -> str:
        """Tells it from a table that was made again under its name."""
        return self.java.uuid().toString()

    @property
    def location(self) -> str:
        return self.java.location().rstrip("/")

    @property
    def keeps_garbage(self) -> bool:
        """Whether `gc.enabled` forbids to delete files: others may use them, too."""
        return switched_off(self.java.properties(), "gc.enabled")

    @property
    def deletes_files(self) -> bool:
        """Whether this session's way to the storage deletes at all: a catalog with soft delete tells clients not to."""
        return not switched_off(self.java.io().properties(), "s3.delete-enabled")

    @property
    def metadata_folder(self) -> str:
        """Where metadata files, manifests and their lists are put, with a slash at its end."""
        return self.java.operations().metadataFileLocation("")

    @property
    def jvm(self) -> Any:
        """Iceberg's packages, as py4j has them."""
        return self.spark._jvm

    def columns(self) -> dict[str, str]:
        """Iceberg's type of each top-level column."""
        return {field.name(): field.type().toString() for field in self.java.schema().columns()}

    def partitions(self) -> list[tuple[str, str]]:
        """Column and transform of each partition field."""
        schema = self.java.schema()
        fields = self.java.spec().fields()
        return [(schema.findColumnName(one.sourceId()), one.transform().toString()) for one in fields]

    def metadata(self, name: str) -> str:
        """One of the table's metadata tables, such as `snapshots`, for Spark SQL."""
        return f"{self.table.sql}.{name}"

    def call(self, procedure: str, **arguments: str) -> DataFrame:
        """Run one of Iceberg's procedures; values are Spark SQL already."""
        given = ", ".join(f"{name} => {value}" for name, value in {"table": self.table.argument, **arguments}.items())
        return self.spark.sql(f"CALL {quoted(self.table.warehouse)}.system.{procedure}({given})")

    def commit(self, change: Any) -> dict[str, str]:
        """Commit a change of the Java library's that makes a snapshot; the summary of that one.

        Empty if others have taken that snapshot away already. Raises Py4JJavaError.
        """
        mark = uuid4().hex
        change.set(MARK, mark).commit()
        newest = self.java.currentSnapshot()
        # Others may have committed on top of it, or have gone back to one before it.
        for snapshot in chain([newest] if newest is not None else [], each(self.java.snapshots())):
            if snapshot.summary().get(MARK) == mark:
                return dict(snapshot.summary())
        return {}

    def texts(self, iterable: Any) -> list[str]:
        """What a Java Iterable of paths has, at once: each call into Java costs as much as hundreds there."""
        joined = self.jvm.java.lang.String.join("\n", iterable)
        return joined.split("\n") if joined else []

    def delete_files(self, paths: Sequence[str]) -> None:
        """Delete files by the thousand. The store may refuse some, which only a new listing shows for certain."""
        lines = self.jvm.java.util.regex.Pattern.compile("\n")
        for start in range(0, len(paths), _AT_ONCE):
            batch = "\n".join(paths[start : start + _AT_ONCE])
            try:
                self.java.io().deleteFiles(lines.splitAsStream(batch).toList())
            except Py4JJavaError as error:
                if "BulkDeletionFailure" not in first_line(error):
                    raise

    def write(self, path: str, text: str) -> None:
        """Put a file of the table's, with the table's own credentials."""
        stream = self.java.io().newOutputFile(path).createOrOverwrite()
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def read(self, path: str) -> str:
        stream = self.java.io().newInputFile(path).newStream()
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def listed(self, folder: str) -> list[str]:
        """The files whose path begins with this one, by the table's own credentials."""
        found = self.java.io().listPrefix(folder).iterator()
        paths: list[str] = []
        while found.hasNext():
            paths.append(found.next().location())
        return paths


def each(iterable: Any) -> Iterator[Any]:
    """What a Java Iterable has; py4j knows lists alone."""
    found = iterable.iterator()
    while found.hasNext():
        yield found.next()


def instant(moment: datetime) -> str:
    """An instant as a literal of Spark SQL."""
    return f"TIMESTAMP '{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"


def first_line(error: Exception) -> str:
    """What Spark or Iceberg said, in one line."""
    text = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return (text.strip().splitlines() or [type(error).__name__])[0]
