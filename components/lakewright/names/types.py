"""Types of names, IDs, addresses and sizes, with validators, for specs, resources and clients.

Sources of the rules: checks of Lakekeeper (names, prefixes, namespaces), naming rules of AWS (buckets, ARNs) and of
Kubernetes (names that become object names).
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from functools import lru_cache
from typing import Annotated, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, Field, ValidationInfo

MAX_NAMESPACE_DEPTH = 5
RESERVED_NAMESPACES = frozenset({"system", "examples", "information_schema"})

RECORDED = "recorded"
"""Validation context of recorded values, which newer rules do not apply to."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_ARN = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:(\d{12}|aws)?:\S+")
_KMS_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+")
_ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+")
_PRINCIPAL_ARN = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(root|(role|user)/[\w+=,.@/-]+)")
_POLICY_ARN = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+")
_RESERVED_PREFIXES = ("xn--", "sthree-", "amzn-s3-demo-")
_RESERVED_SUFFIXES = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
_PROJECT_ID = re.compile(r"[A-Za-z0-9_-]+")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DNS_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_REGION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ROLE_PROVIDER_ID = re.compile(r"[a-z0-9-]+")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def _warehouse_name(value: str) -> str:
    if not value.strip():
        raise ValueError("a warehouse name must not be empty")
    if len(value.encode()) > 128:
        raise ValueError("a warehouse name has at most 128 bytes")
    if "/" in value:
        raise ValueError("a warehouse name must not contain `/`: clients read the part before it as the project ID")
    return value


def _project_name(value: str) -> str:
    if not value.strip():
        raise ValueError("a project name must not be empty")
    if len(value.encode()) > 128:
        raise ValueError("a project name has at most 128 bytes")
    return value


def _project_id(value: str) -> str:
    if not _PROJECT_ID.fullmatch(value):
        raise ValueError("a project id consists of letters, digits, `-` and `_`")
    return value


def _user_id(value: str) -> str:
    provider, separator, subject = value.partition("~")
    if not (provider and separator and subject):
        raise ValueError("a user's id is `IDP~SUBJECT`, such as `oidc~1f2e` or `kubernetes~UID`")
    if len(subject.encode()) >= 128 or not value.isprintable():
        raise ValueError("a user's ID has fewer than 128 bytes after `~`, and no control characters")
    return value


def _role_id(value: str) -> str:
    if not _UUID.fullmatch(value):
        raise ValueError("a role's ID is a UUID that the server assigns: `role_id` of a `Role` or of `get_role`")
    return value.lower()


def _bucket_name(value: str) -> str:
    if not _BUCKET.fullmatch(value) or ".." in value:
        raise ValueError(
            "a bucket name has 3 to 63 lower-case letters, digits, `.` and `-`, starts and ends with a letter or digit,"
            " and has no `..`"
        )
    return value


def _aws_bucket_name(value: str) -> str:
    """Check the rules of AWS for names of new buckets, which S3-compatible stores need not have."""
    _bucket_name(value)
    if _is_ipv4(value):
        raise ValueError("a bucket name on AWS must not be an IP address")
    if value.startswith(_RESERVED_PREFIXES) or value.endswith(_RESERVED_SUFFIXES):
        parts = ", ".join(f"`{part}`" for part in (*_RESERVED_PREFIXES, *_RESERVED_SUFFIXES))
        raise ValueError(f"a bucket name on AWS must not begin or end with a reserved part: {parts}")
    return value


def _gcs_bucket_name(value: str) -> str:
    """Check Lakekeeper's rules, which are narrower than Google's: no `_`, and 63 characters with dots too."""
    _bucket_name(value)
    if value.startswith("goog"):
        raise ValueError("a bucket name on GCS must not start with `goog`")
    if _is_ipv4(value):
        raise ValueError("a bucket name on GCS must not be an IP address")
    return value


def _is_ipv4(value: str) -> bool:
    try:
        ipaddress.IPv4Address(value)
    except ValueError:
        return False
    return True


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value.strip()


def _key_prefix(value: str) -> str:
    prefix = value.strip(" /")
    if len(prefix.encode()) > 896:
        raise ValueError("a key prefix has at most 896 bytes")
    if any(part in {"", ".", ".."} for part in prefix.split("/")) and prefix:
        raise ValueError("a key prefix must not contain empty, `.` or `..` segments")
    if any(character in prefix for character in "*?#"):
        raise ValueError("a key prefix must not contain `*`, `?` or `#`")
    return prefix


def _s3_key_prefix(value: str, info: ValidationInfo) -> str:
    # Values that an earlier release accepted must still load from the state.
    if "$" in value and info.context != RECORDED:
        raise ValueError("a key prefix on S3 must not contain `$`, which begins a variable in IAM policies")
    return value


def _adls_key_prefix(value: str) -> str:
    if len(value.encode()) > 512:
        raise ValueError("a key prefix on ADLS has at most 512 bytes")
    return value


def _gcs_key_prefix(value: str) -> str:
    if value.startswith(".well-known/acme-challenge/"):
        raise ValueError("a key prefix on GCS must not start with `.well-known/acme-challenge/`")
    return value


def _role_provider_id(value: str) -> str:
    if not _ROLE_PROVIDER_ID.fullmatch(value):
        raise ValueError("a role's provider id has lower-case letters, digits and `-` only")
    return value


def _region(value: str) -> str:
    if not _REGION.fullmatch(value) or len(value) > 128:
        raise ValueError("a region looks like `us-west-2`")
    return value


def _arn(value: str) -> str:
    if not _ARN.fullmatch(value):
        raise ValueError("an ARN looks like `arn:aws:service:region:account:resource`")
    return value


def check_kms_key_arn(value: str) -> str:
    """Return the ARN of a KMS key.

    Raises:
        ValueError: It is another ARN. An IAM policy that names an alias allows nothing.
    """
    if not _KMS_KEY_ARN.fullmatch(value):
        raise ValueError(
            "the ARN of a KMS key looks like `arn:aws:kms:REGION:123456789012:key/ID`. Policies of AWS know no aliases"
        )
    return value


def _role_arn(value: str) -> str:
    if not _ROLE_ARN.fullmatch(value):
        raise ValueError("a role's ARN looks like `arn:aws:iam::123456789012:role/NAME`")
    return value


def _principal_arn(value: str) -> str:
    if not _PRINCIPAL_ARN.fullmatch(value):
        raise ValueError(
            "the ARN of a principal looks like `arn:aws:iam::123456789012:role/NAME`, `...:user/NAME` or `...:root`"
        )
    return value


def why_no_tag(value: str) -> str | None:
    """Return why AWS refuses a text in a tag, or None. Source: AWS, "Tag naming limits and requirements"."""
    if all(character in "_.:/=+-@" or unicodedata.category(character)[0] in "LNZ" for character in value):
        return None
    return "a tag on AWS has letters, digits, spaces and any of `_.:/=+-@`"


def _tag_text(value: str) -> str:
    if reason := why_no_tag(value):
        raise ValueError(reason)
    return value


def _tag_key(value: str) -> str:
    _tag_text(value)
    if value.lower().startswith(("aws:", "lakewright:")):
        raise ValueError("the key of a tag must not begin with `aws:` or `lakewright:`, which are reserved")
    return value


def _policy_arn(value: str) -> str:
    if not _POLICY_ARN.fullmatch(value):
        raise ValueError("the ARN of a managed policy looks like `arn:aws:iam::123456789012:policy/NAME`")
    return value


def namespace_parts(path: str) -> list[str]:
    """Return the levels of a dotted namespace path, outermost first."""
    return path.split(".")


def _namespace_path(value: str) -> str:
    parts = namespace_parts(value)
    if any(not part.strip() for part in parts):
        raise ValueError("a namespace consists of levels with dots between them, and no level is empty")
    if len(parts) > MAX_NAMESPACE_DEPTH:
        raise ValueError(f"a namespace has at most {MAX_NAMESPACE_DEPTH} levels")
    if "+" in value or "\x1f" in value or "/" in value:
        raise ValueError("a namespace must not contain `+`, `/` or the unit separator")
    if parts[0].lower() in RESERVED_NAMESPACES:
        raise ValueError(f"`{parts[0]}` is reserved by Lakekeeper for internal use")
    return value


def _table_name(name: str) -> str:
    if not name.strip():
        raise ValueError("a table's name must not be empty")
    if any(character in name for character in "+/\x1f"):
        raise ValueError("a table's name must not contain `+`, `/` or the unit separator")
    return name


def _tenant_name(value: str) -> str:
    if not _DNS_LABEL.fullmatch(value) or len(value) > 40:
        raise ValueError(
            "the name has up to 40 lower-case letters, digits and `-`, starts with a letter and does not end with `-`"
        )
    return value


def _external_id(value: str) -> str:
    if not re.fullmatch(r"[\w+=,.@:/-]{2,1224}", value, re.ASCII):
        raise ValueError("an external id has 2 to 1224 letters, digits and any of `_+=,.@:/-`")
    return value


@lru_cache(maxsize=256)
def normalize_endpoint(value: str, *, keep_path: bool = False, keep_query: bool = False) -> str:
    """Return a URL as Lakekeeper normalizes it: host in lower case, no default port, a slash after it.

    Raises:
        ValueError: It is not an HTTP URL of host and port.
    """
    try:
        parts = urlsplit(value.strip())
        port = parts.port
    except ValueError:
        parts, port = None, None
    if parts is None or parts.scheme not in _DEFAULT_PORTS or not parts.hostname or port == 0:
        raise ValueError("an endpoint looks like `https://host:port`")
    if parts.username or parts.password:
        raise ValueError("an endpoint must not contain a user name or password")
    has_more = parts.fragment or (parts.query and not keep_query) or (parts.path not in {"", "/"} and not keep_path)
    if has_more:
        raise ValueError("an endpoint ends after host and port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        host = f"{host}:{port}"
    return urlunsplit((parts.scheme, host, parts.path or "/", parts.query, ""))


def _storage_endpoint(value: str) -> str:
    return normalize_endpoint(value)


def _sts_endpoint(value: str) -> str:
    return normalize_endpoint(value, keep_path=True)


def _service_url(value: str) -> str:
    return normalize_endpoint(value, keep_path=True).rstrip("/")


def _normalize_token_url(value: str) -> str:
    return normalize_endpoint(value, keep_path=True, keep_query=True)


TenantName = Annotated[str, AfterValidator(_tenant_name)]
"""Name of a tenant; part of bucket, role and Kubernetes names, hence a DNS label."""
ComputingUnitName = Annotated[str, AfterValidator(_tenant_name)]
ProjectName = Annotated[str, AfterValidator(_project_name)]
ProjectId = Annotated[str, AfterValidator(_project_id)]
UserId = Annotated[str, AfterValidator(_user_id)]
"""`IDP~SUBJECT`: name of the identity provider in Lakekeeper, and subject of the user."""
RoleId = Annotated[str, AfterValidator(_role_id)]
WarehouseName = Annotated[str, AfterValidator(_warehouse_name)]
NamespacePath = Annotated[str, AfterValidator(_namespace_path)]
"""Levels with dots between them: `sales.daily`."""
TableName = Annotated[str, AfterValidator(_table_name)]
BucketName = Annotated[str, AfterValidator(_bucket_name)]
AwsBucketName = Annotated[str, AfterValidator(_aws_bucket_name)]
GcsBucketName = Annotated[str, AfterValidator(_gcs_bucket_name)]
NotBlank = Annotated[str, AfterValidator(_not_blank)]
KeyPrefix = Annotated[str, AfterValidator(_key_prefix)]
"""Prefix of object keys, without slashes at its ends; empty means the bucket's root."""
S3KeyPrefix = Annotated[KeyPrefix, AfterValidator(_s3_key_prefix)]
AdlsKeyPrefix = Annotated[KeyPrefix, AfterValidator(_adls_key_prefix)]
GcsKeyPrefix = Annotated[KeyPrefix, AfterValidator(_gcs_key_prefix)]
RoleProviderId = Annotated[str, AfterValidator(_role_provider_id)]
"""Identity provider of a role, as named in Lakekeeper's configuration."""
Region = Annotated[str, AfterValidator(_region)]
Arn = Annotated[str, AfterValidator(_arn)]
KmsKeyArn = Annotated[str, AfterValidator(check_kms_key_arn)]
RoleArn = Annotated[str, AfterValidator(_role_arn)]
PrincipalArn = Annotated[str, AfterValidator(_principal_arn)]
"""IAM role, user or account that may assume a role."""
PolicyArn = Annotated[str, AfterValidator(_policy_arn)]
AwsTagKey = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_tag_key)]
AwsTagValue = Annotated[str, Field(max_length=256), AfterValidator(_tag_text)]
ExternalIdValue = Annotated[str, AfterValidator(_external_id)]
StorageEndpoint = Annotated[str, AfterValidator(_storage_endpoint)]
"""`http(s)://host[:port]/`, as the server normalizes it."""
StsEndpoint = Annotated[str, AfterValidator(_sts_endpoint)]
ServiceUrl = Annotated[str, AfterValidator(_service_url)]
"""Address of a service, with an optional path and without a trailing slash."""
TokenUrl = Annotated[str, AfterValidator(_normalize_token_url)]
"""Token endpoint, kept as written: a trailing slash or a query matters to some identity providers."""
Seconds = Annotated[int, Field(ge=1)]
FormatVersion = Literal[1, 2, 3]
"""Version of the Iceberg table format."""
Deletion = Literal["protect", "retain", "purge"]
"""Effect of a deletion on data: `protect` refuses while there is any, `retain` keeps it, `purge` deletes it."""

WarehouseDeletion = Literal["protect", "retain", "archive", "purge"]
"""`Deletion` of a tenant's warehouse. `archive` retains it, makes it read-only, and may purge it later."""


def prefixes_overlap(prefix: str, other: str) -> bool:
    """Return whether one key prefix is within the other. An empty prefix is the whole bucket."""
    return is_prefix_within(prefix, other) or is_prefix_within(other, prefix)


def is_prefix_within(prefix: str, other: str) -> bool:
    """Return whether a key prefix equals the other one or is below it."""
    parts, other_parts = _split_prefix(prefix), _split_prefix(other)
    return parts[: len(other_parts)] == other_parts


def _split_prefix(prefix: str) -> list[str]:
    return [part for part in prefix.strip().split("/") if part]
