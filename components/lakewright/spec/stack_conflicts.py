"""Tenants and places that two stacks declare. Only one stack may own each. Pure functions over specs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lakewright.names.types import prefixes_overlap
from lakewright.project_files.servers import AWS, Servers, ServiceAddress
from lakewright.spec.standard_roles import list_role_names
from lakewright.spec.tenant import TenantSpec


@dataclass(frozen=True)
class StorageLocation:
    """A prefix of a bucket that holds a warehouse, or a whole bucket that a stack makes."""

    store: ServiceAddress
    bucket: str
    prefix: str = ""
    path: str = ""
    """Path in the spec."""
    scheme: str = "s3"

    def overlaps(self, other: StorageLocation) -> bool:
        """Return whether objects of one place can be in the other."""
        same_bucket = (self.store, self.bucket) == (other.store, other.bucket)
        return same_bucket and prefixes_overlap(self.prefix, other.prefix)

    def __str__(self) -> str:
        """Return the place as a URL, with its endpoint unless it is AWS."""
        at = "" if self.store == AWS else f" at {self.store}"
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/") + at


def list_locations(spec: TenantSpec, servers: Servers) -> list[StorageLocation]:
    """Return the buckets that a stack makes, and the prefixes of its warehouses on other buckets."""
    locations = [
        StorageLocation(servers.store(storage.own_endpoint), storage.bucket, path=f"storage.{name}.bucket")
        for name, storage in spec.storage.items()
        if storage.makes_bucket
    ]
    for index, warehouse in enumerate(spec.warehouses):
        storage = spec.storage[spec.find_storage_name(warehouse)]
        if not storage.makes_bucket:
            store = servers.store(storage.own_endpoint)
            prefix = spec.find_key_prefix(warehouse).strip("/")
            path = f"warehouses.{index}.key_prefix"
            locations.append(StorageLocation(store, storage.bucket, prefix, path, storage.url_scheme))
    return locations


def list_clients(spec: TenantSpec) -> dict[str, str]:
    """Return the subjects of the OAuth2 clients that a spec names, by path."""
    owners = {f"computing_units.{index}.": unit.identity for index, unit in enumerate(spec.computing_units)}
    owners |= {"": spec.identity, "maintenance.": spec.maintenance.identity if spec.maintenance else None}
    return {
        f"{prefix}identity.subject": identity.subject
        for prefix, identity in owners.items()
        if identity and identity.subject
    }


def _find_shared_clients(spec: TenantSpec, other: TenantSpec, name: str) -> Iterator[tuple[str, str]]:
    other_clients = set(list_clients(other).values())
    for path, subject in list_clients(spec).items():
        if subject in other_clients:
            yield (
                path,
                f"expected a client that no other tenant uses; {name} names subject `{subject}` too, so the catalog"
                " could not tell the tenants apart",
            )


def _find_shared_warehouses(spec: TenantSpec, other: TenantSpec, name: str) -> Iterator[tuple[str, str]]:
    """Yield each warehouse of a spec whose name another tenant in the same project uses. Lakekeeper ignores case."""
    other_names = {warehouse.casefold() for warehouse in other.warehouse_names}
    for index, warehouse in enumerate(spec.warehouse_names):
        if warehouse.casefold() in other_names:
            yield (
                f"warehouses.{index}.name",
                f"expected a name that no other tenant in the shared project {spec.project_id} uses; {name} declares"
                f" warehouse `{warehouse}` too",
            )


def _find_shared_roles(spec: TenantSpec, other: TenantSpec, name: str) -> Iterator[tuple[str, str]]:
    """Yield the role names of a spec that another tenant of the shared project has, such as `acme` + `eu-sales-owner`.

    Lakekeeper ignores case.
    """
    other_roles = {other.qualify_role(role).casefold() for role in list_role_names(other)}
    roles = [spec.qualify_role(role) for role in list_role_names(spec)]
    if shared := [role for role in roles if role.casefold() in other_roles]:
        yield (
            "name",
            f"expected roles that no other tenant in the shared project {spec.project_id} has; {name} declares role"
            f" `{shared[0]}`, too. Rename the tenant, the warehouse or the role",
        )


def group_possible_conflicts(specs: Mapping[str, TenantSpec]) -> dict[str, dict[str, TenantSpec]]:
    """Return for each spec the specs that it may have a conflict with: of one name, project, bucket or client.

    A comparison of each spec with all others would take minutes for a thousand stacks.

    Args:
        specs: Specs by the name of the stack or of its file.
    """
    by_key: dict[tuple[str, str], list[str]] = {}
    for name, spec in specs.items():
        for key in _list_conflict_keys(spec):
            by_key.setdefault(key, []).append(name)
    return {
        name: {
            other: specs[other] for key in sorted(_list_conflict_keys(spec)) for other in by_key[key] if other != name
        }
        for name, spec in specs.items()
    }


def _list_conflict_keys(spec: TenantSpec) -> set[tuple[str, str]]:
    buckets = {("bucket", storage.bucket) for storage in spec.storage.values()}
    clients = {("client", subject) for subject in list_clients(spec).values()}
    return {("name", spec.name), ("project", spec.project_id)} | buckets | clients


def find_stack_conflicts(
    spec: TenantSpec, other_specs: Mapping[str, TenantSpec], servers: Callable[[str], Servers]
) -> Iterator[tuple[str, str]]:
    """Find tenants and places that other stacks on the same servers declare, too.

    Args:
        spec: A tenant.
        other_specs: Specs of other stacks, by the name of the stack or of its file.
        servers: Returns the servers of an environment by its name.

    Yields:
        Path in `spec`, and the problem.
    """
    own_servers = servers(spec.environment)
    for name, other in other_specs.items():
        other_servers = servers(other.environment)
        is_same_project = other.project_id == spec.project_id
        do_both_share = spec.shares_project and other.shares_project
        is_same = other.name == spec.name or (is_same_project and not do_both_share)
        if is_same and own_servers.lakekeeper == other_servers.lakekeeper:
            server_hint = (
                ""
                if other.environment == spec.environment
                else f"; its environment `{other.environment}` has the same Lakekeeper, {other_servers.lakekeeper}"
            )
            path, kind, shared = (
                ("name", "tenant", spec.name) if other.name == spec.name else ("project.id", "project", spec.project_id)
            )
            expected = f"expected a {kind} that no other stack declares"
            yield path, f"{expected}; {name} declares {kind} `{shared}` too{server_hint}"
            continue
        if own_servers.lakekeeper == other_servers.lakekeeper:
            yield from _find_shared_clients(spec, other, name)
            if is_same_project:
                yield from _find_shared_warehouses(spec, other, name)
                yield from _find_shared_roles(spec, other, name)
        for location in list_locations(spec, own_servers):
            if conflict := next(
                (candidate for candidate in list_locations(other, other_servers) if candidate.overlaps(location)), None
            ):
                yield location.path, f"expected a place that no other stack uses; {name} declares {conflict} too"
