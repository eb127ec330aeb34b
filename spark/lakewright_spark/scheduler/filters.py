"""Which warehouses, namespaces, tables and jobs a run of the scheduler is for."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from lakewright_spark.policies.model import JOBS, Job
from lakewright_spark.table_identifier import TableIdentifier


@dataclass(frozen=True)
class Filters:
    """What is looked at; all of it by default."""

    namespace: re.Pattern[str] | None = None
    """Has to match the whole namespace, its levels joined by a dot."""
    table: re.Pattern[str] | None = None
    """Has to match the whole name of the table."""
    jobs: Collection[Job] = JOBS

    @property
    def is_every_table(self) -> bool:
        """Whether no table is left out."""
        return self.namespace is None and self.table is None

    def wants_namespace(self, namespace: tuple[str, ...]) -> bool:
        return self.namespace is None or self.namespace.fullmatch(".".join(namespace)) is not None

    def wants(self, table: TableIdentifier) -> bool:
        return self.wants_namespace(table.namespace) and (
            self.table is None or self.table.fullmatch(table.name) is not None
        )
