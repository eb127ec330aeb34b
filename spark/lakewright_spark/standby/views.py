"""One view of a standby: copy its last changes, or promote it.

A view has no files: the standby gets a view with the same history, and the mark among its properties. A change is a
single commit to the copy. A change that needs several commits makes a new view, which replaces the copy when complete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from lakewright_spark.errors import LeaseLostError, StandbyError
from lakewright_spark.migration.endpoint import rename_copying, rename_moved
from lakewright_spark.migration.fence import FINISHED, describe_holder
from lakewright_spark.migration.view_catalog import StoredView, ViewCatalog
from lakewright_spark.migration.view_history import Json, describe_view, find_last_time, limit_history
from lakewright_spark.standby.mark import MARK, StandbyMark, read_mark
from lakewright_spark.standby.standby_object import StandbyObject
from lakewright_spark.standby.tables import CLOCK_DIFFERENCE_MS, UNCHANGED, CopyResult


@dataclass(frozen=True)
class StandbyView(StandbyObject):
    """A view in the source, and its copy in the standby."""

    kind = "view"

    @property
    def obstacle(self) -> str | None:
        """Return why the standby cannot have the view; None if it can."""
        for endpoint in (self.standby, *([self.source] if self.source else [])):
            if not endpoint.has_views:
                return f"views of {endpoint} cannot be read and written"
        return None

    def copy(self, now: datetime) -> CopyResult:
        """Let the standby have the source's view.

        Raises:
            StandbyError: The view in the standby is no copy of the source, or was changed by other programs.
            MigrationError: The copy differs, or a server refuses a call.
        """
        return self._copy_state(self._require(self.find_in_source()), now)

    def promote(self, now: datetime) -> StandbyMark:
        """Take the view from the source's users, copy its last change, and let the standby have users.

        Raises:
            StandbyError: The view in the standby is no copy of the source, or the source has no view.
            MigrationError: The view cannot be copied. The source's users continue.
        """
        if mark := self.find_promotion():
            return mark
        source, moved = ViewCatalog(self._require_source()), rename_moved(self.identifier)
        view, moved_view = self.find_in_source(), source.find(moved)
        if view is None:
            # A killed run took the view from the source's users, or the source has a view of an earlier promotion.
            stopped = self._require(moved_view)
            self._check_without_holder(stopped.properties)
            self._check_successor(stopped, self.require_copy()[1])
        else:
            self._check_without_fence(view.properties)
            if moved_view is not None:
                raise StandbyError(
                    f"{self}: expected the name {'.'.join(moved)} to be free in {self.source_name}, found a view, as "
                    "of an earlier promotion. Nothing was changed. Drop that view"
                )
            source.remove_properties(self.identifier, (FINISHED,))  # its owner gave it another name since
            self._copy_state(view, now)  # before the source's users lose the view
        is_moved, may_have_users = view is None, False
        try:
            if view is not None:
                self.check_claim()
                source.rename(self.identifier, moved)
                is_moved = True
            stopped = self._require(source.find(moved))
            self._check_without_holder(stopped.properties)  # a migration may have begun in the meantime
            self._copy_state(stopped, now)
            may_have_users = True
            return self._release(now)
        except BaseException as error:
            if isinstance(error, LeaseLostError) and view is not None and not is_moved:
                raise
            if self.has_lost_claim(error):
                # Another process may promote the view at any time, so the source must remain as it is.
                raise self._describe_moved(error) from None
            if not self._is_promoted_after(error, may_have_users=may_have_users or not is_moved):
                self._return_to_source(error, is_moved=is_moved)
            raise

    def _find_stopped_properties(self) -> Mapping[str, str] | None:
        moved_view = ViewCatalog(self._require_source()).find(rename_moved(self.identifier))
        return None if moved_view is None else moved_view.properties

    def _mark_source(self, properties: dict[str, str]) -> None:
        ViewCatalog(self._require_source()).set_properties(rename_moved(self.identifier), properties)

    def _is_promoted_after(self, error: BaseException, *, may_have_users: bool) -> bool:
        """Return whether the standby has users after an error.

        Args:
            error: The error.
            may_have_users: Whether this process, or a process whose lease this process has, may have given it users.

        Raises:
            StandbyError: The standby does not respond, and may have users.
        """
        try:
            return self.find_promotion() is not None
        except Exception:  # noqa: BLE001  # any error: the first error is reported
            if may_have_users:
                raise self._describe_moved(error) from None
            return False

    def _return_to_source(self, error: BaseException, *, is_moved: bool) -> None:
        """Give the source's users the view again, since the standby has no users.

        Args:
            error: The error of the promotion.
            is_moved: Whether a promotion has renamed the view. Otherwise, a migration may have done it in this moment.

        Raises:
            StandbyError: The source has the view under the other name.
        """
        try:
            moved_properties = self._find_stopped_properties() or {}
            is_free = is_moved or describe_holder(moved_properties) is None
            if is_free and self.find_in_source() is None:
                ViewCatalog(self._require_source()).rename(rename_moved(self.identifier), self.identifier)
        except Exception:  # noqa: BLE001  # any error: the first error is reported
            raise self._describe_moved(error) from None

    def find_in_source(self) -> StoredView | None:
        """Return the source's view; None if the source has no view of the name."""
        return ViewCatalog(self._require_source()).find(self.identifier)

    def find_copy(self) -> tuple[StoredView, StandbyMark] | None:
        """Return the view in the standby and its mark; None if the standby has no view of the name.

        A complete copy that a killed run has not given its name is returned, too.

        Raises:
            StandbyError: The view is no copy of the source.
        """
        views = ViewCatalog(self.standby)
        view = views.find(self.identifier)
        if view is None:
            waiting = views.find(rename_copying(self.identifier))
            mark = _read_mark(waiting) if waiting else None
            is_complete = waiting is not None and mark is not None and mark.content == compute_content(waiting)
            return (waiting, mark) if waiting and mark and is_complete and mark.source == self.source_name else None
        mark = _read_mark(view)
        if mark is None or mark.source != self.source_name:
            owner = f"a copy of {mark.source}" if mark else "a view that is no standby"
            raise StandbyError(f"{self}: expected a copy of {self.source_name} in {self.standby}, found {owner}")
        return view, mark

    def require_copy(self) -> tuple[StoredView, StandbyMark]:
        """Return the view in the standby and its mark.

        Raises:
            StandbyError: The standby has no view of the name, or the view is no copy of the source.
        """
        copy = self.find_copy()
        if copy is None:
            raise StandbyError(f"{self}: expected the view in {self.standby}, found none")
        return copy

    def _copy_state(self, view: StoredView, now: datetime) -> CopyResult:
        """Let the standby have a view with this history, unless it has it."""
        copy, content = self.find_copy(), compute_content(view)
        if copy is None:
            self._check_free_name()
        else:
            self._check_unwritten(*copy)
            if copy[1].content == content:
                self._finish_killed_copy()
                return CopyResult(f"view, {UNCHANGED}", copy[1].copied_at)
            self._check_successor(view, copy[1])
            self._finish_killed_copy()
            copy = self.require_copy()
        uuid, changed_ms = view.metadata["view-uuid"], find_last_time(view.metadata)
        mark = StandbyMark(
            self.source_name, view.location, now, {}, content=content, view_uuid=uuid, changed_ms=changed_ms
        )
        metadata: Json = {**limit_history(view.metadata), "properties": {**view.properties, **mark.to_property()}}
        self.check_claim()
        updated = ViewCatalog(self.standby).update_copy(metadata, self.identifier, copy[0]) if copy else None
        if updated is None:
            self._replace_copy(copy[0] if copy else None, metadata)
        elif parts := _list_differences(metadata, updated):
            raise StandbyError(
                f"{self}: {self.standby} or another program changed the view's {' and '.join(parts)} during the copy. "
                "Drop the copy and copy the view again"
            )
        return CopyResult(f"view, {len(metadata['versions'])} versions", now)

    def _replace_copy(self, copy: StoredView | None, metadata: Json) -> None:
        """Give the standby a new view in place of the copy, unless another program has changed the copy meanwhile."""
        views, incomplete = ViewCatalog(self.standby), rename_copying(self.identifier)
        waiting = views.find(incomplete)
        waiting_mark = _read_mark(waiting) if waiting else None
        if waiting is not None and (waiting_mark is None or waiting_mark.source != self.source_name):
            raise StandbyError(
                f"{self}: expected the name {'.'.join(incomplete)} to be free in {self.standby}, found a view that is "
                f"no copy of {self.source_name}. Give that view another name"
            )
        new_copy = views.start_copy(metadata, self.identifier)
        if parts := _list_differences(metadata, new_copy):
            views.drop(incomplete)
            raise StandbyError(f"{self}: {self.standby} changed the view's {' and '.join(parts)}")
        self.check_claim()
        current = views.find(self.identifier)
        if current is not None:
            if copy is None or current.location != copy.location:
                views.drop(incomplete)
                raise StandbyError(
                    f"{self}: another program made or changed this view in {self.standby} during the copy. The view "
                    "was not replaced"
                )
            views.drop(self.identifier)
        views.finish_copy(self.identifier)

    def _check_free_name(self) -> None:
        """Raise StandbyError if a table has the view's name. Catalogs give a name to a table or to a view."""
        if self.standby.find_table(self.identifier) is not None:
            raise StandbyError(
                f"{self}: expected the name to be free in {self.standby}, found a table. Drop the table to copy the "
                "view"
            )

    def _check_successor(self, view: StoredView, mark: StandbyMark) -> None:
        """Raise StandbyError unless a view is a later state of the view that was copied."""
        if mark.view_uuid and view.metadata["view-uuid"] != mark.view_uuid:
            raise StandbyError(
                f"{self}: {self.source_name} has another view of this name. The copy was not changed. Promote it with "
                "--source-lost, or drop it and copy the new view"
            )
        if find_last_time(view.metadata) < mark.changed_ms - CLOCK_DIFFERENCE_MS:
            raise StandbyError(
                f"{self}: {self.source_name} has an older state than the copy, as after a restore from a backup. The "
                "copy was not changed. Promote it with --source-lost, or drop it and copy again"
            )

    @property
    def has_name(self) -> bool:
        """Return whether the standby has a view of the name. A killed run may not have given it to the copy."""
        return ViewCatalog(self.standby).find(self.identifier) is not None

    def _finish_killed_copy(self) -> None:
        """Give a complete copy its name, if a run was killed before it did so."""
        if not self.has_name:
            self._check_free_name()
            ViewCatalog(self.standby).finish_copy(self.identifier)

    def _release(self, now: datetime) -> StandbyMark:
        self.check_claim()
        mark = self.require_copy()[1]
        self._finish_killed_copy()
        promoted = replace(mark, promoted_at=now)
        ViewCatalog(self.standby).set_properties(self.identifier, promoted.to_property())
        return promoted

    def _check_unwritten(self, view: StoredView, mark: StandbyMark) -> None:
        if mark.promoted_at:
            raise StandbyError(
                f"{self}: {self.standby} was promoted and is no longer a standby; copy in the other direction"
            )
        if is_written(view, mark):
            raise StandbyError(
                f"{self}: {self.standby} has changes of other programs. Nothing was changed. Promote the view with "
                "--source-lost, which gives up later changes of the source, or drop it and copy it again"
            )

    def _require(self, view: StoredView | None) -> StoredView:
        if view is None:
            raise StandbyError(
                f"{self}: expected the view in {self.source_name}, found none. Use --source-lost to promote its copy, "
                "or drop the copy if a migration has the view"
            )
        return view


def _read_mark(view: StoredView) -> StandbyMark | None:
    return read_mark(view.properties)


def _list_differences(metadata: Json, copy: StoredView) -> list[str]:
    """Return the parts of a view that its copy does not have."""
    expected, actual = describe_view(metadata), describe_view(limit_history(copy.metadata))
    return [part for part in expected if actual[part] != expected[part]]


def is_written(view: StoredView, mark: StandbyMark) -> bool:
    """Return whether other programs have changed a copy since it was made."""
    return compute_content(view) != mark.content


def compute_content(view: StoredView) -> str:
    """Return a checksum of the parts of a view that a copy has. It does not depend on the mark of a copy."""
    description: Json = describe_view(limit_history(view.metadata))
    properties = {name: value for name, value in description["properties"].items() if name != MARK}
    text = json.dumps({**description, "properties": properties}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
