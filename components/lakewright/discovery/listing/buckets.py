"""Read the settings of a bucket, on AWS or in an S3-compatible store."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.buckets import bucket_settings
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket, open_client
from lakewright.ownership.mark import MARK_TAGS

_UNSET = frozenset(
    {
        "NoSuchBucketPolicy",
        "NoSuchLifecycleConfiguration",
        "NoSuchTagSet",
        "ServerSideEncryptionConfigurationNotFoundError",
        "NotImplemented",
        "MethodNotAllowed",
    }
)


@dataclass(frozen=True)
class BucketFacts:
    """Settings of a bucket."""

    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tags without the mark of a stack."""
    versioning: bool = False
    lifecycle: str | None = None
    """Lifecycle rules, in the spelling of `bucket_settings.lifecycle_text`."""
    policy: str | None = None
    """Bucket policy, in the spelling of `bucket_settings.policy_text`."""
    encryption: str = ""
    """Algorithm and key of the default encryption; empty without encryption."""
    logging: str = ""
    """Bucket and prefix that access logs go to; empty without logs."""
    problem: str = ""
    """Why the bucket could not be read."""

    def __str__(self) -> str:
        """Return the settings in a few words."""
        parts = [
            f"encryption {self.encryption or 'by default'}",
            f"versioning {'on' if self.versioning else 'off'}",
            "lifecycle rules" if self.lifecycle else "no lifecycle rules",
            "a bucket policy" if self.policy else "no bucket policy",
            f"access logs to {self.logging}" if self.logging else "no access logs",
            f"tags {', '.join(sorted(self.tags)) or 'none'}",
        ]
        return "; ".join(parts)


def read_bucket(bucket: OwnBucket) -> BucketFacts:
    """Return the settings of a bucket, or why they could not be read. A setting that a store lacks is not set."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    def read_setting(call: Callable[..., Any]) -> dict[str, Any]:
        try:
            return call(Bucket=bucket.bucket) or {}
        except ClientError as error:
            if cast(Any, error).response["Error"]["Code"] in _UNSET:
                return {}
            raise

    try:
        s3 = open_client(bucket)
        tags: list[dict[str, str]] = read_setting(s3.get_bucket_tagging).get("TagSet", [])
        policy = read_setting(s3.get_bucket_policy).get("Policy")
        encryption = read_setting(s3.get_bucket_encryption).get("ServerSideEncryptionConfiguration", {})
        logs = read_setting(s3.get_bucket_logging).get("LoggingEnabled", {})
        return BucketFacts(
            {tag["Key"]: tag["Value"] for tag in tags if tag["Key"] not in MARK_TAGS},
            read_setting(s3.get_bucket_versioning).get("Status") == "Enabled",
            bucket_settings.lifecycle_text(read_setting(s3.get_bucket_lifecycle_configuration).get("Rules", [])),
            bucket_settings.policy_text(policy) if policy else None,
            _format_encryption(encryption.get("Rules", [])),
            f"s3://{logs['TargetBucket']}/{logs.get('TargetPrefix', '')}" if logs else "",
        )
    except ClientError as error:
        return BucketFacts(problem=f"the store returned {cast(Any, error).response['Error']['Code']}")
    except (BotoCoreError, UnresolvedCredentialError) as error:
        return BucketFacts(problem=" ".join(str(error).split()))


def _format_encryption(rules: list[dict[str, Any]]) -> str:
    defaults: list[dict[str, str]] = [rule.get("ApplyServerSideEncryptionByDefault") or {} for rule in rules]
    return ", ".join(
        f"{default.get('SSEAlgorithm', '')} {default.get('KMSMasterKeyID', '')}".strip() for default in defaults
    )
