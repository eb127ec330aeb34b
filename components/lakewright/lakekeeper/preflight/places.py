"""Which warehouses are in the way of another: by name, and by where their data is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lakewright.lakekeeper.preflight.report import Check
from lakewright.names import key_prefixes

Container = tuple[str, ...]

_CONTAINER = {"s3": ("bucket",), "gcs": ("bucket",), "adls": ("account-name", "filesystem")}
_SCHEME = {"s3": "s3", "gcs": "gs", "adls": "abfss"}


@dataclass(frozen=True)
class Place:
    """Where a warehouse's data is: bucket and prefix alone. Endpoints and regions have many spellings of one bucket."""

    type: str
    container: Container
    prefix: str

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"{_SCHEME.get(self.type, self.type)}://{'/'.join((*self.container, self.prefix))}".rstrip("/")

    def overlaps(self, other: "Place") -> bool:
        """Whether data of one could lie within the other."""
        same_container = (self.type, self.container) == (other.type, other.container)
        return same_container and key_prefixes.overlaps(self.prefix, other.prefix)


def place_of(profile: dict[str, Any]) -> Place:
    """The place of a storage profile as it is on the wire."""
    kind = str(profile.get("type"))
    container = tuple(str(profile.get(key)) for key in _CONTAINER.get(kind, ("bucket",)))
    return Place(kind, container, str(profile.get("key-prefix") or "").strip("/"))


@dataclass(frozen=True)
class Neighbour:
    """A warehouse that exists."""

    id: str
    name: str
    project: str
    active: bool
    place: Place
    flavor: str = ""
    endpoint: str = ""
    """Of an S3 store, as the profile has them."""

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
        from lakewright.project_files.servers import same_url  # noqa: PLC0415 - slow to load

        return bool(self.endpoint) and same_url(self.endpoint, endpoint)

    @property
    def _is_on_aws(self) -> bool:
        host = urlsplit(self.endpoint).hostname or ""
        return self.flavor == "aws" or not self.endpoint or host.endswith((".amazonaws.com", ".amazonaws.com.cn"))

    def __str__(self) -> str:
        """Return the text for messages."""
        state = "" if self.active else "inactive "
        return f"{state}warehouse `{self.name}` ({self.id}) of project {self.project} at {self.place}"


def overlap(place: Place, project_id: str, neighbours: Iterable[Neighbour], unseen: str) -> Check:
    """Whether the place is free. `unseen` says what could not be looked at, if anything."""
    blocking = [one for one in neighbours if one.place.overlaps(place)]
    if not blocking:
        return Check(name="overlap", status="passed", reason=f"nothing else is at {place}. {unseen}".rstrip())
    return Check(name="overlap", status="failed", reason=" ".join(_blocked(place, project_id, one) for one in blocking))


def _blocked(place: Place, project_id: str, by: Neighbour) -> str:
    reason = f"{place} overlaps with {by}."
    if by.project != project_id:
        reason += " The server compares within a project only and would let both write there."
    if not by.place.prefix:
        return f"{reason} It holds the whole bucket, and its prefix cannot be changed: use another bucket."
    if not place.prefix:
        return f"{reason} Declare a key prefix beside it: without one this warehouse needs the whole bucket."
    return f"{reason} Choose a key prefix beside it."


def name_free(name: str, project_id: str, neighbours: Iterable[Neighbour], unseen: str) -> Check:
    """Report whether the name is free in the project, in any case. `unseen` says what no list shows, if anything."""
    taken = [one for one in neighbours if one.project == project_id and one.name.casefold() == name.casefold()]
    if not taken:
        return Check(
            name="name", status="passed", reason=f"`{name}` is free in project {project_id}. {unseen}".rstrip(". ")
        )
    way_out = "Choose another name, or take it over with `adopt=True` where it is at the declared place."
    return Check(name="name", status="failed", reason=f"`{name}` is the name of {taken[0]}. {way_out}")
