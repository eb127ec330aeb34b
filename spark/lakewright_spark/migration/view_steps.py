"""The steps of one view: copy, cut over, and then undo or finish. Each can be repeated.

A view has no files to share, so each catalog has a view of its own. From the cut-over on, the source's view has a
fence, which keeps promotions of a standby from it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.endpoint import Endpoint, rename_copying, rename_moved
from lakewright_spark.migration.fence import FENCE, FINISHED, build_view_fence, refuse_taken
from lakewright_spark.migration.ledger import Entry, Ledger, Step
from lakewright_spark.migration.verify import Depth
from lakewright_spark.migration.view_catalog import StoredView, ViewCatalog
from lakewright_spark.migration.view_history import describe_view, has_history, limit_history, list_missing_versions


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

    def cut_over(self, depth: Depth) -> None:
        """Give the target the last state, and take the view from the users of the source."""
        del depth  # a view has no rows
        source, identifier = ViewCatalog(self.source), self.entry.identifier
        moved = rename_moved(identifier)
        if (view := source.find(identifier)) is not None:
            self._check_unwritten()
            self._copy_to_target(view)  # before the source's users lose the view
            source.remove_properties(identifier, (FINISHED,))  # its owner gave it another name since a promotion
            source.set_properties(identifier, build_view_fence(self.ledger.run))
            source.rename(identifier, moved)
        stopped = source.find(moved)
        if stopped is None:
            raise MigrationError(f"{self.entry}: expected the view in {self.source}, found none")
        refuse_taken(str(self.entry), stopped.properties, self.ledger.run)
        try:
            target_view = ViewCatalog(self.target).find(identifier)
            if not self._is_written(target_view):
                self._copy_to_target(stopped)
        except BaseException:
            with suppress(Exception):
                if view is not None:  # otherwise the target may have users since a killed run
                    source.rename(moved, identifier)
                    source.remove_properties(identifier, (FENCE,))
            raise
        if (
            target_view is not None
            and self._is_written(target_view)
            and list_missing_versions(stopped.metadata, target_view.metadata)
        ):
            # A killed run cut over, and the target's users continued.
            raise MigrationError(
                f"{self.entry}: expected a view in {self.target} with the last change of the source, found changes of "
                f"other programs without it. The source's view is {'.'.join(moved)} by now: --undo gives the source a "
                "view with the changes of both"
            )
        self._record(Step.CUT_OVER)

    def undo(self) -> None:
        """Give the view back to the source, as the target has it since the cut-over."""
        source, target, identifier = ViewCatalog(self.source), ViewCatalog(self.target), self.entry.identifier
        moved = rename_moved(identifier)
        stopped, source_view = source.find(moved), source.find(identifier)
        if stopped is None:
            self._check_holders(source_view)
        else:
            refuse_taken(str(self.entry), stopped.properties, self.ledger.run)
            if source_view is not None:
                raise MigrationError(f"{self.entry}: expected a free name in {self.source}, found another view")
            self._check_target_has_view()
        if target.find(identifier) is not None:
            target.rename(identifier, moved)  # no change of the target's users is lost from here on
        stopped_target = target.find(moved)
        try:
            if stopped_target is not None and self._is_written(stopped_target):
                self._return_changes(stopped_target, source_view)
            if stopped is not None:
                source.rename(moved, identifier)
        except BaseException:
            with suppress(Exception):
                if stopped is None or source.find(moved) is not None:  # the source's users do not have the view
                    target.rename(moved, identifier)
            raise
        target.drop(moved)
        target.drop(rename_copying(identifier))
        source.remove_properties(identifier, (FENCE, FINISHED))
        self._record(Step.UNDONE, registered=())

    def finish(self) -> None:
        """Remove the view from the source."""
        if self.entry.step not in {Step.CUT_OVER, Step.FINISHED}:
            raise MigrationError(
                f"{self.entry}: expected a view that is cut over, found {self.entry.step.value}; "
                f"{self.entry.step.explain_cut_over()}"
            )
        self._require(self.target)
        ViewCatalog(self.source).drop(rename_moved(self.entry.identifier))
        self._record(Step.FINISHED)

    def _copy_to_target(self, view: StoredView) -> None:
        """Give the target a view with this history, unless it has it. Its view has no changes by other programs."""
        views, identifier, metadata = ViewCatalog(self.target), self.entry.identifier, limit_history(view.metadata)
        target_view, expected = views.find(identifier), describe_view(metadata)
        if target_view is not None and describe_view(target_view.metadata) == expected:
            return
        copy = views.start_copy(metadata, identifier)
        actual = describe_view(copy.metadata)
        if parts := [part for part in expected if actual[part] != expected[part]]:
            raise MigrationError(f"{self.entry}: {self.target} changed the view's {' and '.join(parts)}")
        # Written before the view has its name, so that a killed run knows the view as its own.
        self._record(self.entry.step, registered=(*self.entry.registered, copy.location))
        if target_view is not None:
            views.drop(identifier)
        views.finish_copy(identifier)

    def _return_changes(self, stopped_target: StoredView, source_view: StoredView | None) -> None:
        """Give the source's view the changes of the target, unless a killed run gave it back to its users with them."""
        if source_view is None:
            ViewCatalog(self.source).continue_history(stopped_target.metadata, rename_moved(self.entry.identifier))
        elif self.entry.step is not Step.CUT_OVER and not has_history(source_view.metadata, stopped_target.metadata):
            raise MigrationError(self._describe_early_change())

    def _check_holders(self, source_view: StoredView | None) -> None:
        """Raise MigrationError if an undo could drop the only view that is left, given the source's view."""
        target_view = ViewCatalog(self.target).find(self.entry.identifier)
        if source_view is None:
            raise MigrationError(
                f"{self.entry}: expected the view in {self.source}, found none. Nothing was changed: only "
                f"{self.target} can have the view. A killed --finish removed the view of the source; run --finish again"
            )
        if target_view is not None and self.entry.step is Step.CUT_OVER:
            # An undo takes the target's view from its users before the source has its view again.
            raise MigrationError(
                f"{self.entry}: expected the view {'.'.join(rename_moved(self.entry.identifier))} in {self.source}, "
                f"found a new view {self.entry}. Nothing was changed: only {self.target} has the migrated view"
            )
        self._check_unwritten()

    def _check_target_has_view(self) -> None:
        """Raise MigrationError if a view that is cut over has neither of its names in the target.

        The target may have changes, which the source would not get. A killed undo drops the view only after the source
        has it again.
        """
        identifier, target = self.entry.identifier, ViewCatalog(self.target)
        moved = rename_moved(identifier)
        if self.entry.step is Step.CUT_OVER and not any(map(target.find, (identifier, moved))):
            raise MigrationError(
                f"{self.entry}: expected the view in {self.target}, found none. Nothing was changed: its changes since "
                "the cut-over would be lost. If it was renamed, or this identity may not see it, restore its name or "
                f"the rights. To give up these changes, rename {'.'.join(moved)} in {self.source} to {self.entry}. "
                "Then run --undo again"
            )

    def _is_written(self, target_view: StoredView | None) -> bool:
        return target_view is not None and target_view.location not in self.entry.registered

    def _check_unwritten(self) -> None:
        if self._is_written(ViewCatalog(self.target).find(self.entry.identifier)):
            raise MigrationError(self._describe_early_change())

    def _describe_early_change(self) -> str:
        return (
            f"{self.entry}: the target's view was changed before the cut-over. Nothing was changed. Drop that view, "
            "and run the migration again"
        )

    def _require(self, endpoint: Endpoint) -> StoredView:
        view = ViewCatalog(endpoint).find(self.entry.identifier)
        if view is None:
            raise MigrationError(f"{self.entry}: expected the view in {endpoint}, found none")
        return view

    def _record(self, step: Step, **changes: Any) -> None:
        self.entry = replace(self.entry, step=step, error="", **changes)
        self.ledger.record(self.entry)
