"""StoreBucket: a bucket that the stack makes in an S3-compatible store, with its settings."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

import pulumi
from pulumi.dynamic import DiffResult, Resource
from typing_extensions import override

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.buckets import bucket_emptying, bucket_mark, bucket_settings, own_bucket
from lakewright.lakekeeper.buckets.own_bucket import NO_BUCKET, OwnBucket, open_client, read_code
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.creation import Origin, explain_unfinished
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.errors import (
    BucketRefusedError,
    DeletedOutsideStackError,
    ReplacementRefusedError,
)
from lakewright.lakekeeper.provider.inputs import CreateOnly, Replace, ResourceInputs, ServerKeeps, StateOnly, Update
from lakewright.lakekeeper.provider.options import ServerInput, drop_none, not_imported
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.ownership.mark import MARK_TAGS, Claimant, Ownership, OwnershipMark, parse_tags
from lakewright.ownership.marked_object import MarkedObject
from lakewright.ownership.running_stack import find_running_stack

_UNSET = frozenset({"NoSuchBucketPolicy", "NoSuchLifecycleConfiguration", "NoSuchTagSet"})
_MISSING_FEATURE = frozenset({"NotImplemented", "MethodNotAllowed", "XNotImplemented", "501", "405"})
_TAKEN = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"})


class StoreBucketArgs(OwnBucket, ResourceInputs):
    """The bucket, how the stack reaches it, and its settings."""

    bucket: Annotated[str, Replace()]
    """Name of the bucket."""
    region: Annotated[str, StateOnly()]
    """Region of the store."""
    endpoint: Annotated[str | None, Update(via="move")] = None
    """Address of the store. Another address must lead to the same bucket."""
    path_style: Annotated[bool | None, StateOnly()] = None
    access_key_id: Annotated[own_bucket.Reference | None, StateOnly()] = None
    secret_access_key: Annotated[own_bucket.Reference | None, StateOnly()] = None
    ca_certificates: Annotated[str | None, StateOnly()] = None
    profile: Annotated[str | None, StateOnly()] = None
    shared_credentials_file: Annotated[str | None, StateOnly()] = None
    record_tag: Annotated[str | None, StateOnly()] = None
    """Value of the tag `lakewright:record`, by which the stack knows its bucket."""
    stack: Annotated[str | None, Update(via="tags"), ServerKeeps()] = None
    """Value of the tag `lakewright:stack`: the stack that owns the bucket. Computed."""
    tags: Annotated[dict[str, str], Update(via="tags")] = {}
    """Other tags of the bucket."""
    versioning: Annotated[bool, Update(via="versioning")] = False
    """Whether the bucket keeps deleted and overwritten objects."""
    lifecycle: Annotated[str | None, Update(via="lifecycle")] = None
    """Lifecycle rules, as JSON."""
    policy: Annotated[str | None, Update(via="policy")] = None
    """Bucket policy, as JSON."""
    kept: Annotated[list[str], StateOnly()] = []
    """Warehouses whose data `deletion: retain` keeps in the bucket."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over an existing bucket of this name."""

    def with_settings(self, **settings: Any) -> Self:
        """Return the bucket as it was found."""
        return self.model_copy(update=settings)


class StoreBucketProvider(LakekeeperProvider[StoreBucketArgs]):
    """Creates, reads, changes and deletes buckets of stores."""

    args = StoreBucketArgs
    natural_key = ("endpoint", "bucket")

    @override
    def complete_args(self, args: StoreBucketArgs, olds: dict[str, Any]) -> StoreBucketArgs:
        return args.model_copy(update={"stack": find_running_stack() or olds.get("stack")})

    @override
    def title(self, args: StoreBucketArgs) -> str:
        return args.where

    @override
    def find_marked(self, client: Client, args: StoreBucketArgs) -> MarkedObject:
        return bucket_mark.find_marked_bucket(args.with_resolver(self.secret))

    @override
    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        result = super().diff(_id, _olds, _news)
        # The contents leave the earlier bucket before it is deleted, so the new bucket is created first.
        result.delete_before_replace = False
        return result

    @override
    def find_existing(
        self, client: Client, new: StoreBucketArgs
    ) -> tuple[str, ObservedResource[StoreBucketArgs]] | None:
        live_args = self._observe(new)
        # A bucket with the tag of this stack's record is the stack's own.
        if live_args is None or self._is_marked(new):
            return None
        return new.bucket, ObservedResource(live_args)

    @override
    def contents(self, client: Client, object_id: str, new: StoreBucketArgs) -> str:
        return own_bucket.describe_contents(new.with_resolver(self.secret)) or ""

    @override
    def make(self, client: Client, new: StoreBucketArgs) -> tuple[str, ObservedResource[StoreBucketArgs]]:
        bucket = new.with_resolver(self.secret)
        with bucket_emptying.raise_refusals(f"creating {bucket.where}"):
            s3 = open_client(bucket)
            origin = Origin.EXISTED if _exists(s3, bucket.bucket) else _create(s3, bucket)
        with explain_unfinished(self.title(new), origin, adopts=new.adopt):
            if origin is not Origin.CREATED and not self._is_marked(new):
                self.require_ours(client, self._observe(new) or new, new, origin, object_id=new.bucket)
            self._mark(bucket)
            return new.bucket, ObservedResource(self._converge(new))

    @override
    def find(
        self, client: Client, resource: RecordedResource[StoreBucketArgs]
    ) -> ObservedResource[StoreBucketArgs] | None:
        try:
            _ = resource.declared.with_resolver(self.secret).keys
        except UnresolvedCredentialError as unresolved:
            # As for the credentials of warehouses: a secret that is not on this machine does not count as a change.
            warn(f"{unresolved}; could not check {resource.declared.where}")
            return ObservedResource(resource.declared)
        live_args = self._observe(resource.declared)
        return ObservedResource(live_args) if live_args else None

    @override
    def change(
        self, client: Client, resource: RecordedResource[StoreBucketArgs], new: StoreBucketArgs
    ) -> ObservedResource[StoreBucketArgs]:
        if self._observe(new) is None:
            raise DeletedOutsideStackError(f"{new.where} no longer exists. Run `up --refresh`.")
        if new.endpoint != resource.declared.endpoint and not self._is_marked(new):
            raise ReplacementRefusedError(
                f"{new.where} is not the bucket that this stack made at {resource.declared.endpoint}. Nothing"
                " was changed."
                " To move to another store, declare another storage, and copy the data."
            )
        return ObservedResource(self._converge(new))

    @override
    def remove(self, client: Client, resource: RecordedResource[StoreBucketArgs]) -> None:
        bucket = resource.declared.with_resolver(self.secret)
        bucket_emptying.delete_unless_held(bucket, bucket.kept)

    def _is_marked(self, new: StoreBucketArgs) -> bool:
        """Return whether the bucket has this stack's mark. A copy of a state has the same record id."""
        mark = bucket_mark.find_marked_bucket(new.with_resolver(self.secret)).mark
        return mark.record is not None and mark.compare(Claimant(new.stack, new.record_tag)) is Ownership.OWN

    def _mark(self, bucket: StoreBucketArgs) -> None:
        """Tag the bucket, so that an interrupted run finds it again."""
        with bucket_emptying.raise_refusals(f"tagging {bucket.where}"):
            _set(lambda: _set_tags(open_client(bucket), bucket))

    def _observe(self, args: StoreBucketArgs) -> StoreBucketArgs | None:
        """Return the bucket with the settings of the store; None if it does not exist."""
        bucket = args.with_resolver(self.secret)
        with own_bucket.raise_uncounted(bucket):
            s3 = open_client(bucket)
            if not _exists(s3, bucket.bucket):
                return None
            tags = _tags(s3, bucket.bucket)
            return args.with_settings(
                tags={name: value for name, value in tags.items() if name not in MARK_TAGS},
                stack=parse_tags(tags).stack if args.stack else None,
                versioning=_read_versioning(s3, bucket.bucket),
                lifecycle=_lifecycle(s3, bucket.bucket),
                policy=_policy(s3, bucket.bucket),
            )

    def _converge(self, new: StoreBucketArgs) -> StoreBucketArgs:
        """Change the settings that differ."""
        live_args = self._observe(new) or new
        bucket = new.with_resolver(self.secret)
        with bucket_emptying.raise_refusals(f"setting up {bucket.where}"):
            s3 = open_client(bucket)
            for name, change in _CHANGES.items():
                is_unmarked = name == "tags" and new.stack is not None and live_args.stack != new.stack
                if is_unmarked or getattr(live_args, name) != getattr(new, name):
                    _change_setting(name, bucket, lambda change=change: change(s3, bucket))
        return new


def _create(s3: Any, bucket: StoreBucketArgs) -> Origin:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    location = (
        {} if bucket.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": bucket.region}}
    )
    try:
        s3.create_bucket(Bucket=bucket.bucket, **location)
    except ClientError as error:
        if read_code(error) in {"InvalidLocationConstraint", "InvalidRegion", "IllegalLocationConstraintException"}:
            s3.create_bucket(Bucket=bucket.bucket)
            return Origin.CREATED
        if read_code(error) not in _TAKEN:
            raise
        return Origin.EXISTED
    return Origin.CREATED


def _exists(s3: Any, bucket: str) -> bool:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    try:
        s3.head_bucket(Bucket=bucket)
    except ClientError as error:
        if read_code(error) in NO_BUCKET:
            return False
        raise
    return True


def _set(call: Callable[[], Any]) -> dict[str, Any]:
    """Return a store's response about a setting; nothing if it is not set, or the store lacks such settings."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    try:
        return call() or {}
    except ClientError as error:
        if read_code(error) in _UNSET | _MISSING_FEATURE:
            return {}
        raise


def _tags(s3: Any, bucket: str) -> dict[str, str]:
    tag_set = _set(lambda: s3.get_bucket_tagging(Bucket=bucket)).get("TagSet", [])
    return {tag["Key"]: tag["Value"] for tag in tag_set}


def _read_versioning(s3: Any, bucket: str) -> bool:
    return _set(lambda: s3.get_bucket_versioning(Bucket=bucket)).get("Status") == "Enabled"


def _lifecycle(s3: Any, bucket: str) -> str | None:
    configuration = _set(lambda: s3.get_bucket_lifecycle_configuration(Bucket=bucket))
    return bucket_settings.lifecycle_text(configuration.get("Rules", []))


def _policy(s3: Any, bucket: str) -> str | None:
    policy = _set(lambda: s3.get_bucket_policy(Bucket=bucket)).get("Policy")
    return bucket_settings.policy_text(policy) if policy else None


def _set_tags(s3: Any, bucket: StoreBucketArgs) -> None:
    tags = bucket.tags | OwnershipMark(bucket.stack, bucket.record_tag).to_tags()
    s3.put_bucket_tagging(
        Bucket=bucket.bucket, Tagging={"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}
    )


def _set_versioning(s3: Any, bucket: StoreBucketArgs) -> None:
    status = "Enabled" if bucket.versioning else "Suspended"
    s3.put_bucket_versioning(Bucket=bucket.bucket, VersioningConfiguration={"Status": status})


def _set_lifecycle(s3: Any, bucket: StoreBucketArgs) -> None:
    if bucket.lifecycle is None:
        s3.delete_bucket_lifecycle(Bucket=bucket.bucket)
    else:
        rules = bucket_settings.parse_rules(bucket.lifecycle)
        s3.put_bucket_lifecycle_configuration(Bucket=bucket.bucket, LifecycleConfiguration={"Rules": rules})


def _set_policy(s3: Any, bucket: StoreBucketArgs) -> None:
    if bucket.policy is None:
        s3.delete_bucket_policy(Bucket=bucket.bucket)
    else:
        document = json.loads(bucket.policy) | {"Version": "2012-10-17"}
        s3.put_bucket_policy(Bucket=bucket.bucket, Policy=json.dumps(document))


_CHANGES: Mapping[str, Callable[[Any, StoreBucketArgs], None]] = {
    "tags": _set_tags,
    "versioning": _set_versioning,
    "lifecycle": _set_lifecycle,
    "policy": _set_policy,
}
"""The call that sets each setting."""

_SPELLED = {"versioning": "versioning: true", "lifecycle": "noncurrent_version_days", "policy": "tls_only: true"}
"""Field of the spec for each setting."""


def _change_setting(name: str, bucket: StoreBucketArgs, change: Callable[[], None]) -> None:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    try:
        change()
    except ClientError as error:
        if read_code(error) not in _MISSING_FEATURE:
            raise
        remedy = f" Remove `{_SPELLED[name]}` from the storage." if name in _SPELLED else ""
        raise BucketRefusedError(
            f"{bucket.where}: expected a store with the setting `{name}` of buckets; it"
            f" responded {read_code(error)}.{remedy}"
        ) from None


class StoreBucket(Resource, module="lakekeeper", name="StoreBucket"):
    """A bucket of an S3-compatible store. `bucket` takes the fields of `OwnBucket`."""

    bucket: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        bucket: Mapping[str, pulumi.Input[Any]],
        record_tag: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Mapping[str, str]] | None = None,
        versioning: pulumi.Input[bool] | None = None,
        lifecycle: pulumi.Input[str] | None = None,
        policy: pulumi.Input[str] | None = None,
        kept: pulumi.Input[list[str]] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource."""
        props = drop_none(
            server=server,
            **bucket,
            record_tag=record_tag,
            tags=tags or None,
            versioning=versioning or None,
            lifecycle=lifecycle,
            policy=policy,
            kept=kept,
            adopt=adopt or None,
        )
        super().__init__(StoreBucketProvider(), resource_name, props, not_imported(opts))
