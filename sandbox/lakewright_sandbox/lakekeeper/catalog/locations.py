"""Locations of namespaces, tables and views, and which locations are refused."""

from __future__ import annotations

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, TabularRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.storage.object_store import ObjectStore
from lakewright_sandbox.lakekeeper.storage.profiles import Profile

ALTERNATIVES = {"s3": ("s3a", "s3n"), "abfss": ("wasbs",), "gs": ()}
"""Schemes that a warehouse may allow in addition to its own."""


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
    """Return a location in normal form. Raises 400 `InvalidLocation` if it is not below the warehouse's location."""
    scheme, _, path = location.strip().rstrip("/").partition("://")
    warehouse_scheme, _, base = profile.base_location.partition("://")
    allowed = scheme == warehouse_scheme or (
        scheme in ALTERNATIVES[warehouse_scheme] and bool(profile.allow_alternative_protocols)
    )
    if not allowed or not f"{path}/".startswith(f"{base}/") or ".." in path.split("/") or path == base:
        message = (
            f"Provided location {location} is not a valid sublocation of the storage profile {profile.base_location}."
        )
        raise ApiError(400, "InvalidLocation", message)
    return f"{scheme}://{path}"


def check_empty(objects: ObjectStore, location: str) -> None:
    """Raise 400 `InvalidLocation` if the location of a new table or view has files."""
    if not objects.is_empty(location):
        reason = "Unexpected files in location, tabular locations have to be empty"
        raise ApiError(400, "InvalidLocation", f"Invalid location `{location}`: {reason}")


def check_location_free(session: Session, warehouse_id: str, tabular_id: str, location: str) -> None:
    """Raise 409 if a tabular with another id, also a soft-deleted one, is at, above or below the location."""
    parts = location.split("/")
    above = ["/".join(parts[:end]) for end in range(3, len(parts) + 1)]
    query = select(TabularRow.id).where(
        TabularRow.warehouse_id == warehouse_id,
        TabularRow.id != tabular_id,
        TabularRow.metadata_location.is_not(None),
        or_(TabularRow.location.in_(above), TabularRow.location.startswith(f"{location}/", autoescape=True)),
    )
    if session.scalars(query.limit(1)).first():
        message = f"Location is already taken by another table or view: {location}"
        raise ApiError(409, "LocationAlreadyTaken", message)


def _render(template: str, name: str, row_id: str) -> str:
    return template.replace("{uuid}", row_id).replace("{name}", name)
