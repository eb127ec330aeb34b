"""What a tenant had, beside what it declares: who is who after a rename, and what `retain` left behind.

Pure functions. A warehouse's `origin` is its first name. Its default key prefix and its role are named by that, so
that a rename moves no file.
"""

from collections.abc import Sequence

from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.inputs import Declared
from lakewright.names import key_prefixes
from lakewright.names.types import Deletion


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
    """Data that may be left of a warehouse that was taken out of the spec, or moved."""

    name: str
    """Name of the warehouse."""
    origin: str
    """Its first name."""
    bucket: str
    key_prefix: str
    deletion: Deletion = "retain"
    """`retain` keeps its bucket. `protect` only keeps its files from the purge of another warehouse."""
    is_declared: bool | None = None
    """Whether the spec has had the warehouse again, now without `adopt`: then its own `deletion` counts."""


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


def rename_conflicts(declared: Warehouses, before: Warehouses) -> list[tuple[str, str]]:
    """Return each declared name and its `renamed_from` where both are warehouses of before, which cannot be one."""
    renamed = [(name, one.renamed_from) for name, one in declared.items() if name in before]
    return [(name, earlier) for name, earlier in renamed if earlier in before and earlier not in declared]


def unnamed_renames(
    tenant: str, declared: Warehouses, before: Warehouses, kept: list[KeptData]
) -> list[tuple[str, str]]:
    """Return each new name and the leaving warehouse whose first name or place it would take without `renamed_from`."""
    named = identified(tenant, declared, before, kept)
    renamed = {one.renamed_from for one in declared.values()}
    leaving = {name: one for name, one in before.items() if name not in declared and name not in renamed}
    return [
        (new, old)
        for new, one in named.items()
        if new not in before and declared[new].renamed_from not in before
        for old, earlier in leaving.items()
        if (one.origin or new).casefold() == origin_of(old, earlier).casefold() or share_place(one, earlier)
    ]


def left_behind(
    declared: Warehouses,
    before: Warehouses,
    kept: list[KeptData],
    dropped: Sequence[str] = (),
    adopting: Sequence[str] = (),
) -> list[KeptData]:
    """Return what `retain` and `protect` may have left: the entries of before, and of warehouses that leave now.

    What was retained is remembered also when the spec has the warehouse again, since taking it over may fail. A
    refresh forgets what is gone.

    Args:
        declared: What the spec has, with origins and key prefixes.
        before: What was recorded before.
        kept: What earlier warehouses left.
        dropped: Names of warehouses whose data needs no protection any more. What was retained stays.
        adopting: Names of warehouses that the spec takes over.
    """
    places = {(one.bucket, one.key_prefix, one.origin): name for name, one in declared.items()}
    leaving = [
        KeptData(
            name=name,
            origin=origin_of(name, one),
            bucket=one.bucket,
            key_prefix=one.key_prefix or "",
            deletion=one.deletion,
        )
        for name, one in before.items()
        if one.deletion != "purge"
    ]
    retained = [one for one in kept if one.deletion == "retain"]
    every = {(one.bucket, one.key_prefix): one for one in [*kept, *leaving, *retained]}
    left: list[KeptData] = []
    for one in every.values():
        again = places.get((one.bucket, one.key_prefix, one.origin))
        if again is None and not (one.deletion == "protect" and one.name in dropped):
            left.append(one.model_copy(update={"is_declared": None}))
        elif again is not None and one in retained:
            # The first `up` that declares it may be refused.
            is_taken_over = again in before and again not in adopting
            left.append(one.model_copy(update={"is_declared": is_taken_over or None}))
    return sorted(left, key=lambda one: (one.bucket, one.key_prefix))


def removed(declared: Warehouses, before: Warehouses) -> dict[str, RecordedWarehouse]:
    """Return the warehouses of before that the spec has no more, under no name."""
    origins = {one.origin for one in declared.values()}
    return {name: one for name, one in before.items() if origin_of(name, one) not in origins}


def added(declared: Warehouses, before: Warehouses) -> list[str]:
    """Return the names of warehouses that are new, and no earlier one renamed."""
    origins = {origin_of(name, one) for name, one in before.items()}
    return [name for name, one in declared.items() if one.origin not in origins]


def threatened(
    declared: Warehouses, before: Warehouses, kept: list[KeptData], dropped: Sequence[str]
) -> list[tuple[str, KeptData]]:
    """Return the warehouses that come to be purged at a place where a protected one was, and what it may have left.

    Args:
        declared: What the spec has, with origins and key prefixes.
        before: What was recorded before.
        kept: What earlier warehouses left, and what those that leave now may leave.
        dropped: Names of warehouses whose data needs no protection any more.
    """
    return [
        (name, left)
        for name, one in declared.items()
        if one.deletion == "purge" and not _was_purged_there(one, before)
        for left in kept
        if left.deletion == "protect" and left.name not in dropped and one.bucket == left.bucket
        if key_prefixes.overlaps(one.key_prefix or "", left.key_prefix)
    ]


def share_place(one: RecordedWarehouse, other: RecordedWarehouse) -> bool:
    """Whether two warehouses are in one bucket, and one within the other."""
    return one.bucket == other.bucket and key_prefixes.overlaps(one.key_prefix or "", other.key_prefix or "")


def origin_of(name: str, recorded: RecordedWarehouse) -> str:
    """Return a warehouse's first name."""
    return recorded.origin or name


def _was_purged_there(one: RecordedWarehouse, before: Warehouses) -> bool:
    """Whether the warehouse was at its place with `purge` already."""
    return any(
        (one.origin, one.bucket, one.key_prefix, one.deletion)
        == (earlier.origin, earlier.bucket, earlier.key_prefix, earlier.deletion)
        for earlier in before.values()
    )


def _free(name: str, taken: set[str]) -> str:
    """A name that is no other's origin: where an earlier warehouse of this name lives on under another."""
    used = {one.casefold() for one in taken}
    candidates = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(one for one in candidates if one.casefold() not in used)
