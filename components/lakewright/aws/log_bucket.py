"""The bucket that a stack makes for the access logs of a tenant's bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
from pulumi_aws import s3

from lakewright.aws.bucket_policy import log_bucket_policy
from lakewright.aws.existing import ExistingObjects
from lakewright.aws.private_bucket import encryption_rules, make_private
from lakewright.storage.aws import AccessLogs

_EXPIRE_DAYS = 90


def log_prefix(logs: AccessLogs, source: str) -> str:
    """Return the prefix of a bucket's logs: the declared one, else the bucket's name and a slash."""
    return logs.prefix or f"{source}/"


class LogBucket(pulumi.ComponentResource):
    """A private bucket in which S3 alone writes the access logs of one other bucket.

    Logs have keys that S3 manages: the logging service cannot use keys of KMS with a bucket's default encryption.
    """

    def __init__(
        self,
        name: str,
        logs: AccessLogs,
        *,
        source: str,
        region: str,
        account: pulumi.Output[str],
        tenant: str,
        tags: Mapping[str, pulumi.Input[str]],
        after: Sequence[pulumi.Resource] = (),
        existing: ExistingObjects | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the bucket and its settings.

        Args:
            name: Name of the component.
            logs: The access logs of the spec.
            source: Name of the bucket whose requests are logged.
            region: Region of both buckets.
            account: ID of their account.
            tenant: Name of the tenant.
            tags: Tags of the bucket, with the mark of the stack.
            after: Resources that are made first.
            existing: Where to look for an existing bucket to adopt; None to adopt nothing.
            opts: Options of the component.
        """
        super().__init__("lakewright:index:LogBucket", name, {}, opts)
        keep = logs.deletion != "purge"
        within = pulumi.ResourceOptions(parent=self, retain_on_delete=keep, depends_on=after)
        # `purge` deletes the bucket with its contents, so only a log bucket of this stack is taken over.
        adopted_name = existing.log_bucket(logs.bucket, tenant) if existing else None
        bucket = s3.Bucket(
            name,
            bucket=logs.bucket,
            force_destroy=not keep,
            tags=tags,
            opts=pulumi.ResourceOptions.merge(within, pulumi.ResourceOptions(import_=adopted_name)),
        )
        on_it = pulumi.ResourceOptions.merge(within, pulumi.ResourceOptions(deleted_with=bucket))
        prefix = log_prefix(logs, source)
        policy = account.apply(lambda owner: log_bucket_policy(logs.bucket, region, owner, [source], prefix=prefix))
        setting_resources = make_private(name, bucket, policy, on_it)
        s3.BucketServerSideEncryptionConfiguration(
            name,
            bucket=bucket.bucket,
            rules=encryption_rules(None),
            opts=on_it,
        )
        expiry = s3.BucketLifecycleConfigurationRuleExpirationArgs(days=logs.expire_days or _EXPIRE_DAYS)
        everything = s3.BucketLifecycleConfigurationRuleFilterArgs(prefix="")
        s3.BucketLifecycleConfiguration(
            name,
            bucket=bucket.bucket,
            rules=[
                s3.BucketLifecycleConfigurationRuleArgs(
                    id="logs", status="Enabled", filter=everything, expiration=expiry
                )
            ],
            opts=on_it,
        )
        # S3 refuses a target of logs that does not let its logging service write.
        self.bucket: pulumi.Output[str] = pulumi.Output.all(bucket.bucket, setting_resources.id).apply(
            lambda values: values[0]
        )
        self.register_outputs({"bucket": self.bucket})
