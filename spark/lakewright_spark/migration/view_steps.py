"""The steps of one view: copy, cut over, and then undo or finish. Each can be repeated.

A view has no files to share, so each catalog has a view of its own, and no fence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.endpoint import Endpoint, rename_moved
from lakewright_spark.migration.ledger import Entry, Ledger, Step
from lakewright_spark.migration.verify import Depth
from lakewright_spark.migration.view_catalog import StoredView, ViewCatalog
from lakewright_spark.migration.view_history import describe_view


@dataclass
class ViewMigration:
    """The migration of one view between two REST catalogs."""

    source: Endpoint
    target: Endpoint
    ledger: Ledger
    entry: Entry

    def register(self, depth: Depth) -> None:
        """Give the target a view with the history of the source's view."""
        del depth  # a view has no rows
        view = self._require(self.source)
        self._check_unwritten()
        self._copy_to_target(view)
        self._record(Step.VERIFIED)

    def cut_over(self) -> None:
        """Give the target the last state, and take the view from the users of the source."""
        views, identifier = ViewCatalog(self.source), self.entry.identifier
        if views.find(identifier) is not None:
            self._check_unwritten()
            views.rename(identifier, rename_moved(identifier))
        stopped = views.find(rename_moved(identifier))
        if stopped is None:
            raise MigrationError(f"{self.entry}: expected the view in {self.source}, found none")
        if not self._is_written(ViewCatalog(self.target).find(identifier)):
            self._copy_to_target(stopped)
        self._record(Step.CUT_OVER)

    def undo(self) -> None:
        """Give the view back to the source, as the target has it since the cut-over."""
        source, target, identifier = ViewCatalog(self.source), ViewCatalog(self.target), self.entry.identifier
        moved, source_view, target_view = rename_moved(identifier), source.find(identifier), target.find(identifier)
        if source.find(moved) is None:
            self._check_unwritten()
        elif source_view is not None:
            # A killed run copied it.
            if target_view is not None and describe_view(source_view.metadata) != describe_view(target_view.metadata):
                raise MigrationError(f"{self.entry}: expected a free name in {self.source}, found another view")
        elif target_view is not None and self._is_written(target_view):
            source.start_copy(target_view.metadata, identifier)
            source.finish_copy(identifier)
        else:
            source.rename(moved, identifier)
        target.drop(identifier)
        source.drop(moved)
        self._record(Step.UNDONE, registered=())

    def finish(self) -> None:
        """Remove the view from the source."""
        if self.entry.step not in {Step.CUT_OVER, Step.FINISHED}:
            raise MigrationError(
                f"{self.entry}: expected a view that is cut over, found {self.entry.step.value}; run --cut-over first"
            )
        self._require(self.target)
        ViewCatalog(self.source).drop(rename_moved(self.entry.identifier))
        self._record(Step.FINISHED)

    def _copy_to_target(self, view: StoredView) -> None:
        """Give the target a view with this history, unless it has it. Its view has no changes by other programs."""
        views, identifier = ViewCatalog(self.target), self.entry.identifier
        target_view, expected = views.find(identifier), describe_view(view.metadata)
        if target_view is not None and describe_view(target_view.metadata) == expected:
            return
        copy = views.start_copy(view.metadata, identifier)
        actual = describe_view(copy.metadata)
        if parts := [part for part in expected if actual[part] != expected[part]]:
            raise MigrationError(f"{self.entry}: {self.target} changed the view's {' and '.join(parts)}")
        # Written before the view has its name, so that a killed run knows the view as its own.
        self._record(self.entry.step, registered=(*self.entry.registered, copy.location))
        if target_view is not None:
            views.drop(identifier)
        views.finish_copy(identifier)

    def _is_written(self, target_view: StoredView | None) -> bool:
        return target_view is not None and target_view.location not in self.entry.registered

    def _check_unwritten(self) -> None:
        if self._is_written(ViewCatalog(self.target).find(self.entry.identifier)):
            raise MigrationError(
                f"{self.entry}: the target's view was changed before the cut-over. Nothing was changed. Drop that "
                "view, and run the migration again"
            )

    def _require(self, endpoint: Endpoint) -> StoredView:
        view = ViewCatalog(endpoint).find(self.entry.identifier)
        if view is None:
            raise MigrationError(f"{self.entry}: expected the view in {endpoint}, found none")
        return view

    def _record(self, step: Step, **changes: Any) -> None:
        self.entry = replace(self.entry, step=step, error="", **changes)
        self.ledger.record(self.entry)
