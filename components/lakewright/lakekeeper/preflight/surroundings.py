"""The warehouses around one: all that the identity can see on a server, of every project."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import RefusedError
from lakewright.lakekeeper.api.management import projects, warehouses
from lakewright.lakekeeper.preflight.places import Neighbour, place_of
from lakewright.names import key_prefixes


class Bucket(Protocol):
    """An S3 bucket, and the address of its store: None for AWS."""

    @property
    def bucket(self) -> str:
        """Name of the bucket."""
        ...

    @property
    def endpoint(self) -> str | None:
        """Address of the store; None for AWS."""
        ...


@dataclass(frozen=True)
class Surroundings:
    """The warehouses that the identity can see, and what it cannot."""

    projects: frozenset[str]
    neighbours: list[Neighbour]
    unseen: str

    def within(self, own: Bucket, prefix: str, besides: Iterable[str] = ()) -> list[Neighbour]:
        """Return the warehouses whose data lies under a key prefix of a bucket, or around it.

        Args:
            own: The bucket.
            prefix: Key prefix.
            besides: Ids of warehouses that do not count.
        """
        ours = set(besides)
        return [
            one
            for one in self.neighbours
            if one.id not in ours
            and one.is_in_bucket(own.bucket, own.endpoint)
            and key_prefixes.overlaps(one.place.prefix, prefix)
        ]


def look_around(client: Client) -> Surroundings:
    """Return every warehouse that lists show; readers of about the same time share them."""
    return client.lists.get_cached((client, "surroundings"), lambda: _look_around(client))


def look_around_in_run(client: Client) -> Surroundings:
    """As `look_around`, for readers that write in between: a run that deletes warehouses looks around once.

    A warehouse that it names may be gone since.
    """
    return client.lists.get_cached_in_run((client, "surroundings"), lambda: look_around(client))


def _look_around(client: Client) -> Surroundings:
    found: list[Neighbour] = []
    refused: list[str] = []
    listed_projects = projects.list_all(client)
    for project_id, name in listed_projects.items():
        try:
            listed = warehouses.list_all(client, project_id)
        except RefusedError:
            refused.append(name)
            continue
        found += [_neighbour(one, project_id) for one in listed]
    unseen: list[str] = []
    if refused:
        unseen.append(f"The warehouses of {', '.join(sorted(refused))} could not be listed.")
    if why := client.server().unlisted:
        unseen.append(f"There may be others: {why}.")
    return Surroundings(frozenset(listed_projects), found, " ".join(unseen))


def _neighbour(found: warehouses.WarehouseResponse, project_id: str) -> Neighbour:
    profile = found["storage-profile"]
    return Neighbour(
        id=warehouses.id_of(found),
        name=str(found["name"]),
        project=project_id,
        active=found["status"] == "active",
        place=place_of(profile),
        flavor=str(profile.get("flavor") or ""),
        endpoint=str(profile.get("endpoint") or ""),
    )
