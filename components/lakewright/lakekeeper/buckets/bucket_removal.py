"""BucketRemoval and KeyRemoval: end a bucket of the stack, and its key, when nothing that has to stay needs them.

The `aws` plugin cannot decide that: it deletes a bucket with all that is in it, or refuses, by what the spec of the
last `up` said. So the stack keeps bucket and key from the plugin (`retain_on_delete`), and these look before they act.
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

from lakewright.lakekeeper.buckets import bucket_emptying, bucket_key, own_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider import errors
from lakewright.lakekeeper.provider.diagnostics import note, warn
from lakewright.lakekeeper.provider.errors import CannotCountError, StillHeldError
from lakewright.lakekeeper.provider.inputs import failures
from lakewright.lakekeeper.provider.options import given, not_imported

B = TypeVar("B", bound=OwnBucket)

RECORD_TAG = "lakewright:record"
"""Tag of a bucket that a stack made. Its value is in the tenant's record of that stack alone."""


class BucketRemovalArgs(OwnBucket):
    """The bucket, and whose data stays in it."""

    kept: list[str] = []
    """Warehouses whose data stays in the bucket by `deletion: retain`, whether the spec still has them or not."""


class KeyRemovalArgs(OwnBucket):
    """The bucket, and its key."""

    key_id: str
    """Id of the KMS key."""


class _RemovalProvider(ResourceProvider, Generic[B]):
    """Acts when it is deleted. The base of the two."""

    serialize_as_secret_always = False
    args: type[B]
    replacing: tuple[str, ...]
    """Properties that say which object is meant: where one changes, the earlier object is to go."""

    def remove(self, own: B) -> None:
        """End the object. One that is gone already is a success."""
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
        changes = difference.between(self.args.from_state(_olds), self.args.from_state(_news))
        replaced = [change.path for change in changes if change.path in self.replacing]
        # What was in the earlier bucket leaves it before that bucket goes, so the new one comes first.
        return DiffResult(changes=bool(changes), replaces=replaced, delete_before_replace=False)

    @override
    def create(self, props: dict[str, Any]) -> CreateResult:
        own = self.args.from_state(props)
        return CreateResult(own.bucket, own.props())

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        own = self.args.from_state(props).props()
        return ReadResult(id_, own, own)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(self.args.from_state(_news).props())

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        self.remove(self.args.from_state(_props))


class BucketRemovalProvider(_RemovalProvider[BucketRemovalArgs]):
    """Deletes a bucket that holds nothing, and leaves one alone that holds what is to stay."""

    args = BucketRemovalArgs
    replacing = ("bucket", "region", "endpoint")

    @override
    def remove(self, own: BucketRemovalArgs) -> None:
        if own.kept:
            note(f"{own.where} stays: `deletion: retain` keeps what is in it of warehouse {', '.join(own.kept)}")
        elif content := own_bucket.held(own):
            raise StillHeldError(
                f"{own.where} is not deleted, since it holds {content}, which belongs to no warehouse that is purged."
                " Remove that, and run the command again."
            )
        else:
            bucket_emptying.delete_bucket(own)


class KeyRemovalProvider(_RemovalProvider[KeyRemovalArgs]):
    """Schedules the deletion of a key that encrypts nothing any more, and leaves any other alone."""

    args = KeyRemovalArgs
    replacing = ("bucket", "region", "endpoint", "key_id")

    @override
    def remove(self, own: KeyRemovalArgs) -> None:
        try:
            is_default, example = bucket_key.is_default(own, own.key_id), bucket_key.encrypted(own)
        except CannotCountError as error:
            warn(f"KMS key {own.key_id} stays, as it may be in use: {error}")
            return
        if is_default:
            note(f"KMS key {own.key_id} stays: {own.where} stays, and encrypts with it")
        elif example:
            note(f"KMS key {own.key_id} stays: {own.where} holds what is encrypted with it, such as {example}")
        else:
            bucket_key.end_key(own, own.key_id)


def remove_left_over(own: OwnBucket, tag: str) -> None:
    """Delete a bucket that the stack made, if it is still there when all else is gone.

    A run that is killed when it has made the bucket, and not yet its `BucketRemoval`, leaves one that nothing ends. A
    bucket without this stack's tag is another's.

    Raises:
        StillHeldError: The bucket holds something.
        BucketRefusedError: S3 refused a call.
    """
    if own_bucket.tags(own).get(RECORD_TAG) != tag:
        return
    if content := own_bucket.held(own):
        raise StillHeldError(
            f"{own.where} is not deleted, since it holds {content}. An `up` that was interrupted made it. Remove what"
            " it holds, and run the command again."
        )
    bucket_emptying.delete_bucket(own)
    note(f"{own.where}, which an interrupted `up` made, is deleted")


class BucketRemoval(Resource, module="lakekeeper", name="BucketRemoval"):
    """Deletes a bucket of the stack when it is deleted itself. `bucket` takes the fields of `OwnBucket`."""

    def __init__(
        self,
        resource_name: str,
        *,
        bucket: Mapping[str, pulumi.Input[Any]],
        kept: pulumi.Input[list[str]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource."""
        super().__init__(BucketRemovalProvider(), resource_name, given(**bucket, kept=kept), not_imported(opts))


class KeyRemoval(Resource, module="lakekeeper", name="KeyRemoval"):
    """Ends the key of a bucket when it is deleted itself. `bucket` takes the fields of `OwnBucket`."""

    def __init__(
        self,
        resource_name: str,
        *,
        bucket: Mapping[str, pulumi.Input[Any]],
        key_id: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource."""
        super().__init__(KeyRemovalProvider(), resource_name, given(**bucket, key_id=key_id), not_imported(opts))
