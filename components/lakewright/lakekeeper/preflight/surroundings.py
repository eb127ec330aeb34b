"""The warehouses around one: all that the identity can see on a server, of every project."""

from collections.abc import Iterable
from dataclasses import dataclass

from lakewright import key_prefixes
from lakewright.lakekeeper.api import listings, projects, warehouses
from lakewright.lakekeeper.api.client import Client
from lakewright.lakekeeper.api.errors import Refused
from lakewright.lakekeeper.preflight.places import Neighbour, place_of


@dataclass(frozen=True)
class Surroundings:
    """The warehouses that the identity can see, and what it cannot."""

    projects: frozenset[str]
    neighbours: list[Neighbour]
    unseen: str


def look_around(client: Client) -> Surroundings:
    """Return every warehouse that lists show; readers of about the same time share them."""
    return listings.shared((client, "surroundings"), lambda: _look_around(client))


def within(client: Client, bucket: str, prefix: str, besides: Iterable[str] = ()) -> list[Neighbour]:
    """Return the warehouses whose data lies under a key prefix of a bucket, or around it.

    Args:
        client: Client of the server.
        bucket: Name of an S3 bucket. Endpoints have many spellings of one, so they are not compared.
        prefix: Key prefix.
        besides: Ids of warehouses that do not count.
    """
    ours = set(besides)
    return [
        one
        for one in look_around(client).neighbours
        if one.id not in ours
        and (one.place.type, one.place.container) == ("s3", (bucket,))
        and key_prefixes.overlaps(one.place.prefix, prefix)
    ]


def _look_around(client: Client) -> Surroundings:
    found: list[Neighbour] = []
    refused: list[str] = []
    listed_projects = projects.all_of(client)
    for project_id, name in listed_projects.items():
        try:
            listed = warehouses.all_of(client, project_id)
        except Refused:
            refused.append(name)
            continue
        found += [_neighbour(one, project_id) for one in listed]
    unseen: list[str] = []
    if refused:
        unseen.append(f"The warehouses of {', '.join(sorted(refused))} could not be listed.")
    if why := client.server().unlisted:
        unseen.append(f"There may be others: {why}.")
    return Surroundings(frozenset(listed_projects), found, " ".join(unseen))


def _neighbour(found: warehouses.Found, project_id: str) -> Neighbour:
    place = place_of(found["storage-profile"])
    return Neighbour(warehouses.id_of(found), str(found["name"]), project_id, found["status"] == "active", place)
