"""Tenants and places that two stacks declare: only one stack may own each. Pure functions over specs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakewright.spec.storage import AwsStorage, S3Storage
from lakewright.spec.tenant import TenantSpec


@dataclass(frozen=True)
class Place:
    """A prefix of a bucket that holds a warehouse, or a whole bucket that a stack makes."""

    endpoint: str
    """Of a store that is not AWS; empty for AWS."""
    bucket: str
    prefix: str = ""
    path: str = ""
    """Where the spec declares it."""

    def overlaps(self, other: Place) -> bool:
        """Whether objects of one place can lie in the other."""
        if (self.endpoint, self.bucket) != (other.endpoint, other.bucket):
            return False
        one, another = f"{self.prefix}/".lstrip("/"), f"{other.prefix}/".lstrip("/")
        return one.startswith(another) or another.startswith(one)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/") + (f" at {self.endpoint}" if self.endpoint else "")


def places_of(spec: TenantSpec) -> list[Place]:
    """Return the buckets that a stack makes, and the prefixes of its warehouses on other buckets."""
    places = [
        Place("", storage.bucket, path=f"storage.{name}.bucket")
        for name, storage in spec.storage.items()
        if isinstance(storage, AwsStorage)
    ]
    for index, warehouse in enumerate(spec.warehouses):
        storage = spec.storage[spec.storage_of(warehouse)]
        if not isinstance(storage, AwsStorage):
            endpoint = storage.endpoint.rstrip("/") if isinstance(storage, S3Storage) else ""
            prefix = spec.prefix_of(warehouse).strip("/")
            places.append(Place(endpoint, storage.bucket, prefix, f"warehouses.{index}.key_prefix"))
    return places


def shared_with(spec: TenantSpec, others: Mapping[str, TenantSpec]) -> Iterator[tuple[str, str]]:
    """Find what other stacks of the same environment declare as well.

    Args:
        spec: A tenant.
        others: Specs of other stacks, by the name of the stack or of its file.

    Yields:
        Path in `spec`, and what is wrong with it.
    """
    for name, other in others.items():
        if other.environment != spec.environment:
            continue
        if other.name == spec.name:
            yield "name", f"expected a tenant that no other stack declares; {name} declares tenant `{spec.name}` too"
            continue
        for place in places_of(spec):
            if found := next((one for one in places_of(other) if one.overlaps(place)), None):
                yield place.path, f"expected a place that no other stack uses; {name} declares {found} too"
