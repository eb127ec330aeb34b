"""Run the steps of a migration on its tables, several at a time. A table that fails does not hold up other tables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError, MigrationError
from lakewright_spark.migration.copy import CopyStore, S3Store
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.ledger import Entry, Ledger, Method, Step
from lakewright_spark.migration.plan import PARALLEL
from lakewright_spark.migration.steps import TableMigration


@dataclass
class Migration:
    """The migration from one warehouse to the warehouses of a target catalog."""

    source: Endpoint
    target_config: CatalogConfig
    ledger: Ledger
    _targets: dict[str, Endpoint] = field(default_factory=dict[str, Endpoint])
    _store: CopyStore | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def open_target(self, warehouse: str) -> Endpoint:
        """Return a warehouse of the target."""
        with self._guard:
            if warehouse not in self._targets:
                self._targets[warehouse] = Endpoint.open(self.target_config, warehouse)
            return self._targets[warehouse]

    def run(self, entries: Sequence[Entry], act: Callable[[TableMigration], None]) -> list[Entry]:
        """Run a step on tables and return their entries afterwards.

        A failed table has its error in the ledger.

        Raises:
            MigrationError: A copy needs keys that the configuration does not have.
        """
        if self._store is None and any(entry.method is Method.COPY for entry in entries):
            self._store = S3Store.open(self.source.config, self.source.warehouse)

        def act_on(entry: Entry) -> Entry:
            target = self.open_target(entry.warehouse)
            migrated = TableMigration(self.source, target, self.ledger, entry, self._store)
            try:
                act(migrated)
            except LakewrightSparkError as error:
                self.ledger.record_error(entry, str(error))
            return self.ledger.find(entry)

        with ThreadPoolExecutor(PARALLEL, thread_name_prefix="migration") as pool:
            return list(pool.map(act_on, entries))


def list_open_entries(step: Step, entries: Sequence[Entry]) -> list[Entry]:
    """Return the tables that a step can change: all but tables that have completed the step or are beyond it."""
    done = {
        Step.VERIFIED: {Step.CUT_OVER, Step.FINISHED},
        Step.CUT_OVER: {Step.CUT_OVER, Step.FINISHED},
        Step.FINISHED: {Step.FINISHED},
        Step.UNDONE: {Step.UNDONE, Step.FINISHED},
    }[step]
    return [entry for entry in entries if entry.step not in done]


def build_error(entries: Sequence[Entry], blocked: Mapping[str, str]) -> MigrationError | None:
    """Return the error for tables that failed or were left out; None without such tables."""
    reasons = {str(entry): entry.error for entry in entries if entry.error} | dict(blocked)
    if not reasons:
        return None
    name, reason = next(iter(reasons.items()))
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    total = len(entries) + len(blocked)
    return MigrationError(f"{len(reasons)} of {total} tables are not migrated: {name}: {reason}{more}")
