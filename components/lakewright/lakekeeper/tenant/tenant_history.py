"""History of a tenant's warehouses: identity across renames, and data that `retain` kept. Pure functions.

The `origin` of a warehouse is its first name. Its default key prefix and its role contain the origin, so a rename
moves no files.
"""

from collections.abc import Sequence

from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.inputs import Declared
from lakewright.names.types import Deletion, prefixes_overlap


class RecordedWarehouse(Declared):
    """Properties of a tenant's warehouse that concern its data."""

    bucket: str
    """Bucket that its data is in."""
    account: str | None = None
    """Storage account of its container on Azure. None on other services, and in states of earlier versions."""
    deletion: Deletion
    """Effect on its data when it is removed from the spec."""
    renamed_from: str | None = None
    """Former name of the warehouse."""
    key_prefix: str | None = None
    """Prefix of its keys in the bucket. TENANT/ORIGIN if left out."""
    origin: str | None = None
    """Its first name. Computed from the earlier record."""
    namespaces: list[str] | None = None
    """Paths of its declared namespaces. None in states of earlier versions."""
    tables: dict[str, Deletion] | None = None
    """`deletion` of its declared tables, by NAMESPACE.TABLE with quotes where needed."""
    renamed_tables: list[str] | None = None
    """Former names of its tables."""
    is_adopted: bool | None = None
    """Whether the stack adopted it. Foreign objects may be under its key prefix. Computed from the earlier record."""
    role_path: str | None = None
    """IAM path of its role. None for roles of earlier versions, whose path is `/`, and without a role. Computed."""


class RecordedBucket(OwnBucket):
    """A bucket that the stack creates."""

    has_own_key: bool = False
    """Whether the stack created the key that encrypts it."""


class KeptData(Declared):
    """Data that may remain of a warehouse that was removed from the spec or moved."""

    name: str
    """Name of the warehouse."""
    origin: str
    """Its first name."""
    bucket: str
    account: str | None = None
    """Storage account, as in `RecordedWarehouse`."""
    key_prefix: str
    deletion: Deletion = "retain"
    """`retain` keeps its bucket. `protect` only protects its files from a purge of another warehouse."""
    is_declared: bool | None = None
    """Whether the spec declares the warehouse again, without `adopt`. Its own `deletion` then applies."""


Warehouses = dict[str, RecordedWarehouse]


def identify(tenant: str, warehouses: Warehouses, before: Warehouses, retained: list[KeptData]) -> Warehouses:
    """Return the declared warehouses, each with its origin and its key prefix.

    Args:
        tenant: Name of the tenant.
        warehouses: Warehouses of the spec, by name.
        before: Warehouses of the earlier record, by name.
        retained: Remaining data of earlier warehouses.
    """
    origins: dict[str, str] = {}
    retained_origins = {data.name: data.origin for data in retained}
    for name, warehouse in warehouses.items():
        if name in before:
            origins[name] = find_origin(name, before[name])
        elif warehouse.renamed_from:
            earlier = before.get(warehouse.renamed_from)
            origins[name] = find_origin(warehouse.renamed_from, earlier) if earlier else warehouse.renamed_from
        elif name in retained_origins:
            origins[name] = retained_origins[name]
    taken = {*origins.values(), *retained_origins.values()}
    for name in warehouses:
        if name not in origins:
            origins[name] = _free(name, taken)
            taken.add(origins[name])
    return {
        name: warehouse.model_copy(
            update={
                "origin": origins[name],
                "key_prefix": warehouse.key_prefix or f"{tenant}/{origins[name]}",
                "renamed_from": None,
            }
        )
        for name, warehouse in warehouses.items()
    }


def note_adopted(identified: Warehouses, before: Warehouses, adopting: Sequence[str]) -> Warehouses:
    """Return the warehouses, each with whether the stack adopted it, in this run or earlier.

    Args:
        identified: Declared warehouses, with their origins.
        before: Warehouses of the earlier record.
        adopting: Names of warehouses that the spec takes over if they exist.
    """
    earlier = {find_origin(name, warehouse): warehouse for name, warehouse in before.items()}

    def is_adopted(name: str, warehouse: RecordedWarehouse) -> bool | None:
        earlier_warehouse = earlier.get(warehouse.origin or name)
        return earlier_warehouse.is_adopted if earlier_warehouse else (name in adopting or None)

    return {
        name: warehouse.model_copy(update={"is_adopted": is_adopted(name, warehouse)})
        for name, warehouse in identified.items()
    }


def rename_conflicts(warehouses: Warehouses, before: Warehouses) -> list[tuple[str, str]]:
    """Return declared names and their `renamed_from` where both are different warehouses of the earlier record."""
    renamed = [(name, warehouse.renamed_from) for name, warehouse in warehouses.items() if name in before]
    return [(name, earlier) for name, earlier in renamed if earlier in before and earlier not in warehouses]


def find_unnamed_renames(
    tenant: str, warehouses: Warehouses, before: Warehouses, retained: list[KeptData]
) -> list[tuple[str, str]]:
    """Return new names, each with a removed warehouse whose origin or place it would take without `renamed_from`."""
    identified = identify(tenant, warehouses, before, retained)
    renamed = {warehouse.renamed_from for warehouse in warehouses.values()}
    leaving = {name: earlier for name, earlier in before.items() if name not in warehouses and name not in renamed}
    return [
        (new, old)
        for new, warehouse in identified.items()
        if new not in before and warehouses[new].renamed_from not in before
        for old, earlier in leaving.items()
        if (warehouse.origin or new).casefold() == find_origin(old, earlier).casefold()
        or share_place(warehouse, earlier)
    ]


def find_retained_data(
    warehouses: Warehouses,
    before: Warehouses,
    earlier_data: list[KeptData],
    dropped: Sequence[str] = (),
    adopting: Sequence[str] = (),
) -> list[KeptData]:
    """Return data that `retain` and `protect` may have left, of earlier warehouses and of warehouses removed now.

    The record keeps retained data when the spec declares the warehouse again, because taking it over may fail. A
    refresh removes entries without data.

    Args:
        warehouses: Warehouses of the spec, with origins and key prefixes.
        before: Warehouses of the earlier record.
        earlier_data: Remaining data of earlier warehouses.
        dropped: Names of warehouses whose data no longer needs protection. The record keeps retained data.
        adopting: Names of warehouses that the spec takes over.
    """
    places = {
        (warehouse.bucket, warehouse.key_prefix, warehouse.origin): name for name, warehouse in warehouses.items()
    }
    leaving = [
        KeptData(
            name=name,
            origin=find_origin(name, earlier),
            bucket=earlier.bucket,
            account=earlier.account,
            key_prefix=earlier.key_prefix or "",
            deletion=earlier.deletion,
        )
        for name, earlier in before.items()
        if earlier.deletion != "purge"
    ]
    retained = [data for data in earlier_data if data.deletion == "retain"]
    every = {(data.account, data.bucket, data.key_prefix): data for data in [*earlier_data, *leaving, *retained]}
    remaining: list[KeptData] = []
    for data in every.values():
        successor = places.get((data.bucket, data.key_prefix, data.origin))
        if successor is None and not (data.deletion == "protect" and data.name in dropped):
            remaining.append(data.model_copy(update={"is_declared": None}))
        elif successor is not None and data in retained:
            # The first `up` that declares it may be refused.
            is_taken_over = successor in before and successor not in adopting
            remaining.append(data.model_copy(update={"is_declared": is_taken_over or None}))
    return sorted(remaining, key=lambda data: (data.bucket, data.key_prefix))


def list_removed(warehouses: Warehouses, before: Warehouses) -> dict[str, RecordedWarehouse]:
    """Return the recorded warehouses that the spec no longer declares under any name."""
    origins = {warehouse.origin for warehouse in warehouses.values()}
    return {name: earlier for name, earlier in before.items() if find_origin(name, earlier) not in origins}


def list_added(warehouses: Warehouses, before: Warehouses) -> list[str]:
    """Return the names of new warehouses. A renamed warehouse is not new."""
    origins = {find_origin(name, earlier) for name, earlier in before.items()}
    return [name for name, warehouse in warehouses.items() if warehouse.origin not in origins]


def find_threatened(
    warehouses: Warehouses, before: Warehouses, retained: list[KeptData], dropped: Sequence[str]
) -> list[tuple[str, KeptData]]:
    """Return the purged warehouses at the place of an earlier protected one, each with the data that may remain there.

    Args:
        warehouses: Warehouses of the spec, with origins and key prefixes.
        before: Warehouses of the earlier record.
        retained: Remaining data of earlier warehouses, and of warehouses removed now.
        dropped: Names of warehouses whose data no longer needs protection.
    """
    return [
        (name, data)
        for name, warehouse in warehouses.items()
        if warehouse.deletion == "purge" and not _was_purged_there(warehouse, before)
        for data in retained
        if data.deletion == "protect" and data.name not in dropped and share_place(warehouse, data)
    ]


def share_place(first: RecordedWarehouse, second: RecordedWarehouse | KeptData) -> bool:
    """Return whether two warehouses are in one bucket, and their key prefixes overlap."""
    are_apart = first.account and second.account and first.account != second.account
    is_same_bucket = first.bucket == second.bucket and not are_apart
    return is_same_bucket and prefixes_overlap(first.key_prefix or "", second.key_prefix or "")


def find_origin(name: str, warehouse: RecordedWarehouse) -> str:
    """Return a warehouse's first name."""
    return warehouse.origin or name


def _was_purged_there(warehouse: RecordedWarehouse, before: Warehouses) -> bool:
    """Return whether the earlier record has the warehouse at the same place with `purge`."""
    return any(
        (warehouse.origin, warehouse.bucket, warehouse.key_prefix, warehouse.deletion)
        == (earlier.origin, earlier.bucket, earlier.key_prefix, earlier.deletion)
        for earlier in before.values()
    )


def _free(name: str, taken: set[str]) -> str:
    """Return a name that is not yet an origin. A renamed warehouse keeps its first name as origin."""
    used = {origin.casefold() for origin in taken}
    candidates = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(candidate for candidate in candidates if candidate.casefold() not in used)
