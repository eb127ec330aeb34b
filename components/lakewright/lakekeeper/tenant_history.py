"""What a tenant had, beside what it declares: who is who after a rename, and what `retain` left behind.

Pure functions. A warehouse's `origin` is its first name. Its default key prefix and its role are named by that, so
that a rename moves no file.
"""

from lakewright.lakekeeper.declared import Declared
from lakewright.lakekeeper.own_bucket import OwnBucket
from lakewright.types import Deletion


class RecordedWarehouse(Declared):
    """A warehouse of the tenant, as far as its data is concerned."""

    bucket: str
    """Bucket that its data is in."""
    deletion: Deletion
    """What becomes of its data when it leaves the spec."""
    renamed_from: str | None = None
    """The name that it had before."""
    key_prefix: str | None = None
    """Prefix of its keys in the bucket. Left out: TENANT/ORIGIN."""
    origin: str | None = None
    """Its first name. Worked out from what was recorded before."""


class RecordedBucket(OwnBucket):
    """A bucket that the stack makes."""

    has_own_key: bool = False
    """Whether the stack made the key that encrypts it."""


class KeptData(Declared):
    """Data that `deletion: retain` left when its warehouse was taken out of the spec."""

    name: str
    """Name of the warehouse."""
    origin: str
    """Its first name."""
    bucket: str
    key_prefix: str


Warehouses = dict[str, RecordedWarehouse]


def identified(tenant: str, declared: Warehouses, before: Warehouses, kept: list[KeptData]) -> Warehouses:
    """Return the declared warehouses, each with its origin and its key prefix.

    Args:
        tenant: Name of the tenant.
        declared: What the spec has, by name.
        before: What was recorded before, by name.
        kept: What earlier warehouses left.
    """
    found: dict[str, str] = {}
    left = {one.name: one.origin for one in kept}
    for name, one in declared.items():
        if name in before:
            found[name] = origin_of(name, before[name])
        elif one.renamed_from:
            earlier = before.get(one.renamed_from)
            found[name] = origin_of(one.renamed_from, earlier) if earlier else one.renamed_from
        elif name in left:
            found[name] = left[name]
    taken = {*found.values(), *left.values()}
    for name in declared:
        if name not in found:
            found[name] = _free(name, taken)
            taken.add(found[name])
    return {
        name: one.model_copy(
            update={
                "origin": found[name],
                "key_prefix": one.key_prefix or f"{tenant}/{found[name]}",
                "renamed_from": None,
            }
        )
        for name, one in declared.items()
    }


def left_behind(declared: Warehouses, before: Warehouses, kept: list[KeptData]) -> list[KeptData]:
    """Return what `retain` has left: the entries of before, and of warehouses that leave now.

    Args:
        declared: What the spec has, with origins and key prefixes.
        before: What was recorded before.
        kept: What earlier warehouses left.
    """
    places = {(one.bucket, one.key_prefix, one.origin) for one in declared.values()}
    leaving = [
        KeptData(name=name, origin=origin_of(name, one), bucket=one.bucket, key_prefix=one.key_prefix or "")
        for name, one in before.items()
        if one.deletion == "retain"
    ]
    every = {(one.bucket, one.key_prefix): one for one in [*kept, *leaving]}
    left = [one for one in every.values() if (one.bucket, one.key_prefix, one.origin) not in places]
    return sorted(left, key=lambda one: (one.bucket, one.key_prefix))


def removed(declared: Warehouses, before: Warehouses) -> dict[str, RecordedWarehouse]:
    """Return the warehouses of before that the spec has no more, under no name."""
    origins = {one.origin for one in declared.values()}
    return {name: one for name, one in before.items() if origin_of(name, one) not in origins}


def added(declared: Warehouses, before: Warehouses) -> list[str]:
    """Return the names of warehouses that are new, and no earlier one renamed."""
    origins = {origin_of(name, one) for name, one in before.items()}
    return [name for name, one in declared.items() if one.origin not in origins]


def overlaps(prefix: str, other: str) -> bool:
    """Whether one key prefix is within the other, or both are one."""
    return f"{prefix}/".startswith(f"{other}/") or f"{other}/".startswith(f"{prefix}/")


def origin_of(name: str, recorded: RecordedWarehouse) -> str:
    """Return a warehouse's first name."""
    return recorded.origin or name


def _free(name: str, taken: set[str]) -> str:
    """A name that is no other's origin: where an earlier warehouse of this name lives on under another."""
    used = {one.casefold() for one in taken}
    candidates = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(one for one in candidates if one.casefold() not in used)
