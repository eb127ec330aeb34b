"""Where a tenant's data lies: a bucket that the stack makes, an S3-compatible store, or the tenant's own bucket."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from lakewright.credentials.references import Reference
from lakewright.names.host_kinds import HostKind, kind_of_host
from lakewright.names.types import Arn, BucketName, ExternalIdValue, Region, RoleArn, StorageEndpoint, StsEndpoint
from lakewright.validation.strict_model import Part

Days = Annotated[int, Field(ge=1, le=3650)]


def _reachable(value: str) -> str:
    host = urlsplit(value).hostname or ""
    if not re.fullmatch(r"[a-z0-9.:-]+", host):
        # Clients decode `%31` and full-width digits to others than are written here.
        raise ValueError("expected a host of letters, digits, `.` and `-`, or an IP address")
    kind = kind_of_host(host)
    if kind is HostKind.METADATA:
        raise ValueError(f"expected a store, which {kind.value} is not")
    return value


TenantEndpoint = Annotated[StorageEndpoint, AfterValidator(_reachable)]
"""Endpoint of a store in a spec of a tenant. Which ones it may name is for `tenant_specs` of the environment to say."""
TenantStsEndpoint = Annotated[StsEndpoint, AfterValidator(_reachable)]


def _kms(value: str) -> str:
    if value not in {"own", "s3"} and not (value.startswith("arn:") and ":kms:" in value):
        raise ValueError("expected `own` (a key of the tenant's), `s3` (Amazon's keys) or the ARN of a KMS key")
    return value


class Encryption(Part):
    """How objects are encrypted at rest."""

    kms: Annotated[str, AfterValidator(_kms)] = "s3"
    """`own`: a KMS key made for this storage; `s3`: keys that S3 manages; `arn:...`: a KMS key that exists."""


class AwsStorage(Part):
    """A private bucket on AWS that the stack makes and keeps."""

    backend: Literal["aws"]
    bucket: BucketName
    region: Region | None = None
    """Default: `aws:region` of the stack, else the environment's region."""
    encryption: Encryption = Encryption()
    abort_incomplete_uploads_days: Days = 7
    noncurrent_version_days: Days = 30
    """How long deleted and overwritten objects can still be brought back."""


class StoreCredential(Part):
    """An access key of an S3-compatible store, by reference; Lakekeeper alone uses it."""

    access_key_id: Reference
    secret_access_key: Reference


class S3Storage(Part):
    """A bucket that exists in an S3-compatible store."""

    backend: Literal["s3"]
    bucket: BucketName
    endpoint: TenantEndpoint
    region: Region = "local-01"
    path_style: bool = True
    credential: StoreCredential
    sts: bool = True
    """Whether the store has AssumeRole. Without it, credentials cannot be vended: use `delegation: remote-signing`."""
    sts_endpoint: TenantStsEndpoint | None = None
    sts_role_arn: Arn | None = None


class ExistingStorage(Part):
    """The tenant's own bucket on AWS: nothing is made in it, and a role of the tenant's gives access."""

    backend: Literal["existing"]
    bucket: BucketName
    region: Region
    role_arn: RoleArn
    external_id: ExternalIdValue | None = None
    """What the tenant's role demands as `sts:ExternalId`, or `config:KEY` for a key of the stack's configuration.

    Without it the stack makes one: the first `up` fails at the role, `lakewright external-ids` prints what the role has
    to demand, and the next `up` goes on.
    """
    kms_key_arn: Arn | None = None


StorageSpec = Annotated[AwsStorage | S3Storage | ExistingStorage, Field(discriminator="backend")]
