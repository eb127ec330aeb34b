"""Where a tenant's data lies: buckets that the stack makes, and buckets that others made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from lakewright_spark.aws_partition import bucket_arn
from pulumi_aws import kms, s3

from lakewright.aws.existing import ExistingObjects
from lakewright.environment.platform import Platform
from lakewright.lakekeeper.buckets.bucket_key import alias_of, description_of
from lakewright.lakekeeper.buckets.bucket_removal import RECORD_TAG, BucketRemoval, KeyRemoval
from lakewright.lakekeeper.tenant.tenant_record import TenantRecord
from lakewright.spec import AwsStorage, ExistingStorage, S3Storage, TenantSpec


@dataclass(frozen=True)
class Storage:
    """A bucket, as warehouses need to know it, whoever made it."""

    spec: AwsStorage | S3Storage | ExistingStorage
    bucket: pulumi.Input[str]
    region: str
    endpoint: str | None = None
    path_style: bool = False
    kms_key_arn: pulumi.Input[str] | None = None
    made_by: list[pulumi.Resource] = field(default_factory=list[pulumi.Resource])
    """What has to be there before the bucket may be used."""
    own_bucket: dict[str, Any] | None = None
    """The fields of `OwnBucket`, where the stack makes the bucket."""


def storage_for(
    spec: TenantSpec,
    platform: Platform,
    record: TenantRecord,
    opts: pulumi.ResourceOptions,
    *,
    after: Sequence[pulumi.Resource] = (),
) -> dict[str, Storage]:
    """Each storage of the tenant by its name; those of backend `aws` are made, after the resources in `after`."""
    found: dict[str, Storage] = {}
    for name, storage in spec.storage.items():
        match storage:
            case AwsStorage():
                region = storage.region or platform.region
                own_bucket = own_bucket_of(storage, platform)
                bucket = TenantBucket(
                    f"{spec.name}-{name}",
                    storage,
                    tags=platform.tags(spec),
                    record=record,
                    own_bucket=own_bucket,
                    kept=_kept(spec, name, storage.bucket, record),
                    after=after,
                    existing=ExistingObjects(platform.environment.aws, region) if spec.adopt else None,
                    opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(providers=[platform.aws(region)])),
                )
                found[name] = Storage(
                    storage,
                    bucket.bucket,
                    region,
                    endpoint=platform.s3_endpoint,
                    path_style=platform.s3_endpoint is not None,
                    kms_key_arn=bucket.kms_key_arn,
                    made_by=[bucket],
                    own_bucket=own_bucket,
                )
            case S3Storage():
                found[name] = Storage(
                    storage, storage.bucket, storage.region, endpoint=storage.endpoint, path_style=storage.path_style
                )
            case ExistingStorage():
                found[name] = Storage(
                    storage,
                    storage.bucket,
                    storage.region,
                    endpoint=platform.s3_endpoint,
                    path_style=platform.s3_endpoint is not None,
                    kms_key_arn=storage.kms_key_arn,
                )
    return found


def _kept(spec: TenantSpec, storage: str, bucket: str, record: TenantRecord) -> pulumi.Output[list[str]]:
    """The warehouses whose data stays in a bucket by `retain`: those of the spec, and those that it had."""
    declared = [one.name for one in spec.warehouses if spec.storage_of(one) == storage and one.deletion == "retain"]
    return record.kept_warehouses(bucket).apply(lambda left: [*declared, *left])


def own_bucket_of(storage: AwsStorage, platform: Platform) -> dict[str, Any]:
    """The bucket, and the identity of the stack's `aws` provider: the fields of `OwnBucket`."""
    account = platform.environment.aws
    file = account.shared_credentials_file
    fields = {
        "bucket": storage.bucket,
        "region": storage.region or platform.region,
        "endpoint": account.endpoint.rstrip("/") if account.endpoint else None,
        "profile": account.profile,
        "shared_credentials_file": str(file) if file else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def tls_only_policy(bucket: str, region: str) -> dict[str, Any]:
    """Nobody reaches the bucket but over TLS."""
    arn = bucket_arn(bucket, region)
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "TlsOnly",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": [arn, f"{arn}/*"],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ],
    }


def lifecycle_rules(storage: AwsStorage) -> list[Any]:
    """Incomplete uploads and old versions cost money and are seen by nobody: they go after their days."""
    return [
        {
            "id": "incomplete-uploads",
            "status": "Enabled",
            "filter": {"prefix": ""},
            "abort_incomplete_multipart_upload": {"days_after_initiation": storage.abort_incomplete_uploads_days},
        },
        {
            "id": "old-versions",
            "status": "Enabled",
            "filter": {"prefix": ""},
            "noncurrent_version_expiration": {"noncurrent_days": storage.noncurrent_version_days},
            "expiration": {"expired_object_delete_marker": True},
        },
    ]


def encryption_rules(kms_key_arn: pulumi.Input[str] | None) -> list[Any]:
    """What objects are encrypted with when they name nothing: the key, or keys that S3 manages."""
    if kms_key_arn is None:
        return [{"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}]
    default = {"sse_algorithm": "aws:kms", "kms_master_key_id": kms_key_arn}
    return [{"apply_server_side_encryption_by_default": default, "bucket_key_enabled": True}]


class TenantBucket(pulumi.ComponentResource):
    """A private, versioned, encrypted bucket that is reached over TLS only.

    Bucket and key are kept from the plugin's deletion. `BucketRemoval` and `KeyRemoval` end them once nothing that is
    to stay needs them.
    """

    bucket: pulumi.Output[str]
    kms_key_arn: pulumi.Output[str] | None

    def __init__(
        self,
        name: str,
        storage: AwsStorage,
        *,
        tags: dict[str, str],
        record: TenantRecord,
        own_bucket: dict[str, Any],
        kept: pulumi.Output[list[str]],
        after: Sequence[pulumi.Resource] = (),
        existing: ExistingObjects | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Resources in `after` are made first. With `existing`, bucket and key are taken over where they exist.

        `kept` are the warehouses whose data stays in the bucket.
        """
        super().__init__("lakewright:index:TenantBucket", name, {}, opts)
        within = pulumi.ResourceOptions(parent=self, retain_on_delete=True, depends_on=after)
        found = existing.bucket(storage.bucket) if existing else None

        marked = {**tags, RECORD_TAG: record.bucket_tag}
        bucket = s3.Bucket(name, bucket=storage.bucket, force_destroy=False, tags=marked, opts=_imported(within, found))
        # Settings go with their bucket: where AWS refuses to delete it, it must not stand there stripped of them.
        # Without the bucket there would be a key that nothing uses, for each `up` that is refused at the bucket.
        with_bucket = pulumi.ResourceOptions(depends_on=[bucket])
        on_it = pulumi.ResourceOptions.merge(within, pulumi.ResourceOptions(deleted_with=bucket))
        s3.BucketOwnershipControls(
            name, bucket=bucket.bucket, rule={"object_ownership": "BucketOwnerEnforced"}, opts=on_it
        )
        closed = s3.BucketPublicAccessBlock(
            name,
            bucket=bucket.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=on_it,
        )
        # AWS refuses changes of a bucket's policy and its public access at the same moment.
        after_closing = pulumi.ResourceOptions.merge(on_it, pulumi.ResourceOptions(depends_on=[closed]))
        s3.BucketPolicy(
            name,
            bucket=bucket.bucket,
            policy=json.dumps(tls_only_policy(storage.bucket, own_bucket["region"])),
            opts=after_closing,
        )
        versioning = s3.BucketVersioning(
            name, bucket=bucket.bucket, versioning_configuration={"status": "Enabled"}, opts=on_it
        )
        of_key = pulumi.ResourceOptions.merge(within, with_bucket)
        self.kms_key_arn, ended = self._key(
            name, storage, tags=tags, own_bucket=own_bucket, existing=existing, opts=of_key
        )
        # The key goes after the bucket, and both after what uses them.
        last = pulumi.ResourceOptions(parent=self, depends_on=[bucket, *ended])
        BucketRemoval(name, bucket=own_bucket, kept=kept, opts=last)
        s3.BucketServerSideEncryptionConfiguration(
            name, bucket=bucket.bucket, rules=encryption_rules(self.kms_key_arn), opts=on_it
        )
        after_versioning = pulumi.ResourceOptions.merge(on_it, pulumi.ResourceOptions(depends_on=[versioning]))
        s3.BucketLifecycleConfiguration(
            name, bucket=bucket.bucket, rules=lifecycle_rules(storage), opts=after_versioning
        )
        self.bucket = bucket.bucket
        self.register_outputs({"bucket": self.bucket})

    @staticmethod
    def _key(
        name: str,
        storage: AwsStorage,
        *,
        tags: dict[str, str],
        own_bucket: dict[str, Any],
        existing: ExistingObjects | None,
        opts: pulumi.ResourceOptions,
    ) -> tuple[pulumi.Output[str] | None, list[pulumi.Resource]]:
        """The key of the bucket, and what ends it if it is the stack's own."""
        match storage.encryption.kms:
            case "s3":
                return None, []
            case "own":
                alias = alias_of(storage.bucket)
                found = existing.key(alias) if existing else None
                # Each bucket has a key of its own: another bucket must not end the key that objects here need.
                of_bucket = f"{name}-{storage.bucket}"
                opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=[pulumi.Alias(name=name)]))
                # Without a policy of its own a key obeys the account's IAM policies, among them the warehouses' roles.
                key = kms.Key(
                    of_bucket,
                    description=description_of(storage.bucket),
                    enable_key_rotation=True,
                    tags=tags,
                    opts=_imported(opts, found.key_id if found else None),
                )
                kms.Alias(
                    of_bucket,
                    name=alias,
                    target_key_id=key.key_id,
                    opts=_imported(opts, found.alias if found else None),
                )
                removal = KeyRemoval(
                    of_bucket,
                    bucket=own_bucket,
                    key_id=key.key_id,
                    opts=pulumi.ResourceOptions(parent=opts.parent, depends_on=[key], aliases=opts.aliases),
                )
                return key.arn, [removal]
            case arn:
                return pulumi.Output.from_input(arn), []


def _imported(opts: pulumi.ResourceOptions, object_id: str | None) -> pulumi.ResourceOptions:
    """The options under which an existing object is taken over; as they are where there is none."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(import_=object_id))
