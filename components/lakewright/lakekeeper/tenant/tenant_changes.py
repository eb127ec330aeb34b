"""Which changes of a tenant's warehouses and buckets are refused, because data would be lost or a run would stop."""

from collections.abc import Callable
from typing import Protocol

from lakewright.lakekeeper.api.catalog import contents
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.buckets import bucket_key, own_bucket
from lakewright.lakekeeper.preflight import surroundings
from lakewright.lakekeeper.preflight import warehouse_contents as warehouse_removal
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.errors import CannotCountError, HoldsTablesError, KeyInUseError, RemovalRefusedError
from lakewright.lakekeeper.tenant import tenant_history
from lakewright.lakekeeper.tenant.tenant_history import (
    KeptData,
    RecordedBucket,
    RecordedWarehouse,
    Warehouses,
    added,
    removed,
    rename_conflicts,
    share_place,
    threatened,
    unnamed_renames,
)
from lakewright.names import key_prefixes
from lakewright.names.object_names import LONGEST_ROLE_NAME, role_name


class Recorded(Protocol):
    """What is needed of a record here."""

    @property
    def tenant(self) -> str:
        """Name of the tenant."""
        ...

    @property
    def warehouses(self) -> Warehouses:
        """Warehouses by name."""
        ...

    @property
    def buckets(self) -> dict[str, RecordedBucket]:
        """Buckets by name of the storage."""
        ...

    @property
    def dropped_warehouses(self) -> list[str]:
        """Purged warehouses that may leave, by name."""
        ...

    @property
    def kept(self) -> list[KeptData]:
        """Data that earlier warehouses left."""
        ...


def refuse(client: Callable[[], Client], old: Recorded, new: Recorded) -> None:
    """Raise if a change must not be made. Looks at what is there only where a change may lose it.

    Args:
        client: Makes a client of the server that has the warehouses.
        old: What the state has.
        new: What the spec has.

    Raises:
        HoldsTablesError: A warehouse with tables would be deleted.
        KeyInUseError: Objects would be left without the key that they are encrypted with.
        RemovalRefusedError: A bucket with data would be deleted, or a warehouse would get a place with data.
        CannotCountError: What is there cannot be counted.
    """
    _refuse_places(new)
    _refuse_purging(old, new)
    leaving = removed(new.warehouses, old.warehouses)
    joining = added(new.warehouses, old.warehouses)
    for name, warehouse in sorted(leaving.items()):
        if warehouse.deletion == "protect":
            _refuse_removal(client(), old.tenant, name, joining)
        elif warehouse.deletion == "purge" and joining and name not in new.dropped_warehouses:
            _refuse_replacing(client(), old.tenant, name, joining)
    for name, bucket in sorted(old.buckets.items()):
        after = new.buckets.get(name)
        if after is None or after.bucket != bucket.bucket:
            _refuse_another_name(name, bucket, new.buckets)
            _refuse_bucket(name, bucket, old.warehouses, new.kept)
        elif bucket.has_own_key and not after.has_own_key:
            _refuse_key(name, bucket)


def refuse_names(tenant: str, declared: Warehouses, before: Warehouses, kept: list[KeptData]) -> None:
    """Raise RemovalRefusedError if a warehouse would be taken for another one. Compares names and places alone.

    Args:
        tenant: Name of the tenant.
        declared: What the spec has, as written.
        before: What was recorded before, by name.
        kept: What earlier warehouses left.
    """
    for name, earlier in rename_conflicts(declared, before):
        raise RemovalRefusedError(
            f"warehouse `{name}` is `renamed_from: {earlier}`, but the state has both `{earlier}` and `{name}`. Nothing"
            f" was changed. Remove `renamed_from` and put `{earlier}` back. To rename it, first take `{name}` out in an"
            " `up` of its own."
        )
    for name, earlier in unnamed_renames(tenant, declared, before, kept):
        raise RemovalRefusedError(
            f"warehouse `{name}` would take the role or the key prefix of warehouse `{earlier}`, which leaves the spec."
            f" Nothing was changed. To rename it, give `{name}` `renamed_from: {earlier}`. To remove `{earlier}`, do so"
            f" in an `up` before the one that adds `{name}`."
        )


def refuse_role_names(tenant: str, named: Warehouses, before: Warehouses, buckets: dict[str, RecordedBucket]) -> None:
    """Raise RemovalRefusedError if the role of a warehouse would have a longer name than IAM allows.

    Args:
        tenant: Name of the tenant.
        named: What the spec has, each with its origin.
        before: What was recorded before; its roles exist.
        buckets: Buckets that the stack makes. Only their warehouses have roles of the stack.
    """
    existing = {tenant_history.origin_of(name, one) for name, one in before.items()}
    made = {one.bucket for one in buckets.values()}
    for name, one in named.items():
        role = role_name(tenant, tenant_history.origin_of(name, one))
        if one.bucket in made and one.origin not in existing and len(role) > LONGEST_ROLE_NAME:
            raise RemovalRefusedError(
                f"warehouse `{name}` would have the role `{role}` with {len(role)} characters; IAM allows"
                f" {LONGEST_ROLE_NAME}. Nothing was changed. Use a shorter name of the warehouse or of `renamed_from`."
            )


def refuse_covering(client: Callable[[], Client], old: Recorded | None, new: Recorded) -> None:
    """Raise RemovalRefusedError if a purged warehouse would cover a warehouse of another project.

    Args:
        client: Makes a client of the server that has the warehouses. It shows the projects that the identity may see.
        old: What the state has, if anything.
        new: What the spec has.
    """
    buckets = {one.bucket: one for one in new.buckets.values()}
    before = {_place(one) for one in old.warehouses.values()} if old else set[tuple[str | None, ...]]()
    coming = {
        name: one
        for name, one in new.warehouses.items()
        if one.deletion == "purge" and one.bucket in buckets and _place(one) not in before
    }
    # In a bucket that is still to be made there is nothing.
    for name, one in coming.items():
        if not own_bucket.exists(buckets[one.bucket]):
            continue
        around = surroundings.look_around(client())
        if around.unseen:
            warn(
                f"warehouse `{name}` with `deletion: purge` will be emptied at {one.key_prefix}/ of bucket"
                f" `{one.bucket}`, and not every warehouse can be seen. {around.unseen} Check that no other warehouse"
                " is there."
            )
        for other in around.within(buckets[one.bucket], one.key_prefix or ""):
            if other.project != new.tenant:
                raise RemovalRefusedError(
                    f"warehouse `{name}` with `deletion: purge` would be at {one.key_prefix}/ of bucket `{one.bucket}`,"
                    f" which overlaps with {other}. Nothing was changed. Give it another `key_prefix`."
                )


def _place(one: RecordedWarehouse) -> tuple[str | None, ...]:
    return (one.bucket, one.key_prefix, one.deletion)


def _refuse_removal(client: Client, tenant: str, name: str, joining: list[str]) -> None:
    tables = _tables(client, tenant, name)
    if tables:
        raise HoldsTablesError(
            f"warehouse `{name}` is not in the spec any more, and its `deletion` is `protect` in the state; at"
            f" {client.endpoint} it holds {contents.described(tables)}. Nothing was changed. {_rename(name, joining)}"
            "Put it back, or set its `deletion` to `retain` or `purge` and run `up` before taking it out."
        )


def _refuse_replacing(client: Client, tenant: str, name: str, joining: list[str]) -> None:
    tables = _tables(client, tenant, name)
    if tables:
        raise HoldsTablesError(
            f"warehouse `{name}` leaves the spec while {', '.join(f'`{one}`' for one in joining)} joins it; at"
            f" {client.endpoint} it holds {contents.described(tables)}, which `purge` would drop. Nothing was changed."
            f" {_rename(name, joining)}To drop its tables, name it in `dropped_warehouses`."
        )


def _rename(name: str, joining: list[str]) -> str:
    """The way to keep the tables where a rename may be meant."""
    return f"To rename it, give the warehouse with the new name `renamed_from: {name}`. " if joining else ""


def _tables(client: Client, tenant: str, name: str) -> list[Tabular]:
    found = warehouses.find_by_name(client, tenant, name)
    return warehouse_removal.held(client, warehouses.id_of(found), name) if found else []


def _refuse_places(new: Recorded) -> None:
    """An origin or prefix that an earlier warehouse has, or has left data at, is no place for another one."""
    for name, one in new.warehouses.items():
        for other in new.kept:
            if (
                other.deletion == "retain"
                and one.bucket == other.bucket
                and (one.origin, one.key_prefix) != (other.origin, other.key_prefix)
                and key_prefixes.overlaps(one.key_prefix or "", other.key_prefix)
            ):
                raise RemovalRefusedError(
                    f"warehouse `{name}` would be at {one.key_prefix}/ of bucket `{one.bucket}`, where `deletion:"
                    f" retain` keeps what warehouse `{other.name}` left at {other.key_prefix}/. Give it another"
                    " `key_prefix`. If that data is deleted, run `up --refresh` to forget it."
                )
        for second, another in new.warehouses.items():
            if name < second and share_place(one, another):
                raise RemovalRefusedError(
                    f"warehouse `{name}` at {one.key_prefix}/ and warehouse `{second}` at {another.key_prefix}/ of"
                    f" bucket `{one.bucket}` overlap. Give one of them another `key_prefix`."
                )


def _refuse_purging(old: Recorded, new: Recorded) -> None:
    """A `purge` must not delete what a protected warehouse left, without a word about that one."""
    buckets = {one.bucket: one for one in new.buckets.values()}
    kept = {(one.bucket, one.key_prefix): one for one in [*old.kept, *new.kept]}
    for name, left in threatened(new.warehouses, old.warehouses, [*kept.values()], new.dropped_warehouses):
        if left.bucket not in buckets:
            continue  # what is in a bucket of others is never emptied
        if content := own_bucket.held(buckets[left.bucket], within=left.key_prefix):
            again = (
                "Declare it with `deletion: protect` and run `up` before you change that to `purge`."
                if name == left.name
                else f"Give it another `key_prefix`, or name `{left.name}` in `dropped_warehouses` to let its files go."
            )
            raise RemovalRefusedError(
                f"warehouse `{name}` with `deletion: purge` would be at a place of bucket `{left.bucket}` where"
                f" warehouse `{left.name}`, which was protected, has left {content}. Nothing was changed. {again}"
            )


def _refuse_another_name(storage: str, bucket: RecordedBucket, buckets: dict[str, RecordedBucket]) -> None:
    """A bucket under another storage is another resource: it would be made again, and then deleted."""
    for name, one in buckets.items():
        if one.bucket == bucket.bucket:
            raise RemovalRefusedError(
                f"storage `{name}` would make {bucket.where}, which storage `{storage}` has made. Nothing was changed."
                f" Keep the name `{storage}`: a storage that makes its bucket cannot be renamed."
            )


def _refuse_bucket(storage: str, bucket: RecordedBucket, before: Warehouses, kept: list[KeptData]) -> None:
    """A bucket that leaves is deleted if its warehouses are purged, and stays if one of them is retained."""
    if any(one.bucket == bucket.bucket and one.deletion == "retain" for one in kept):
        return
    emptied = [
        one.key_prefix or "" for one in before.values() if one.bucket == bucket.bucket and one.deletion == "purge"
    ]
    if content := own_bucket.held(bucket, besides=emptied):
        raise RemovalRefusedError(
            f"storage `{storage}` would leave {bucket.where}, which holds {content}. Nothing was changed. Put the"
            " storage back, or remove what is there first."
        )


def refuse_unrecorded_keys(buckets: dict[str, RecordedBucket]) -> None:
    """Raise KeyInUseError if a bucket has a key of the stack that its spec does not name, and objects may need it.

    Only for a tenant without a record: state of an earlier version would let the key go.
    """
    for name, bucket in sorted(buckets.items()):
        if not bucket.has_own_key:
            _refuse_key(name, bucket, lambda bucket=bucket: bucket_key.is_own_default(bucket))


def _refuse_key(storage: str, bucket: RecordedBucket, has_own_key: Callable[[], bool] = lambda: True) -> None:
    way_out = (
        f"Nothing was changed. Keep `encryption: {{kms: own}}` of storage `{storage}`; it can leave when nothing in"
        " the bucket, old versions included, is encrypted with its key."
    )
    try:
        found = bucket_key.encrypted(bucket) if has_own_key() else None
    except CannotCountError as error:
        raise KeyInUseError(f"Could not check whether the key of {bucket.where} is in use: {error} {way_out}") from None
    if found:
        raise KeyInUseError(
            f"{bucket.where} holds what is encrypted with the stack's own key, such as {found}. {way_out}"
        )
