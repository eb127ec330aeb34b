"""Run the steps of a migration on its tables, several at a time. A table that fails does not hold up other tables."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyiceberg.table import Table
from pyiceberg.typedef import Identifier

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LakewrightSparkError, MigrationError
from lakewright_spark.migration.copy_stores import CopyStore, open_copy_store
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.ledger import Entry, Ledger, Method, Step
from lakewright_spark.migration.plan import PARALLEL
from lakewright_spark.migration.steps import TableMigration
from lakewright_spark.migration.view_steps import ViewMigration
from lakewright_spark.pyiceberg_client.read_errors import describe_error

PROGRAMMING_ERRORS = (AssertionError, AttributeError, LookupError, NameError, TypeError)
"""Errors whose one-line text does not explain them."""
_LOG = logging.getLogger(__name__)


@dataclass
class Migration:
    """The migration from one warehouse to the warehouses of a target catalog."""

    source: Endpoint
    target_config: CatalogConfig
    ledger: Ledger
    loaded_tables: Mapping[Identifier, Table] = field(default_factory=dict[Identifier, Table], repr=False)
    """Tables of the source that the plan has loaded."""
    _targets: dict[str, Endpoint] = field(default_factory=dict[str, Endpoint])
    _stores: dict[str, CopyStore] = field(default_factory=dict[str, CopyStore])
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def open_target(self, warehouse: str) -> Endpoint:
        """Return a warehouse of the target."""
        with self._guard:
            if warehouse not in self._targets:
                self._targets[warehouse] = Endpoint.open(self.target_config, warehouse)
            return self._targets[warehouse]

    def run(
        self,
        groups: Iterable[Sequence[Entry]],
        act: Callable[[TableMigration | ViewMigration], None],
        *,
        prepare: Callable[[Sequence[Entry]], None] | None = None,
        complete: Callable[[Sequence[Entry]], None] | None = None,
    ) -> None:
        """Run a step on groups of tables, several groups at a time.

        A failed table has its error in the ledger.

        Args:
            groups: Tables that belong together, such as the results of an execution.
            act: The step of a table.
            prepare: Runs before the step of the first table of a group. If it fails, the group's tables remain.
            complete: Runs after the step of all tables of a group. It does not run if a table failed.

        Raises:
            MigrationError: A copy needs keys that the configuration does not have.
        """
        group_list = list(groups)
        for warehouse in {entry.warehouse for group in group_list for entry in group if entry.method is Method.COPY}:
            if warehouse not in self._stores:
                source = self.source.config.warehouse(self.source.warehouse)
                self._stores[warehouse] = open_copy_store(source, self.target_config.warehouse(warehouse))

        def act_on_group(group: Sequence[Entry]) -> None:
            entry = group[0]
            try:
                if prepare:
                    prepare(group)
                for entry in group:
                    act(self._open_migration(entry))
                if complete:
                    complete(group)
            except Exception as error:  # noqa: BLE001  # any error: it must not affect other tables
                is_explained = isinstance(error, LakewrightSparkError)
                if isinstance(error, PROGRAMMING_ERRORS):
                    _LOG.exception("%s: the step ended with an error of this program", entry)
                self.ledger.record_error(entry, str(error) if is_explained else describe_error(error))

        with ThreadPoolExecutor(PARALLEL, thread_name_prefix="migration") as pool:
            list(pool.map(act_on_group, group_list))

    def _open_migration(self, entry: Entry) -> TableMigration | ViewMigration:
        target = self.open_target(entry.warehouse)
        if entry.is_view:
            return ViewMigration(self.source, target, self.ledger, entry)
        store, loaded_table = self._stores.get(entry.warehouse), self.loaded_tables.get(entry.identifier)
        return TableMigration(self.source, target, self.ledger, entry, store, loaded_table)


def list_open_entries(step: Step, entries: Sequence[Entry]) -> list[Entry]:
    """Return the tables that a step can change: all but tables that have completed the step or are beyond it."""
    completed_steps = {
        Step.VERIFIED: {Step.CUT_OVER, Step.FINISHED},
        Step.CUT_OVER: {Step.CUT_OVER, Step.FINISHED},
        Step.FINISHED: {Step.FINISHED},
        Step.UNDONE: {Step.UNDONE, Step.FINISHED},
    }[step]
    return [entry for entry in entries if entry.step not in completed_steps]


def build_error(entries: Sequence[Entry], blocked: Mapping[str, str]) -> MigrationError | None:
    """Return the error for tables that failed or were left out; None without such tables."""
    reasons = {str(entry): entry.error for entry in entries if entry.error} | dict(blocked)
    if not reasons:
        return None
    name, reason = next(iter(reasons.items()))
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    total = len(entries) + len(blocked)
    return MigrationError(f"{len(reasons)} of {total} tables are not migrated: {name}: {reason}{more}")
