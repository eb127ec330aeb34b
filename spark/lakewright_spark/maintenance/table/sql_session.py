"""SqlSession: methods of a Spark session that PySpark annotates with bare `List`, typed as jobs call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

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
