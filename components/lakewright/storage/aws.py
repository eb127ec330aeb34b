"""Backend `aws`: a bucket on AWS that the stack makes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from lakewright.names.types import AwsBucketName, Region, check_kms_key_arn
from lakewright.storage.backend import AwsBackend
from lakewright.storage.lifecycle import Days
from lakewright.validation.strict_model import StrictModel


def _kms(value: str) -> str:
    if value in {"own", "s3"}:
        return value
    if not value.startswith("arn:"):
        raise ValueError("expected `own` (a key made for the bucket), `s3` (Amazon's keys) or the ARN of a KMS key")
    return check_kms_key_arn(value)


class Encryption(StrictModel):
    """How objects are encrypted at rest."""

    kms: Annotated[str, AfterValidator(_kms)] = "s3"
    """`own`: a KMS key made for this storage; `s3`: keys that S3 manages; `arn:...`: a KMS key that exists."""


class AccessLogs(StrictModel):
    """Target of a bucket's access logs."""

    bucket: AwsBucketName
    """Bucket that receives the logs, in the region and account of the storage."""
    owner: Literal["platform", "stack"]
    """`platform`: the bucket exists and lets the logging service write. `stack`: the stack makes it, with a policy that
    lets only the logging service write."""
    prefix: Annotated[str, Field(max_length=512, pattern=r"^([^/*?$#].*/)?$")] = ""
    """Prefix of the logs' keys, with a slash at its end. Default: the name of the storage's bucket and a slash."""
    expire_days: Days | None = None
    """Days after which logs are deleted. Default: 90; with `owner: platform`, the platform decides."""
    deletion: Literal["retain", "purge"] | None = None
    """Effect of `destroy` on a log bucket of the stack: `retain` (the default) keeps it with its logs, `purge` deletes
    both."""

    @model_validator(mode="after")
    def _platform_decides(self) -> AccessLogs:
        if self.owner == "platform" and (self.expire_days is not None or self.deletion is not None):
            raise ValueError(
                "expected neither `expire_days` nor `deletion` with `owner: platform`, which owns the bucket"
            )
        return self


class AwsStorage(AwsBackend):
    """A private bucket on AWS that the stack makes and keeps."""

    summary: ClassVar[str] = "make a bucket"
    can_make_bucket: ClassVar[bool] = True
    makes_role: ClassVar[bool] = True
    archive_refusal: ClassVar[str | None] = None

    backend: Literal["aws"]
    bucket: AwsBucketName
    region: Region | None = None
    """Default: `aws:region` of the stack, else the environment's region."""
    encryption: Encryption = Encryption()
    abort_incomplete_uploads_days: Days = 7
    noncurrent_version_days: Days = 30
    """How long deleted and overwritten objects can be restored. A warehouse's `lifecycle` overrides it."""
    access_logs: AccessLogs | None = None
    """Access logs of the bucket. Default: none."""

    @property
    def purged_log_bucket(self) -> str | None:
        """Return the bucket for logs that `destroy` deletes with its contents; None without one."""
        logs = self.access_logs
        return logs.bucket if logs and logs.owner == "stack" and logs.deletion == "purge" else None

    @property
    def has_own_key(self) -> bool:
        """Return whether the stack makes a KMS key for the bucket."""
        return self.encryption.kms == "own"
