"""Backend `aws`: a bucket on AWS that the stack makes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from lakewright.names.types import Region
from lakewright.storage.backend import AwsBackend
from lakewright.validation.strict_model import StrictModel

Days = Annotated[int, Field(ge=1, le=3650)]


def _kms(value: str) -> str:
    if value not in {"own", "s3"} and not (value.startswith("arn:") and ":kms:" in value):
        raise ValueError("expected `own` (a key made for the bucket), `s3` (Amazon's keys) or the ARN of a KMS key")
    return value


class Encryption(StrictModel):
    """How objects are encrypted at rest."""

    kms: Annotated[str, AfterValidator(_kms)] = "s3"
    """`own`: a KMS key made for this storage; `s3`: keys that S3 manages; `arn:...`: a KMS key that exists."""


class AwsStorage(AwsBackend):
    """A private bucket on AWS that the stack makes and keeps."""

    summary: ClassVar[str] = "make a bucket"
    makes_bucket: ClassVar[bool] = True
    makes_role: ClassVar[bool] = True

    backend: Literal["aws"]
    region: Region | None = None
    """Default: `aws:region` of the stack, else the environment's region."""
    encryption: Encryption = Encryption()
    abort_incomplete_uploads_days: Days = 7
    noncurrent_version_days: Days = 30
    """How long deleted and overwritten objects can be restored."""

    @property
    def has_own_key(self) -> bool:
        """Return whether the stack makes a KMS key for the bucket."""
        return self.encryption.kms == "own"
