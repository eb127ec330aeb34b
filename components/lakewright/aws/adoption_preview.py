"""Preview the adoption of a bucket or role of AWS: the settings that it replaces, and a count of the contents."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, cast
from urllib.parse import unquote

from lakewright.lakekeeper.buckets.own_bucket import OwnBucket, open_client, raise_uncounted, read_code

MOST_PAGES = 10
"""Pages of 1,000 objects that are counted; more objects are `at least` as many."""
_UNSET = frozenset(
    {
        "NoSuchBucketPolicy",
        "NoSuchLifecycleConfiguration",
        "NoSuchPublicAccessBlockConfiguration",
        "NoSuchTagSet",
        "ServerSideEncryptionConfigurationNotFoundError",
    }
)


def describe_bucket(bucket: OwnBucket) -> str:
    """Return what adopting a bucket replaces, and the number and size of its objects.

    Raises:
        CannotCountError: S3 refused a call.
    """
    with raise_uncounted(bucket):
        s3 = open_client(bucket)
        settings = ", ".join(_read_settings(s3, bucket.bucket))
        return f"it contains {_count_objects(s3, bucket.bucket)}; this replaces {settings}"


def _read_settings(s3: Any, bucket: str) -> list[str]:
    """Return the settings that a stack replaces, each with its present value."""
    policy = _read(lambda: s3.get_bucket_policy(Bucket=bucket)).get("Policy", "{}")
    block = _read(lambda: s3.get_public_access_block(Bucket=bucket)).get("PublicAccessBlockConfiguration", {})
    encryption = _read(lambda: s3.get_bucket_encryption(Bucket=bucket))
    rules = encryption.get("ServerSideEncryptionConfiguration", {}).get("Rules", [])
    defaults = [rule.get("ApplyServerSideEncryptionByDefault", {}) for rule in rules]
    lifecycle = _read(lambda: s3.get_bucket_lifecycle_configuration(Bucket=bucket)).get("Rules", [])
    tags = _read(lambda: s3.get_bucket_tagging(Bucket=bucket)).get("TagSet", [])
    logs = _read(lambda: s3.get_bucket_logging(Bucket=bucket)).get("LoggingEnabled", {})
    versioning = _read(lambda: s3.get_bucket_versioning(Bucket=bucket)).get("Status", "Off")
    return [
        f"its policy ({_join(_name_statements(policy))})",
        f"public access block ({_join(name for name, is_set in block.items() if is_set)})",
        f"encryption ({_join(_name_encryption(default) for default in defaults)})",
        f"versioning ({versioning})",
        f"lifecycle rules ({_join(str(rule.get('ID', 'without ID')) for rule in lifecycle)})",
        f"tags ({_join(str(tag['Key']) for tag in tags)})",
        f"access logs ({logs['TargetBucket'] if logs else 'none'})",
    ]


def _read(call: Callable[[], Any]) -> dict[str, Any]:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    try:
        return cast(dict[str, Any], call())
    except ClientError as error:
        if read_code(error) not in _UNSET:
            raise
        return {}


def _count_objects(s3: Any, bucket: str) -> str:
    """Return the number of current objects and their size in bytes, or `at least` as many."""
    count = size = 0
    request: dict[str, Any] = {"Bucket": bucket}
    for _ in range(MOST_PAGES):
        page = cast(dict[str, Any], s3.list_objects_v2(**request))
        objects = cast(list[dict[str, Any]], page.get("Contents", []))
        count, size = count + len(objects), size + sum(int(entry["Size"]) for entry in objects)
        if not page.get("IsTruncated"):
            return f"{count} object{'' if count == 1 else 's'} ({size} bytes)"
        request["ContinuationToken"] = page["NextContinuationToken"]
    return f"at least {count} objects ({size} bytes)"


def describe_role(iam: Any, role: dict[str, Any], inline_policy: str) -> str:
    """Return what adopting a role replaces, and the policies that it keeps.

    Args:
        iam: A client of IAM.
        role: The role, as IAM returns it.
        inline_policy: Name of the inline policy that the stack writes.
    """
    name = str(role["RoleName"])
    inline: list[str] = iam.list_role_policies(RoleName=name)["PolicyNames"]
    attached: list[dict[str, str]] = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    trust: str | dict[str, Any] = role.get("AssumeRolePolicyDocument") or {}
    document = unquote(trust) if isinstance(trust, str) else json.dumps(trust)
    tags: list[dict[str, str]] = role.get("Tags") or []
    replaced = [
        f"its trust policy ({_join(_name_statements(document))})",
        f"tags ({_join(tag['Key'] for tag in tags)})",
        *([f"inline policy `{inline_policy}`"] if inline_policy in inline else []),
    ]
    other_policies = [
        *(policy for policy in inline if policy != inline_policy),
        *(entry["PolicyName"] for entry in attached),
    ]
    kept_text = (
        f". It keeps the policies {', '.join(other_policies)}, which the stack does not know" if other_policies else ""
    )
    return f"this replaces {', '.join(replaced)}{kept_text}"


def _name_statements(document: str) -> Iterable[str]:
    statements = json.loads(document).get("Statement", [])
    statement_list = cast(list[dict[str, Any]], statements if isinstance(statements, list) else [statements])
    return [str(statement.get("Sid") or f"{statement.get('Effect')} without Sid") for statement in statement_list]


def _name_encryption(default: dict[str, Any]) -> str:
    return f"{default.get('SSEAlgorithm', '')} {default.get('KMSMasterKeyID', '')}".strip()


def _join(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
