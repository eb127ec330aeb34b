"""TenantRecord: the warehouses and buckets of a tenant, recorded first, so that a run can refuse changes in time.

The engine calls `diff` for a changed resource, in previews too, but not for a resource that the program no longer
declares. The tenant's warehouses are therefore properties of one resource, whose `diff` finds removed warehouses.
Computed values are inputs, because previews know the inputs and `check` receives the earlier inputs.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import DiffResult, Resource
from typing_extensions import override

from lakewright.credentials.random_secret import make_random_hex
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.api.management import limit_records
from lakewright.lakekeeper.archive import archive_records, archiving
from lakewright.lakekeeper.buckets import bucket_removal, existing_bucket, store_preflight
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.errors import ArchiveRefusedError
from lakewright.lakekeeper.provider.inputs import has_unknown
from lakewright.lakekeeper.provider.options import ServerInput, drop_none, not_imported
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.lakekeeper.tenant import (
    catalog_principal,
    kept_data,
    protected_removals,
    role_paths,
    stack_ownership,
    tenant_changes,
    tenant_history,
)
from lakewright.lakekeeper.tenant.record_args import TenantRecordArgs
from lakewright.lakekeeper.tenant.tenant_history import Warehouses
from lakewright.names.object_names import FORMER_ROLE_PATH
from lakewright.ownership.limit_mark import COMPUTE_PART
from lakewright.ownership.mark import RECORD_TAG, STACK_TAG, OwnershipMark
from lakewright.ownership.running_stack import find_program_stack


class TenantRecordProvider(LakekeeperProvider[TenantRecordArgs]):
    """Provider of the record. It has no object on the server, and checks the warehouses when it changes."""

    args = TenantRecordArgs

    @override
    def complete_args(self, args: TenantRecordArgs, olds: dict[str, Any]) -> TenantRecordArgs:
        before = self._from_state(olds) if "warehouses" in olds else None
        warehouses, kept = (before.warehouses, before.kept) if before else ({}, [])
        tenant_changes.refuse_names(args.tenant, args.warehouses, warehouses, kept)
        identified = tenant_history.identify(args.tenant, args.warehouses, warehouses, kept)
        identified = tenant_history.note_adopted(identified, warehouses, args.adopting)
        if not has_unknown(args.stores):
            places = tenant_changes.key_prefixes_by_bucket(identified)
            earlier_stores = before.stores if before else {}
            in_use = {warehouse.bucket for warehouse in warehouses.values()} if not earlier_stores else set[str]()
            store_preflight.check(self._resolve_references(args).stores, earlier_stores, places, in_use)
            self.run.store_certificates.update(store_preflight.certificates(args.stores))
        existing_bucket.refuse_missing(args.existing_buckets, {warehouse.bucket for warehouse in warehouses.values()})
        if before is None and not has_unknown(args.buckets):
            tenant_changes.refuse_unrecorded_keys(args.buckets)
        if not has_unknown(args.buckets):
            tenant_changes.refuse_taken_aliases(args.buckets, before.buckets if before else {})
        tenant_changes.refuse_role_names(args.tenant, identified, warehouses, args.buckets)
        identified = self._with_role_paths(args, identified, before)
        retained = tenant_history.find_retained_data(
            identified, warehouses, kept, args.dropped_warehouses, args.adopting
        )
        tag = (before.bucket_tag if before else None) or make_random_hex(f"bucket tag of {args.tenant}", 8)
        checked = args.model_copy(update={"warehouses": identified, "kept": retained, "bucket_tag": tag})
        self.run.record_id = tag
        if before is not None:
            tenant_changes.refuse_other_sharing(
                args.project, before.project, is_shared=args.shares_project, was_shared=before.shares_project
            )
        if not has_unknown([args.server, args.buckets, args.stores]):
            stack_ownership.refuse_foreign(
                lambda: self.client(args.server), self._resolve_references(checked), before, self.claimant
            )
        if not has_unknown([args.server, args.buckets]):
            tenant_changes.refuse_covering(lambda: self.client(args.server), before, self._resolve_references(checked))
        if not has_unknown([args.server]) and not args.shares_project:
            self._refuse_begun_purges(checked)
        if before is not None and not has_unknown([args.server]):
            self._note_enforced_limits(args, tag)
            if not args.shares_project:
                self._note_purges(args)
        return checked

    def _refuse_begun_purges(self, checked: TenantRecordArgs) -> None:
        """Raise before anything changes if a purge of a declared warehouse has begun.

        The checks of owners report a server without response.
        """
        places = [(warehouse.bucket, warehouse.key_prefix or "") for warehouse in checked.warehouses.values()]
        try:
            archiving.refuse_begun_purges(self.client(checked.server), checked.project, places)
        except ArchiveRefusedError:
            raise
        except LakekeeperError:
            return

    def _note_purges(self, args: TenantRecordArgs) -> None:
        """Print the announced purges of archived warehouses. The checks of owners report a server without response."""
        with contextlib.suppress(LakekeeperError):
            for text in archive_records.describe_announcements(
                self.client(args.server), args.project, besides=[*args.warehouses]
            ):
                warn(text)

    def _note_enforced_limits(self, args: TenantRecordArgs, tag: str) -> None:
        """Print the limits that are enforced at present. The checks of owners report a server without response."""
        with contextlib.suppress(LakekeeperError):
            mark = limit_records.find_cached_mark(self.client(args.server), args.project, tag)
            if mark is not None and mark.parts:
                stopped = ", and no computing unit or activator is started" if COMPUTE_PART in mark.parts else ""
                warn(
                    f"a limit of {' and '.join(mark.parts)} is reached: {len(mark.suspended)} grants are suspended"
                    f"{stopped}. `lakewright enforce-limits` ends this when usage is below the limit"
                )

    @staticmethod
    def _with_role_paths(args: TenantRecordArgs, identified: Warehouses, before: TenantRecordArgs | None) -> Warehouses:
        """Return the warehouses with the paths of their roles, after a check of the principal that they trust.

        IAM is asked only about roles without a record.
        """
        if has_unknown(args.buckets):
            return identified
        # Warehouses in stores have no roles.
        buckets = {bucket.bucket: bucket for bucket in args.buckets.values() if not bucket.is_in_store}
        earlier_buckets = before.buckets.values() if before else ()
        account = next(iter(buckets.values()), None)
        if before is None and account and args.principal_arn:
            catalog_principal.refuse_missing(account, args.principal_arn)
        return role_paths.with_role_paths(
            args.tenant,
            identified,
            before.warehouses if before else {},
            before.kept if before else [],
            made_now=buckets,
            made_before={bucket.bucket for bucket in earlier_buckets if not bucket.access_key_id},
            find_path=lambda role: role_paths.find_role_path(account, role) if account else None,
            unrecorded=lambda name: before is None or name in args.adopting,
        )

    @override
    def redeclare(self, recorded_args: TenantRecordArgs, live_args: TenantRecordArgs) -> TenantRecordArgs:
        return recorded_args.model_copy(update={"kept": live_args.kept})

    @override
    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        result = super().diff(_id, _olds, _news)
        old, new = self._from_state(_olds), self._from_state(_news)
        if result.changes:
            explained = tenant_changes.refuse(
                lambda: self.connect_as_recorded(old.server), old, new, self.run.unshared_places
            )
            self.run.explained_warehouses.update(explained)
            protected_removals.refuse_removal(
                lambda: self.connect_as_recorded(old.server), old.project, old.warehouses, new.warehouses
            )
        return result

    @override
    def make(self, client: Client, new: TenantRecordArgs) -> tuple[str, ObservedResource[TenantRecordArgs]]:
        return new.tenant, ObservedResource(new)

    @override
    def find(
        self, client: Client, resource: RecordedResource[TenantRecordArgs]
    ) -> ObservedResource[TenantRecordArgs] | None:
        """Return the record without the retained data that no longer exists."""
        state = resource.declared
        buckets = self._resolve_references(state).buckets
        kept = [data for data in state.kept if not kept_data.is_gone(client, state.project, buckets, data)]
        return ObservedResource(state.model_copy(update={"kept": kept}))

    @override
    def change(
        self, client: Client, resource: RecordedResource[TenantRecordArgs], new: TenantRecordArgs
    ) -> ObservedResource[TenantRecordArgs]:
        return ObservedResource(new)

    @override
    def remove(self, client: Client, resource: RecordedResource[TenantRecordArgs]) -> None:
        """Delete the buckets that a killed run created without their `BucketRemoval`. Release what `retain` keeps."""
        state = self._resolve_references(resource.declared)
        self.run.record_id = state.bucket_tag
        retained_buckets = {
            data.bucket for data in [*state.warehouses.values(), *state.kept] if data.deletion == "retain"
        }
        for bucket in state.buckets.values():
            if bucket.bucket not in retained_buckets and state.bucket_tag:
                bucket_removal.remove_left_over(bucket, state.bucket_tag)
        if state.bucket_tag:
            limit_records.delete_mark(client, state.project, state.bucket_tag)
        stack_ownership.release(client, state, self.claimant)

    def _from_state(self, props: dict[str, Any]) -> TenantRecordArgs:
        return self._resolve_references(self.args.from_state(props))

    def _resolve_references(self, record: TenantRecordArgs) -> TenantRecordArgs:
        """Return the record with buckets whose references this provider resolves."""
        if has_unknown([record.buckets, record.stores]):
            return record
        buckets = {name: bucket.with_resolver(self.secret) for name, bucket in record.buckets.items()}
        stores = {name: store.with_resolver(self.secret) for name, store in record.stores.items()}
        return record.model_copy(update={"buckets": buckets, "stores": stores})


class TenantRecord(Resource, module="lakekeeper", name="TenantRecord"):
    """Record of a tenant's warehouses and buckets. All resources that lead to its data depend on it."""

    warehouses: pulumi.Output[dict[str, Any]]
    """Warehouses by name, each with its key prefix and origin."""
    kept: pulumi.Output[list[dict[str, str]]]
    bucket_tag: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        tenant: str,
        project_id: str | None = None,
        shares_project: bool = False,
        warehouses: Mapping[str, Mapping[str, Any]],
        buckets: Mapping[str, Mapping[str, Any]],
        stores: Mapping[str, Mapping[str, Any]] | None = None,
        existing_buckets: Mapping[str, Mapping[str, Any]] | None = None,
        dropped_warehouses: list[str] | None = None,
        adopting: list[str] | None = None,
        principal_arn: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource."""
        props = drop_none(
            server=server,
            tenant=tenant,
            project_id=project_id,
            shares_project=shares_project or None,
            warehouses=warehouses,
            buckets=buckets,
            stores=stores or None,
            existing_buckets=existing_buckets or None,
            dropped_warehouses=dropped_warehouses or None,
            adopting=adopting or None,
            principal_arn=principal_arn,
        )
        computed = {"kept": None, "bucket_tag": None}
        super().__init__(TenantRecordProvider(), resource_name, {**props, **computed}, not_imported(opts))

    def read_warehouse(self, name: str, field: str) -> pulumi.Output[str]:
        """Return a field of a warehouse: `key_prefix` or `origin`."""
        return self.warehouses.apply(lambda warehouses: str(warehouses[name][field]))

    def mark_tags(self, tags: Mapping[str, str]) -> dict[str, pulumi.Input[str]]:
        """Return tags of an AWS object together with the mark of this stack."""
        return {**tags, STACK_TAG: find_program_stack(), RECORD_TAG: self.bucket_tag}

    def mark_description(self) -> pulumi.Output[str]:
        """Return the mark of this stack as the description of a role."""
        stack = find_program_stack()
        return self.bucket_tag.apply(lambda record: OwnershipMark(stack, record).to_description())

    def list_adopted_prefixes(self, names: Sequence[str]) -> pulumi.Output[dict[str, str]]:
        """Return the key prefixes of the warehouses that the stack adopted, by name."""
        return self.warehouses.apply(
            lambda warehouse_records: {
                name: str(warehouse_records[name]["key_prefix"])
                for name in names
                if warehouse_records[name].get("is_adopted")
            }
        )

    def is_adopted(self, name: str) -> pulumi.Output[bool | None]:
        """Return whether the stack adopted a warehouse; None if it did not."""
        return self.warehouses.apply(lambda warehouse_records: bool(warehouse_records[name].get("is_adopted")) or None)

    def role_path(self, name: str) -> pulumi.Output[str]:
        """Return the IAM path of a warehouse's role."""
        return self.warehouses.apply(lambda warehouses: str(warehouses[name].get("role_path") or FORMER_ROLE_PATH))

    def list_kept_warehouses(self, bucket: str | None = None) -> pulumi.Output[list[str]]:
        """Return the names of warehouses whose data `retain` keeps, in one bucket or in any.

        Warehouses that the spec declares again and took over are not included: their own `deletion` applies.
        """
        return self.kept.apply(
            lambda kept: [
                data["name"]
                for data in kept
                if bucket in {None, data["bucket"]}
                and data.get("deletion", "retain") == "retain"
                and not data.get("is_declared")
            ]
        )
