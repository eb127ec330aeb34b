"""One view of a standby: copy its last changes, or promote it.

A view has no files: the standby gets a view with the same history, and the mark among its properties. A changed copy is
a new view, which replaces the earlier copy when it is complete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from pyiceberg.typedef import Identifier

from lakewright_spark.errors import StandbyError
from lakewright_spark.migration.endpoint import Endpoint, rename_copying, rename_moved
from lakewright_spark.migration.view_catalog import StoredView, ViewCatalog
from lakewright_spark.migration.view_history import Json, describe_view, limit_history
from lakewright_spark.standby.mark import MARK, StandbyMark, read_mark
from lakewright_spark.standby.tables import UNCHANGED, CopyResult


@dataclass(frozen=True)
class StandbyView:
    """A view in the source, and its copy in the standby."""

    identifier: Identifier
    source_name: str
    """The source, as marks name it."""
    source: Endpoint | None
    """None: the source is lost."""
    standby: Endpoint
    check_claim: Callable[[], None] = lambda: None
    """Raises LeaseLostError if another process may change the standby."""

    def __str__(self) -> str:
        """Return the text form."""
        return f"view {self.name}"

    @property
    def name(self) -> str:
        """Name within the warehouse."""
        return ".".join(self.identifier)

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
        if mark := self._find_promotion():
            return mark
        source, moved = ViewCatalog(self._require_source()), rename_moved(self.identifier)
        view = self.find_in_source()
        if view is not None:
            self._copy_state(view, now)  # before the source's users lose the view
            source.rename(self.identifier, moved)
        try:
            self._copy_state(self._require(source.find(moved)), now)
            return self._release(now)
        except BaseException:
            with suppress(Exception):
                if view is not None and self._find_promotion() is None:
                    source.rename(moved, self.identifier)
            raise

    def promote_last_copy(self, now: datetime) -> StandbyMark:
        """Let the standby have users, without the source, and return the view's mark."""
        return self._find_promotion() or self._release(now)

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
            mark = read_mark(waiting.metadata.get("properties") or {}) if waiting else None
            is_complete = waiting is not None and mark is not None and mark.content == compute_content(waiting)
            return (waiting, mark) if waiting and mark and is_complete and mark.source == self.source_name else None
        mark = read_mark(view.metadata.get("properties") or {})
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
        if copy is not None:
            self._check_unwritten(*copy)
            if copy[1].content == content:
                self._finish_killed_copy()
                return CopyResult(f"view, {UNCHANGED}", copy[1].copied_at)
        mark = StandbyMark(self.source_name, view.location, now, {}, content=content)
        properties: dict[str, str] = view.metadata.get("properties") or {}
        metadata: Json = {**limit_history(view.metadata), "properties": {**properties, **mark.to_property()}}
        views = ViewCatalog(self.standby)
        self.check_claim()
        new_copy = views.start_copy(metadata, self.identifier)
        expected, actual = describe_view(metadata), describe_view(new_copy.metadata)
        if parts := [part for part in expected if actual[part] != expected[part]]:
            views.drop(rename_copying(self.identifier))
            raise StandbyError(f"{self}: {self.standby} changed the view's {' and '.join(parts)}")
        self.check_claim()
        if views.find(self.identifier) is not None:
            views.drop(self.identifier)
        views.finish_copy(self.identifier)
        return CopyResult(f"view, {len(metadata['versions'])} versions", now)

    def _finish_killed_copy(self) -> None:
        """Give a complete copy its name, if a run was killed before it did so."""
        views = ViewCatalog(self.standby)
        if views.find(self.identifier) is None:
            views.finish_copy(self.identifier)

    def _release(self, now: datetime) -> StandbyMark:
        mark = self.require_copy()[1]
        self._finish_killed_copy()
        promoted = replace(mark, promoted_at=now)
        ViewCatalog(self.standby).set_properties(self.identifier, promoted.to_property())
        return promoted

    def _find_promotion(self) -> StandbyMark | None:
        """Return the mark of a view that was promoted."""
        copy = self.find_copy()
        return copy[1] if copy and copy[1].promoted_at else None

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
                f"{self}: expected the view in {self.source_name}, found none. Use --source-lost to promote its copy"
            )
        return view

    def _require_source(self) -> Endpoint:
        if self.source is None:
            raise StandbyError(f"{self}: expected {self.source_name}, which was given up as lost")
        return self.source


def is_written(view: StoredView, mark: StandbyMark) -> bool:
    """Return whether other programs have changed a copy since it was made."""
    return compute_content(view) != mark.content


def compute_content(view: StoredView) -> str:
    """Return a checksum of the parts of a view that a copy has. It does not depend on the mark of a copy."""
    description: Json = describe_view(limit_history(view.metadata))
    properties = {name: value for name, value in description["properties"].items() if name != MARK}
    text = json.dumps({**description, "properties": properties}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
