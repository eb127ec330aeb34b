"""Check whether the name or the location of a warehouse conflicts with existing warehouses."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lakewright.lakekeeper.preflight.report import Check
from lakewright.names.types import prefixes_overlap

Container = tuple[str, ...]

_CONTAINER = {"s3": ("bucket",), "gcs": ("bucket",), "adls": ("account-name", "filesystem")}
_SCHEME = {"s3": "s3", "gcs": "gs", "adls": "abfss"}


@dataclass(frozen=True)
class Place:
    """Location of a warehouse's data: bucket and prefix.

    Endpoint and region are left out, because they can have several spellings for the same bucket.
    """

    type: str
    container: Container
    prefix: str

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"{_SCHEME.get(self.type, self.type)}://{'/'.join((*self.container, self.prefix))}".rstrip("/")

    def overlaps(self, other: "Place") -> bool:
        """Return whether one location contains the other."""
        same_container = (self.type, self.container) == (other.type, other.container)
        return same_container and prefixes_overlap(self.prefix, other.prefix)


def read_place(profile: dict[str, Any]) -> Place:
    """Return the location of a storage profile in its request or response form."""
    kind = str(profile.get("type"))
    container = tuple(str(profile.get(key)) for key in _CONTAINER.get(kind, ("bucket",)))
    return Place(kind, container, str(profile.get("key-prefix") or "").strip("/"))


@dataclass(frozen=True)
class Neighbour:
    """An existing warehouse."""

    id: str
    name: str
    project: str
    active: bool
    place: Place
    flavor: str = ""
    """Flavor of an S3 store, as in the profile."""
    endpoint: str = ""
    """Endpoint of an S3 store, as in the profile."""

    def is_in_bucket(self, bucket: str, endpoint: str | None) -> bool:
        """Return whether its data is in a bucket.

        Args:
            bucket: Name of an S3 bucket.
            endpoint: Address of the store; None for AWS, whose endpoints have many spellings.
        """
        if (self.place.type, self.place.container) != ("s3", (bucket,)):
            return False
        if endpoint is None:
            return self._is_on_aws
        from lakewright.project_files.servers import is_same_url  # noqa: PLC0415 - slow to load

        return bool(self.endpoint) and is_same_url(self.endpoint, endpoint)

    @property
    def _is_on_aws(self) -> bool:
        host = urlsplit(self.endpoint).hostname or ""
        return self.flavor == "aws" or not self.endpoint or host.endswith((".amazonaws.com", ".amazonaws.com.cn"))

    def __str__(self) -> str:
        """Return the text for messages."""
        state = "" if self.active else "inactive "
        return f"{state}warehouse `{self.name}` ({self.id}) of project {self.project} at {self.place}"


def overlap(location: Place, project_id: str, neighbours: Iterable[Neighbour], unseen: str) -> Check:
    """Report whether the location is free.

    Args:
        location: Location of the warehouse.
        project_id: Project of the warehouse.
        neighbours: Existing warehouses.
        unseen: Sentence on the warehouses that could not be listed; empty if there are none.
    """
    blocking = [neighbour for neighbour in neighbours if neighbour.place.overlaps(location)]
    if not blocking:
        return Check(name="overlap", status="passed", reason=f"no other warehouse uses {location}. {unseen}".rstrip())
    return Check(
        name="overlap",
        status="failed",
        reason=" ".join(_explain_overlap(location, project_id, neighbour) for neighbour in blocking),
    )


def _explain_overlap(location: Place, project_id: str, by: Neighbour) -> str:
    reason = f"{location} overlaps with {by}."
    if by.project != project_id:
        reason += " The server compares warehouses of one project only, and would let both write there."
    if not by.place.prefix:
        return f"{reason} It holds the whole bucket, and its prefix cannot be changed: use another bucket."
    if not location.prefix:
        return (
            f"{reason} Declare a key prefix that does not overlap: without a key prefix, this warehouse needs"
            " the whole bucket."
        )
    return f"{reason} Choose a key prefix that does not overlap."


def name_free(name: str, project_id: str, neighbours: Iterable[Neighbour], unseen: str) -> Check:
    """Report whether the name is free in the project, ignoring case.

    Args:
        name: Name of the warehouse.
        project_id: Project of the warehouse.
        neighbours: Existing warehouses.
        unseen: Sentence on the warehouses that could not be listed; empty if there are none.
    """
    taken = [
        neighbour
        for neighbour in neighbours
        if neighbour.project == project_id and neighbour.name.casefold() == name.casefold()
    ]
    if not taken:
        return Check(
            name="name", status="passed", reason=f"`{name}` is free in project {project_id}. {unseen}".rstrip(". ")
        )
    way_out = "Choose another name, or take the warehouse over with `adopt=True` if it is at the declared location."
    return Check(name="name", status="failed", reason=f"`{name}` is the name of {taken[0]}. {way_out}")
