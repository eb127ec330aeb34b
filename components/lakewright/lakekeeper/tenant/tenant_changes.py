"""Refuse changes of a tenant's warehouses and buckets that would lose data or fail half-way."""

from collections.abc import Callable

from lakewright.lakekeeper.api.catalog import contents
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.buckets import bucket_key, handed_over_files, own_bucket, unexplained_objects
from lakewright.lakekeeper.buckets.store_preflight import RecordedStore
from lakewright.lakekeeper.preflight import surroundings
from lakewright.lakekeeper.preflight import warehouse_contents as warehouse_removal
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.errors import CannotCountError, HoldsTablesError, KeyInUseError, RemovalRefusedError
from lakewright.lakekeeper.tenant import tenant_history
from lakewright.lakekeeper.tenant.record_args import TenantRecordArgs
from lakewright.lakekeeper.tenant.tenant_history import (
    KeptData,
    RecordedBucket,
    RecordedWarehouse,
    Warehouses,
    find_threatened,
    find_unnamed_renames,
    list_added,
    list_removed,
    rename_conflicts,
    share_place,
)
from lakewright.names.object_names import LONGEST_ROLE_NAME, role_name


def refuse(
    client: Callable[[], Client], old: TenantRecordArgs, new: TenantRecordArgs, unshared: set[tuple[str, str]]
) -> list[str]:
    """Raise if a change must not be made. Check existing data only if a change may lose it.

    Args:
        client: Returns a client of the server that has the warehouses.
        old: Record in the state.
        new: Record of the spec.
        unshared: Buckets and key prefixes without tables of other catalogs. Places that pass the check are added.

    Returns:
        Ids of the adopted warehouses to purge whose tables explain all objects under their key prefixes.

    Raises:
        HoldsTablesError: A warehouse with tables would be deleted.
        KeyInUseError: The key of encrypted objects would be removed.
        RemovalRefusedError: A bucket with data would be deleted, or a warehouse would be placed on existing data.
        CannotCountError: Existing data cannot be counted.
    """
    _refuse_places(new)
    _refuse_purging(old, new)
    leaving = list_removed(new.warehouses, old.warehouses)
    joining = list_added(new.warehouses, old.warehouses)
    explained: list[str] = []
    for name, warehouse in sorted(leaving.items()):
        if warehouse.deletion == "protect":
            _refuse_removal(client(), old.project, name, joining)
        elif warehouse.deletion == "purge" and joining and name not in new.dropped_warehouses:
            _refuse_replacing(client(), old.project, name, joining)
        if warehouse.deletion == "purge" and warehouse.is_adopted:
            explained += _refuse_unexplained(client(), old, name, warehouse)
        if warehouse.deletion == "purge":
            _refuse_handed_over(client, old, name, warehouse, unshared)
    for name, bucket in sorted(old.buckets.items()):
        after = new.buckets.get(name)
        if after is None or after.bucket != bucket.bucket:
            _refuse_disowning(name, bucket, new.stores)
            _refuse_another_name(name, bucket, new.buckets)
            _refuse_bucket(name, bucket, old.warehouses, new.kept)
        elif bucket.has_own_key and not after.has_own_key:
            _refuse_key(name, bucket)
    return explained


def _refuse_unexplained(client: Client, old: TenantRecordArgs, name: str, warehouse: RecordedWarehouse) -> list[str]:
    """Raise RemovalRefusedError if the purge of an adopted warehouse would delete foreign objects.

    Returns:
        The warehouse's id; empty if there is nothing to check.
    """
    bucket = next((bucket for bucket in old.buckets.values() if bucket.bucket == warehouse.bucket), None)
    live_warehouse = warehouses.find_by_name(client, old.project, name) if bucket else None
    if bucket is None or live_warehouse is None:
        return []
    warehouse_id = warehouses.read_id(live_warehouse)
    if problem := unexplained_objects.describe_problem(client, warehouse_id, name, bucket, warehouse.key_prefix or ""):
        raise RemovalRefusedError(f"nothing was changed: {problem}.")
    return [warehouse_id]


def _refuse_handed_over(
    client: Callable[[], Client],
    old: TenantRecordArgs,
    name: str,
    warehouse: RecordedWarehouse,
    unshared: set[tuple[str, str]],
) -> None:
    """Raise RemovalRefusedError if a purge would delete tables that a migration gave to another catalog.

    A bucket that cannot be listed is a warning: the removal itself refuses before it deletes anything.
    """
    bucket = next((bucket for bucket in old.buckets.values() if bucket.bucket == warehouse.bucket), None)
    if bucket is None or not warehouse.key_prefix:
        return
    storage_place = (bucket.bucket, warehouse.key_prefix.strip("/"))
    if storage_place in unshared:
        return
    live_warehouse = warehouses.find_by_name(client(), old.project, name)
    own_ids = [warehouses.read_id(live_warehouse)] if live_warehouse else []
    try:
        problem = handed_over_files.describe_problem(bucket, warehouse.key_prefix, own_ids)
    except CannotCountError as error:
        warn(f"could not check whether another catalog has files of warehouse `{name}`: {error}")
        return
    if problem:
        raise RemovalRefusedError(f"nothing was changed: {problem}.")
    unshared.add(storage_place)


def key_prefixes_by_bucket(identified: Warehouses) -> dict[str, list[str]]:
    """Return the key prefixes of warehouses, by bucket."""
    prefixes: dict[str, list[str]] = {}
    for warehouse in identified.values():
        prefixes.setdefault(warehouse.bucket, []).append(warehouse.key_prefix or "")
    return prefixes


def refuse_names(tenant: str, declared: Warehouses, before: Warehouses, retained: list[KeptData]) -> None:
    """Raise RemovalRefusedError if a warehouse would be confused with another. Compare only names and places.

    Args:
        tenant: Name of the tenant.
        declared: Warehouses of the spec, as written.
        before: Warehouses of the earlier record, by name.
        retained: Remaining data of earlier warehouses.
    """
    for name, earlier in rename_conflicts(declared, before):
        raise RemovalRefusedError(
            f"warehouse `{name}` is `renamed_from: {earlier}`, but the state has both `{earlier}` and `{name}`. Nothing"
            f" was changed. Remove `renamed_from` and restore `{earlier}`. To rename it, first remove `{name}` in a"
            " separate `up`."
        )
    for name, earlier in find_unnamed_renames(tenant, declared, before, retained):
        raise RemovalRefusedError(
            f"warehouse `{name}` would take the role or the key prefix of warehouse `{earlier}`, which leaves the spec."
            f" Nothing was changed. To rename it, give `{name}` `renamed_from: {earlier}`. To remove `{earlier}`, do so"
            f" in an `up` before the `up` that adds `{name}`."
        )


def refuse_other_sharing(project_id: str, earlier_project_id: str, *, is_shared: bool, was_shared: bool) -> None:
    """Raise RemovalRefusedError if a tenant with a project of its own would share one, or the other way round.

    Its project would be deleted, or its warehouses would be replaced.
    """
    if (project_id, is_shared) == (earlier_project_id, was_shared) or not (is_shared or was_shared):
        return
    earlier_project, new_project = (
        f"{'the shared project' if shared else 'a project of its own'} `{project}`"
        for project, shared in ((earlier_project_id, was_shared), (project_id, is_shared))
    )
    raise RemovalRefusedError(
        f"the tenant would move from {earlier_project} to {new_project}. Nothing was changed: a warehouse cannot move"
        " to another project. Restore `project` in the spec, or declare another tenant and copy the tables."
    )


def refuse_role_names(
    tenant: str, identified: Warehouses, before: Warehouses, buckets: dict[str, RecordedBucket]
) -> None:
    """Raise RemovalRefusedError if the role of a warehouse would have a longer name than IAM allows.

    Args:
        tenant: Name of the tenant.
        identified: Warehouses of the spec, each with its origin.
        before: Warehouses of the earlier record. Their roles exist.
        buckets: Buckets that the stack creates. Only their warehouses have roles of the stack.
    """
    existing = {tenant_history.find_origin(name, earlier) for name, earlier in before.items()}
    made_buckets = {bucket.bucket for bucket in buckets.values() if not bucket.is_in_store}
    for name, warehouse in identified.items():
        role = role_name(tenant, tenant_history.find_origin(name, warehouse))
        if warehouse.bucket in made_buckets and warehouse.origin not in existing and len(role) > LONGEST_ROLE_NAME:
            raise RemovalRefusedError(
                f"warehouse `{name}` would have the role `{role}` with {len(role)} characters; IAM allows"
                f" {LONGEST_ROLE_NAME}. Nothing was changed. Use a shorter name of the warehouse or of `renamed_from`."
            )


def refuse_covering(client: Callable[[], Client], old: TenantRecordArgs | None, new: TenantRecordArgs) -> None:
    """Raise RemovalRefusedError if a purged warehouse would cover a warehouse of another project.

    Args:
        client: Returns a client of the server that has the warehouses. It lists the projects visible to the identity.
        old: Record in the state, if any.
        new: Record of the spec.
    """
    buckets = {bucket.bucket: bucket for bucket in new.buckets.values()}
    before = {_place(warehouse) for warehouse in old.warehouses.values()} if old else set[tuple[str | None, ...]]()
    coming = {
        name: warehouse
        for name, warehouse in new.warehouses.items()
        if warehouse.deletion == "purge" and warehouse.bucket in buckets and _place(warehouse) not in before
    }
    # A bucket that does not exist yet is empty.
    for name, warehouse in coming.items():
        if not own_bucket.exists(buckets[warehouse.bucket]):
            continue
        around = surroundings.look_around(client())
        if around.unseen:
            warn(
                f"warehouse `{name}` with `deletion: purge` will be emptied at {warehouse.key_prefix}/ of bucket"
                f" `{warehouse.bucket}`, and not every warehouse can be seen. {around.unseen} Check that no other"
                " warehouse uses this place."
            )
        for other in around.find_overlapping(buckets[warehouse.bucket], warehouse.key_prefix or ""):
            if other.project != new.project:
                raise RemovalRefusedError(
                    f"warehouse `{name}` with `deletion: purge` would be at {warehouse.key_prefix}/ of bucket"
                    f" `{warehouse.bucket}`, which overlaps with {other}. Nothing was changed. Give it another"
                    " `key_prefix`."
                )


def _place(warehouse: RecordedWarehouse) -> tuple[str | None, ...]:
    return (warehouse.bucket, warehouse.key_prefix, warehouse.deletion)


def _refuse_removal(client: Client, project_id: str, name: str, joining: list[str]) -> None:
    tables = _tables(client, project_id, name)
    if tables:
        raise HoldsTablesError(
            f"warehouse `{name}` is no longer in the spec, and its `deletion` is `protect` in the state; at"
            f" {client.endpoint} it holds {contents.describe(tables)}. Nothing was changed. {_rename(name, joining)}"
            "Restore it, or set its `deletion` to `retain` or `purge` and run `up` before removing it."
        )


def _refuse_replacing(client: Client, project_id: str, name: str, joining: list[str]) -> None:
    tables = _tables(client, project_id, name)
    if tables:
        raise HoldsTablesError(
            f"warehouse `{name}` leaves the spec while {', '.join(f'`{new}`' for new in joining)} joins it; at"
            f" {client.endpoint} it holds {contents.describe(tables)}, which `purge` would drop. Nothing was changed."
            f" {_rename(name, joining)}To drop its tables, name it in `dropped_warehouses`."
        )


def _rename(name: str, joining: list[str]) -> str:
    """Return the hint for a rename, which keeps the tables."""
    return f"To rename it, give the warehouse with the new name `renamed_from: {name}`. " if joining else ""


def _tables(client: Client, project_id: str, name: str) -> list[Tabular]:
    live_warehouse = warehouses.find_by_name(client, project_id, name)
    return warehouse_removal.list_tabulars(client, warehouses.read_id(live_warehouse), name) if live_warehouse else []


def _refuse_places(new: TenantRecordArgs) -> None:
    """Refuse a warehouse at the place of another warehouse or of retained data."""
    for name, warehouse in new.warehouses.items():
        for other in new.kept:
            if (
                other.deletion == "retain"
                and (warehouse.origin, warehouse.key_prefix) != (other.origin, other.key_prefix)
                and share_place(warehouse, other)
            ):
                raise RemovalRefusedError(
                    f"warehouse `{name}` would be at {warehouse.key_prefix}/ of bucket `{warehouse.bucket}`,"
                    " where `deletion:"
                    f" retain` keeps what warehouse `{other.name}` left at {other.key_prefix}/. Give it another"
                    " `key_prefix`. If that data is deleted, run `up --refresh` to forget it."
                )
        for second, another in new.warehouses.items():
            if name < second and share_place(warehouse, another):
                raise RemovalRefusedError(
                    f"warehouse `{name}` at {warehouse.key_prefix}/ and warehouse `{second}` at"
                    f" {another.key_prefix}/ of"
                    f" bucket `{warehouse.bucket}` overlap. Give one of them another `key_prefix`."
                )


def _refuse_purging(old: TenantRecordArgs, new: TenantRecordArgs) -> None:
    """Refuse a `purge` of files that a protected warehouse left, unless the spec allows it explicitly."""
    buckets = {bucket.bucket: bucket for bucket in new.buckets.values()}
    retained = {(data.bucket, data.key_prefix): data for data in [*old.kept, *new.kept]}
    for name, data in find_threatened(new.warehouses, old.warehouses, [*retained.values()], new.dropped_warehouses):
        if data.bucket not in buckets:
            continue  # buckets outside the stack are never emptied
        if content := own_bucket.describe_contents(buckets[data.bucket], within=data.key_prefix):
            advice = (
                "Declare it with `deletion: protect` and run `up` before you change that to `purge`."
                if name == data.name
                else f"Give it another `key_prefix`, or name `{data.name}` in `dropped_warehouses` to delete its files."
            )
            raise RemovalRefusedError(
                f"warehouse `{name}` with `deletion: purge` would be at a place of bucket `{data.bucket}` where"
                f" the protected warehouse `{data.name}` left {content}. Nothing was changed. {advice}"
            )


def _refuse_another_name(storage: str, bucket: RecordedBucket, buckets: dict[str, RecordedBucket]) -> None:
    """Refuse to rename the storage of a bucket: it would be a new resource, and its bucket would be deleted."""
    for name, other in buckets.items():
        if other.bucket == bucket.bucket:
            raise RemovalRefusedError(
                f"storage `{name}` would create {bucket.where}, which storage `{storage}` created. Nothing was changed."
                f" Keep the name `{storage}`: a storage that creates its bucket cannot be renamed."
            )


def _refuse_disowning(storage: str, bucket: RecordedBucket, stores: dict[str, RecordedStore]) -> None:
    """Refuse a storage that uses the stack's bucket as an existing bucket: the stack would delete it."""
    for name, store in stores.items():
        if (store.endpoint, store.bucket) == (bucket.endpoint, bucket.bucket) and not store.is_made:
            raise RemovalRefusedError(
                f"storage `{name}` names {bucket.where} without `create: true`, and storage `{storage}` of this stack"
                " made it. Nothing was changed. Keep `create: true`: without it, the stack would delete the bucket."
            )


def _refuse_bucket(storage: str, bucket: RecordedBucket, before: Warehouses, retained: list[KeptData]) -> None:
    """Refuse to remove a bucket with data, unless its warehouses are purged or a warehouse is retained."""
    if any(data.bucket == bucket.bucket and data.deletion == "retain" for data in retained):
        return
    emptied = [
        warehouse.key_prefix or ""
        for warehouse in before.values()
        if warehouse.bucket == bucket.bucket and warehouse.deletion == "purge"
    ]
    if content := own_bucket.describe_contents(bucket, besides=emptied):
        raise RemovalRefusedError(
            f"storage `{storage}` no longer names {bucket.where}, which holds {content}. Nothing was changed. Restore"
            " the storage, or delete the contents of the bucket first."
        )


def refuse_unrecorded_keys(buckets: dict[str, RecordedBucket]) -> None:
    """Raise KeyInUseError if a bucket has a key of the stack that its spec does not name, and objects may need it.

    Used only for a tenant without a record, since state of an earlier version does not protect the key.
    """
    for name, bucket in sorted(buckets.items()):
        if not bucket.has_own_key and not bucket.is_in_store:
            _refuse_key(name, bucket, lambda bucket=bucket: bucket_key.is_own_default(bucket))


def refuse_taken_aliases(buckets: dict[str, RecordedBucket], earlier: dict[str, RecordedBucket]) -> None:
    """Raise BucketRefusedError if a new key of the stack would have the alias of another bucket's key."""
    with_key, with_earlier_key = (
        [bucket for bucket in buckets_by_name.values() if bucket.has_own_key and not bucket.is_in_store]
        for buckets_by_name in (buckets, earlier)
    )
    bucket_key.refuse_taken_aliases(with_key, with_earlier_key)


def _refuse_key(storage: str, bucket: RecordedBucket, has_own_key: Callable[[], bool] = lambda: True) -> None:
    way_out = (
        f"Nothing was changed. Keep `encryption: {{kms: own}}` of storage `{storage}`; remove it when nothing in"
        " the bucket, including old versions, is encrypted with its key."
    )
    try:
        encrypted_key = bucket_key.find_encrypted_object(bucket) if has_own_key() else None
    except CannotCountError as error:
        raise KeyInUseError(f"Could not check whether the key of {bucket.where} is in use: {error} {way_out}") from None
    if encrypted_key:
        raise KeyInUseError(
            f"{bucket.where} holds objects encrypted with the stack's own key, such as {encrypted_key}. {way_out}"
        )
