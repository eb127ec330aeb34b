"""Locations of namespaces, tables and views, and which locations are refused."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

from sqlalchemy import and_, not_, or_, select
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, TabularRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.storage.object_store import ObjectStore
from lakewright_sandbox.lakekeeper.storage.profiles import Profile

ALTERNATIVES = {"s3": ("s3a", "s3n"), "abfss": ("wasbs",), "gs": ()}
"""Schemes that a warehouse may allow in addition to its own."""
_WILDCARDS = {"_": ".", "%": ".*"}
"""Regular expressions of the wildcards of `LIKE`."""


def namespace_location(profile: Profile, parent: NamespaceRow | None, name: str, row_id: str, *, flat: bool) -> str:
    """Return the warehouse's location unless the storage layout gives namespaces their own directories.

    Old servers do so without a layout (not `flat`).
    """
    layout = profile.storage_layout
    if layout is None and not flat:
        return f"{profile.base_location}/{row_id}"
    above = parent.properties["location"].rstrip("/") if parent else profile.base_location
    if layout is None or layout.type != "full-hierarchy" or layout.namespace is None:
        return profile.base_location
    return f"{above}/{_render(layout.namespace, name, row_id)}"


def tabular_location(profile: Profile, namespace: NamespaceRow, name: str, row_id: str) -> str:
    """Return the location of a new table or view."""
    layout = profile.storage_layout
    template = (layout.tabular if layout else None) or "{uuid}"
    return f"{namespace.properties['location'].rstrip('/')}/{_render(template, name, row_id)}"


def normalize_location(profile: Profile, location: str) -> str:
    """Return a location in normal form.

    Raises:
        ApiError: 400 `InvalidTableLocation` for a malformed location, `InvalidLocation` for a location that is not
            below the warehouse's.
    """
    check_form(location, "InvalidTableLocation")
    scheme, _, path = location.rstrip("/").partition("://")
    warehouse_scheme, _, base = profile.base_location.partition("://")
    allowed = scheme == warehouse_scheme or (
        scheme in ALTERNATIVES[warehouse_scheme] and bool(profile.allow_alternative_protocols)
    )
    if not allowed or not path.startswith(f"{base}/"):
        message = (
            f"Provided location {location} is not a valid sublocation of the storage profile {profile.base_location}."
        )
        raise ApiError(400, "InvalidLocation", message)
    return f"{scheme}://{path}"


def check_form(location: str, error_type: str) -> None:
    """Raise 400 for a location that URL parsers read in different ways. Source: `Location::from_str` of Lakekeeper."""
    if reason := _find_malformed_part(location):
        message = f"Invalid location: Failed to parse '{location}' as Location: {reason}"
        raise ApiError(400, error_type, message)


def _find_malformed_part(location: str) -> str | None:
    """Return why a location is malformed, None if it is not."""
    for character in location:
        if unicodedata.category(character) in {"Cc", "Cf"}:
            return f"control or invisible character (U+{ord(character):04X}) in input"
    scheme, separator, authority_and_path = location.partition("://")
    if not separator or "://" in authority_and_path:
        return "Expected exactly one :// in the Location"
    authority, _, path = authority_and_path.partition("/")
    if not scheme or not authority:
        return "host is empty"
    if "#" in location or "?" in location:
        return "URL has a fragment (#) or a query (?)"
    segments = path.rstrip("/").split("/") if path.strip("/") else []
    if any(segment in {"", ".", ".."} for segment in segments):
        return f"empty path segment, `.` or `..` in {authority_and_path!r}"
    return None


def check_empty(objects: ObjectStore, location: str) -> None:
    """Raise 400 `InvalidLocation` if the location of a new table or view has files."""
    if not objects.is_empty(location):
        reason = "Unexpected files in location, tabular locations have to be empty"
        raise ApiError(400, "InvalidLocation", f"Invalid location `{location}`: {reason}")


def check_location_free(session: Session, row: TabularRow, location: str) -> None:
    """Raise 409 if another tabular, also a staged or soft-deleted one, is at, above or below the location.

    A new table replaces the staged table of its name. Schemes do not count, and `_` and `%` are wildcards, since
    `ensure_location_available` of Lakekeeper does not escape them in its `LIKE`.
    """
    scheme, _, path = location.partition("://")
    parts = path.split("/")
    above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    schemes = next((first, *more) for first, more in ALTERNATIVES.items() if scheme in (first, *more))
    is_replaced = and_(
        TabularRow.namespace_id == row.namespace_id,
        TabularRow.name_key == row.name_key,
        TabularRow.metadata_location.is_(None),
    )
    query = select(TabularRow.location).where(
        TabularRow.warehouse_id == row.warehouse_id,
        TabularRow.id != row.id,
        not_(is_replaced),
        or_(
            TabularRow.location.in_([f"{alternative}://{part}" for alternative in schemes for part in above]),
            *(TabularRow.location.like(f"{alternative}://{path}%") for alternative in schemes),
        ),
    )
    below = re.compile("".join(_WILDCARDS.get(character, re.escape(character)) for character in path) + "/.*")
    for taken in session.scalars(query):
        taken_path = taken.partition("://")[2]
        is_below = len(taken_path) > len(path) and below.fullmatch(f"{taken_path}/")  # SQLite's LIKE ignores case
        if taken_path in above or is_below:
            message = f"Location is already taken by another table or view: {location}"
            raise ApiError(409, "LocationAlreadyTaken", message)


def _render(template: str, name: str, row_id: str) -> str:
    return template.replace("{uuid}", row_id).replace("{name}", quote(name, safe=""))
