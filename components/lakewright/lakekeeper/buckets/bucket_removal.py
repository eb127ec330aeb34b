"""BucketRemoval and KeyRemoval: delete a bucket of the stack, and its key, if no remaining data needs them.

The `aws` plugin cannot decide that: depending on the spec of the last `up`, it deletes a bucket with all contents or
refuses. The stack therefore sets `retain_on_delete` for bucket and key, and these resources check before they delete.
"""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)
from pydantic import ValidationError
from typing_extensions import override

from lakewright.lakekeeper.buckets import bucket_emptying, bucket_key, bucket_mark, own_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider import errors, run_context
from lakewright.lakekeeper.provider.diagnostics import note, warn
from lakewright.lakekeeper.provider.errors import (
    BucketTagsDeniedError,
    CannotCountError,
    NotOwnedError,
    StillHeldError,
)
from lakewright.lakekeeper.provider.inputs import failures
from lakewright.lakekeeper.provider.options import drop_none, not_imported
from lakewright.ownership import record_identity
from lakewright.ownership.mark import Claimant, Ownership
from lakewright.ownership.marked_object import MarkedObject
from lakewright.ownership.running_stack import find_running_stack

B = TypeVar("B", bound=OwnBucket)


class BucketRemovalArgs(OwnBucket):
    """The bucket, and the warehouses whose data is kept in it."""

    kept: list[str] = []
    """Warehouses whose data `deletion: retain` keeps in the bucket, both declared and removed warehouses."""
    log_bucket: str | None = None
    """Bucket for its logs, which the `aws` plugin deletes after this resource, with its contents."""


class KeyRemovalArgs(OwnBucket):
    """The bucket, and its key."""

    key_id: str
    """Id of the KMS key."""


class _RemovalProvider(ResourceProvider, Generic[B]):
    """Base of the two providers, which act when their resource is deleted."""

    serialize_as_secret_always = False
    args: type[B]
    replacing: tuple[str, ...]
    """Properties that identify the object. If one changes, the earlier object is removed."""

    def remove(self, args: B) -> None:
        """Delete the object. Succeed if it does not exist."""
        raise NotImplementedError

    def find_marked(self, args: B) -> list[MarkedObject]:
        """Return the objects to delete with their marks."""
        raise NotImplementedError

    @override
    def configure(self, req: ConfigureRequest) -> None:
        errors.show_sentences_only()

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        try:
            return CheckResult(self.args.parse(news).props(), [])
        except ValidationError as error:
            return CheckResult(news, [CheckFailure(path, reason) for path, reason in failures(error, news)])

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        changes = difference.list_changes(self.args.from_state(_olds), self.args.from_state(_news))
        replaced = [change.path for change in changes if change.path in self.replacing]
        # The contents leave the earlier bucket before it is deleted, so the new bucket is created first.
        is_outdated = record_identity.is_outdated(run_context.current().record_id, _olds)
        return DiffResult(changes=bool(changes) or is_outdated, replaces=replaced, delete_before_replace=False)

    @override
    def create(self, props: dict[str, Any]) -> CreateResult:
        args = self.args.from_state(props)
        return CreateResult(args.bucket, args.props() | self._to_record())

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        args = self.args.from_state(props).props()
        return ReadResult(id_, args | record_identity.to_record(None, props), args)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(self.args.from_state(_news).props() | self._to_record(_olds))

    @staticmethod
    def _to_record(outs: dict[str, Any] | None = None) -> dict[str, Any]:
        return record_identity.to_record(run_context.current().record_id, outs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        args = self.args.from_state(_props)
        record_id = run_context.current().record_id or record_identity.find_recorded(_props)
        claimant = Claimant(find_running_stack(), record_id)
        for marked in self.find_marked(args) if claimant != Claimant() else []:
            if problem := marked.find_deletion_problem(claimant):
                raise NotOwnedError(problem)
        self.remove(args)


class BucketRemovalProvider(_RemovalProvider[BucketRemovalArgs]):
    """Deletes an empty bucket, and keeps a bucket with retained data."""

    args = BucketRemovalArgs
    replacing = ("bucket", "region", "endpoint")

    @override
    def find_marked(self, args: BucketRemovalArgs) -> list[MarkedObject]:
        return [bucket_mark.find_marked_bucket(args), *bucket_mark.find_marked_logs([(args, args.log_bucket)])]

    @override
    def remove(self, args: BucketRemovalArgs) -> None:
        bucket_emptying.delete_unless_held(args, args.kept)


class KeyRemovalProvider(_RemovalProvider[KeyRemovalArgs]):
    """Schedules the deletion of an unused key, and keeps a key in use."""

    args = KeyRemovalArgs
    replacing = ("bucket", "region", "endpoint", "key_id")

    @override
    def find_marked(self, args: KeyRemovalArgs) -> list[MarkedObject]:
        return [bucket_key.find_marked_key(args, args.key_id)]

    @override
    def remove(self, args: KeyRemovalArgs) -> None:
        try:
            is_default, example = bucket_key.is_default(args, args.key_id), bucket_key.find_encrypted_object(args)
        except CannotCountError as error:
            warn(f"KMS key {args.key_id} is kept, as it may be in use: {error}")
            return
        if is_default:
            note(f"KMS key {args.key_id} is kept: {args.where} is kept, and is encrypted with it")
        elif example:
            note(f"KMS key {args.key_id} is kept: {args.where} holds objects encrypted with it, such as {example}")
        else:
            bucket_key.end_key(args, args.key_id)


def remove_left_over(args: OwnBucket, tag: str) -> None:
    """Delete a bucket that the stack created, and its key, if it still exists after all other resources are deleted.

    A run that is killed between creating the bucket and its `BucketRemoval` leaves a bucket that no resource deletes,
    and maybe a key without a `KeyRemoval`. The key is looked up by its mark, and first: without the bucket, a repeated
    run would not search for it. A bucket without this stack's tag belongs to another stack.

    Raises:
        StillHeldError: The bucket is not empty.
        BucketRefusedError: S3 refused a call.
    """
    try:
        mark = bucket_mark.find_marked_bucket(args).mark
    except BucketTagsDeniedError as denied:  # also the bucket of another account, for which `up` was refused
        warn(f"{args.where} is kept if it exists: {denied}")
        return
    claimant = Claimant(find_running_stack(), tag)
    if mark.record != tag or mark.compare(claimant) is not Ownership.OWN:
        return
    if content := own_bucket.describe_contents(args):
        raise StillHeldError(
            f"{args.where} is not deleted, since it holds {content}. An interrupted `up` created it. Empty it, and"
            " run the command again."
        )
    if not args.is_in_store:
        for key_id in bucket_key.find_left_over_keys(args, claimant):
            bucket_key.end_key(args, key_id)
            note(f"KMS key {key_id} of {args.where}, which an interrupted `up` created, is scheduled for deletion")
    bucket_emptying.delete_bucket(args)
    note(f"{args.where}, which an interrupted `up` created, is deleted")


class BucketRemoval(Resource, module="lakekeeper", name="BucketRemoval"):
    """Deletes a bucket of the stack when this resource is deleted. `bucket` takes the fields of `OwnBucket`."""

    def __init__(
        self,
        resource_name: str,
        *,
        bucket: Mapping[str, pulumi.Input[Any]],
        kept: pulumi.Input[list[str]] | None = None,
        log_bucket: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource."""
        props = drop_none(**bucket, kept=kept, log_bucket=log_bucket)
        super().__init__(BucketRemovalProvider(), resource_name, props, not_imported(opts))


class KeyRemoval(Resource, module="lakekeeper", name="KeyRemoval"):
    """Deletes the key of a bucket when this resource is deleted. `bucket` takes the fields of `OwnBucket`."""

    def __init__(
        self,
        resource_name: str,
        *,
        bucket: Mapping[str, pulumi.Input[Any]],
        key_id: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource."""
        super().__init__(KeyRemovalProvider(), resource_name, drop_none(**bucket, key_id=key_id), not_imported(opts))
