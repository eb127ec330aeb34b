"""List the warehouses that the identity can see on a server, in all projects."""

from collections.abc import Iterable
from dataclasses import dataclass

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import RefusedError
from lakewright.lakekeeper.api.management import projects, warehouses
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.preflight.places import Neighbour, read_place
from lakewright.names.types import prefixes_overlap


@dataclass(frozen=True)
class Surroundings:
    """Warehouses that the identity can see.

    `unseen` says which warehouses could not be listed; it is empty if all were listed.
    """

    projects: frozenset[str]
    neighbours: list[Neighbour]
    unseen: str

    def find_overlapping(self, bucket: OwnBucket, prefix: str, besides: Iterable[str] = ()) -> list[Neighbour]:
        """Return the warehouses whose location overlaps with a key prefix of a bucket.

        Args:
            bucket: The bucket.
            prefix: Key prefix.
            besides: Ids of warehouses to leave out.
        """
        ours = set(besides)
        return [
            neighbour
            for neighbour in self.neighbours
            if neighbour.id not in ours
            and neighbour.is_in_bucket(bucket.bucket, bucket.endpoint)
            and prefixes_overlap(neighbour.place.prefix, prefix)
        ]


def look_around(client: Client) -> Surroundings:
    """Return all warehouses that can be listed. Calls within a short time share the result."""
    return client.lists.get_cached((client, "surroundings"), lambda: _look_around(client))


def look_around_in_run(client: Client) -> Surroundings:
    """Return the result of the first `look_around` of this run, for callers that delete warehouses.

    The result can contain warehouses that were deleted in the meantime.
    """
    return client.lists.get_cached_in_run((client, "surroundings"), lambda: look_around(client))


def _look_around(client: Client) -> Surroundings:
    neighbours: list[Neighbour] = []
    refused: list[str] = []
    listed_projects = projects.list_all(client)
    for project_id, name in listed_projects.items():
        try:
            responses = warehouses.list_all(client, project_id)
        except RefusedError:
            refused.append(name)
            continue
        neighbours += [_neighbour(response, project_id) for response in responses]
    unseen: list[str] = []
    if refused:
        unseen.append(f"The warehouses of {', '.join(sorted(refused))} could not be listed.")
    if why := client.server().unlisted:
        unseen.append(f"More warehouses may exist: {why}.")
    return Surroundings(frozenset(listed_projects), neighbours, " ".join(unseen))


def _neighbour(response: warehouses.WarehouseResponse, project_id: str) -> Neighbour:
    profile = response["storage-profile"]
    return Neighbour(
        id=warehouses.read_id(response),
        name=str(response["name"]),
        project=project_id,
        active=response["status"] == "active",
        place=read_place(profile),
        flavor=str(profile.get("flavor") or ""),
        endpoint=str(profile.get("endpoint") or ""),
    )
