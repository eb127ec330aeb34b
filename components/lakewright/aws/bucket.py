"""The bucket that a stack makes for a tenant: private, versioned, encrypted, reached over TLS only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi_aws import get_caller_identity_output, kms, s3

from lakewright.aws.bucket_policy import tenant_bucket_policy
from lakewright.aws.existing import ExistingObjects
from lakewright.aws.log_bucket import LogBucket, log_prefix
from lakewright.aws.private_bucket import encryption_rules, make_private
from lakewright.environment.platform import TENANT_TAG
from lakewright.lakekeeper.buckets.bucket_key import describe_key, name_alias
from lakewright.lakekeeper.buckets.bucket_removal import BucketRemoval, KeyRemoval
from lakewright.lakekeeper.tenant.tenant_record import TenantRecord
from lakewright.storage.aws import AwsStorage
from lakewright.storage.lifecycle import PrefixLifecycle, lifecycle_rules


class TenantBucket(pulumi.ComponentResource):
    """A private, versioned, encrypted bucket that is reached over TLS only.

    The plugin does not delete bucket and key. `BucketRemoval` and `KeyRemoval` delete them once no retained data
    needs them.
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
        lifecycles: pulumi.Output[Mapping[str, PrefixLifecycle | None]],
        after: Sequence[pulumi.Resource] = (),
        existing: ExistingObjects | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the bucket and its settings.

        Args:
            name: Name of the component.
            storage: The storage of the spec.
            tags: Tags of bucket and key.
            record: The tenant's record, whose mark the bucket gets.
            own_bucket: The fields of `OwnBucket`.
            kept: Warehouses whose data is kept in the bucket.
            lifecycles: Key prefixes in the bucket, each with its lifecycle if it has one.
            after: Resources that are made first.
            existing: Where to look for an existing bucket and key to adopt; None to adopt nothing.
            opts: Options of the component.
        """
        super().__init__("lakewright:index:TenantBucket", name, {}, opts)
        within = pulumi.ResourceOptions(parent=self, retain_on_delete=True, depends_on=after)
        adopted_name = existing.bucket(storage.bucket) if existing else None
        marked = record.mark_tags(tags)
        bucket = s3.Bucket(
            name, bucket=storage.bucket, force_destroy=False, tags=marked, opts=_add_import(within, adopted_name)
        )
        # Settings are deleted with their bucket only: if AWS refuses to delete the bucket, it keeps them.
        # The key depends on the bucket, else each `up` that is refused at the bucket would leave an unused key.
        with_bucket = pulumi.ResourceOptions(depends_on=[bucket])
        on_it = pulumi.ResourceOptions.merge(within, pulumi.ResourceOptions(deleted_with=bucket))
        account = get_caller_identity_output(opts=pulumi.InvokeOptions(parent=self)).account_id
        region: str = own_bucket["region"]
        policy = account.apply(lambda owner: tenant_bucket_policy(storage.bucket, region, owner))
        make_private(name, bucket, policy, on_it)
        versioning = s3.BucketVersioning(
            name, bucket=bucket.bucket, versioning_configuration={"status": "Enabled"}, opts=on_it
        )
        of_key = pulumi.ResourceOptions.merge(within, with_bucket)
        self.kms_key_arn, ended = self._key(
            name,
            storage,
            tenant=tags[TENANT_TAG],
            tags=marked,
            own_bucket=own_bucket,
            existing=existing,
            opts=of_key,
        )
        # The bucket is deleted before the key, and both after what uses them.
        # Requests to the bucket are logged until it is deleted, so the bucket of the logs is deleted last.
        logged = self._log_access(
            name,
            storage,
            bucket,
            account=account,
            region=region,
            tenant=tags[TENANT_TAG],
            tags=marked,
            existing=existing,
            after=after,
            opts=on_it,
        )
        last = pulumi.ResourceOptions(parent=self, depends_on=[bucket, *ended, *logged])
        BucketRemoval(name, bucket=own_bucket, kept=kept, log_bucket=storage.purged_log_bucket, opts=last)
        s3.BucketServerSideEncryptionConfiguration(
            name, bucket=bucket.bucket, rules=encryption_rules(self.kms_key_arn), opts=on_it
        )
        after_versioning = pulumi.ResourceOptions.merge(on_it, pulumi.ResourceOptions(depends_on=[versioning]))
        rules: pulumi.Output[Any] = lifecycles.apply(
            lambda by_prefix: lifecycle_rules(
                storage.abort_incomplete_uploads_days, storage.noncurrent_version_days, by_prefix
            )
        )
        s3.BucketLifecycleConfiguration(name, bucket=bucket.bucket, rules=rules, opts=after_versioning)
        self.bucket = bucket.bucket
        self.register_outputs({"bucket": self.bucket})

    def _log_access(
        self,
        name: str,
        storage: AwsStorage,
        bucket: s3.Bucket,
        *,
        account: pulumi.Output[str],
        region: str,
        tenant: str,
        tags: Mapping[str, pulumi.Input[str]],
        existing: ExistingObjects | None,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> list[pulumi.Resource]:
        """Turn access logs on. Return the bucket of the logs if the stack makes it."""
        logs = storage.access_logs
        if logs is None:
            return []
        log_bucket = (
            LogBucket(
                f"{name}-logs",
                logs,
                source=storage.bucket,
                region=region,
                account=account,
                tenant=tenant,
                tags=tags,
                after=after,
                existing=existing,
                opts=pulumi.ResourceOptions(parent=self),
            )
            if logs.owner == "stack"
            else None
        )
        s3.BucketLogging(
            name,
            bucket=bucket.bucket,
            target_bucket=log_bucket.bucket if log_bucket else logs.bucket,
            target_prefix=log_prefix(logs, storage.bucket),
            # Without `access_logs` in the spec, the bucket is kept and its logs end.
            opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=False)),
        )
        return [log_bucket] if log_bucket else []

    @staticmethod
    def _key(
        name: str,
        storage: AwsStorage,
        *,
        tenant: str,
        tags: Mapping[str, pulumi.Input[str]],
        own_bucket: dict[str, Any],
        existing: ExistingObjects | None,
        opts: pulumi.ResourceOptions,
    ) -> tuple[pulumi.Output[str] | None, list[pulumi.Resource]]:
        """Return the ARN of the bucket's key, and the resource that deletes the key if the stack made it."""
        match storage.encryption.kms:
            case "s3":
                return None, []
            case "own":
                alias = name_alias(storage.bucket)
                adopted_key = existing.key(alias, storage.bucket, tenant) if existing else None
                # Each bucket has its own key, so that removing another bucket never deletes the key of these objects.
                of_bucket = f"{name}-{storage.bucket}"
                opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=[pulumi.Alias(name=name)]))
                # Without a key policy, the account's IAM policies apply, such as the policies of the warehouses' roles.
                key = kms.Key(
                    of_bucket,
                    description=describe_key(storage.bucket),
                    enable_key_rotation=True,
                    tags=tags,
                    opts=_add_import(opts, adopted_key.key_id if adopted_key else None),
                )
                key_alias = kms.Alias(
                    of_bucket,
                    name=alias,
                    target_key_id=key.key_id,
                    opts=_add_import(opts, adopted_key.alias if adopted_key else None),
                )
                removal = KeyRemoval(
                    of_bucket,
                    bucket=own_bucket,
                    key_id=key.key_id,
                    opts=pulumi.ResourceOptions(parent=opts.parent, depends_on=[key, key_alias], aliases=opts.aliases),
                )
                return key.arn, [removal]
            case arn:
                return pulumi.Output.from_input(arn), []


def _add_import(opts: pulumi.ResourceOptions, object_id: str | None) -> pulumi.ResourceOptions:
    """Return options that import an existing object; unchanged without one."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(import_=object_id))
