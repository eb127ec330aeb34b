"""S3 storage profiles and credentials: shape, normal form, and permitted updates."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, ValidationInfo, model_validator

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import knows
from lakewright_sandbox.lakekeeper.storage.base import (
    StorageCredentialBody,
    StorageLayoutBody,
    StorageProfileBody,
    prefixes_overlap,
    refuse_changes,
)


class S3ProfileBody(StorageProfileBody):
    """An S3 profile. The order of fields is that of the server's responses."""

    type: Literal["s3"]
    bucket: str
    key_prefix: str | None = None
    assume_role_arn: str | None = None
    endpoint: str | None = None
    region: str
    path_style_access: bool | None = None
    sts_role_arn: str | None = None
    sts_endpoint: str | None = None
    sts_enabled: bool
    sts_token_validity_seconds: Annotated[int, Field(ge=0)] = 3600
    sts_session_tags: dict[str, str] = Field(default_factory=dict)
    flavor: Literal["aws", "s3-compat", "minio"] = "aws"
    allow_alternative_protocols: bool | None = None
    remote_signing_url_style: Literal["auto", "path", "virtual_host"] = Field(
        "auto",
        validation_alias=AliasChoices("remote-signing-url-style", "s3-url-detection-mode"),
        serialization_alias="remote-signing-url-style",
    )
    push_s3_delete_disabled: bool = True
    aws_kms_key_arn: str | None = None
    remote_signing_enabled: bool = True
    legacy_md5_behavior: bool | None = None
    storage_layout: StorageLayoutBody | None = None

    @model_validator(mode="after")
    def _drop_unknown_fields(self, info: ValidationInfo) -> S3ProfileBody:
        if not knows(info, "0.12"):
            self.sts_endpoint = self.storage_layout = None
        return self

    def normalize(self) -> S3ProfileBody:
        """Return the profile as the server stores it. Raises the server's 400 for an invalid profile."""
        check_bucket(self.bucket)
        if not self.region.strip() or len(self.region) > 128:
            raise ApiError(400, "Invalidregion", f"Invalid region `{self.region}`: expected 1 to 128 characters.")
        prefix = (self.key_prefix or "").strip(" /") or None
        if prefix and len(prefix) > 896:
            raise ApiError(400, "Invalidkey-prefix", "Storage profile key-prefix must be at most 896 characters.")
        profile = self.model_copy(
            update={
                "key_prefix": prefix,
                "endpoint": _endpoint(self.endpoint, self.bucket),
                "sts_endpoint": _sts_endpoint(self.sts_endpoint),
                "assume_role_arn": _arn("assume-role-arn", self.assume_role_arn),
                "sts_role_arn": _arn("sts-role-arn", self.sts_role_arn),
                "aws_kms_key_arn": (self.aws_kms_key_arn or "").strip() or None,
                "flavor": "s3-compat" if self.flavor == "minio" else self.flavor,
            }
        )
        if profile.flavor == "aws" and profile.sts_enabled and not (profile.sts_role_arn or profile.assume_role_arn):
            raise ApiError(
                400,
                "Invalidsts-role-arn",
                "Either `sts-role-arn` or `assume-role-arn` is required for Storage Profiles with AWS flavor "
                "if STS is enabled.",
            )
        return profile

    @property
    def base_location(self) -> str:
        """Return the location of the warehouse's data."""
        return f"s3://{self.bucket}/{self.key_prefix}" if self.key_prefix else f"s3://{self.bucket}"

    @property
    def vending_role(self) -> str | None:
        """Return the role of vended credentials, None if there is none."""
        return self.sts_role_arn or self.assume_role_arn

    def overlaps(self, other: S3ProfileBody) -> bool:
        """Return whether either location contains the other, within one bucket, region and endpoint."""
        if (self.bucket, self.region, self.endpoint) != (other.bucket, other.region, other.endpoint):
            return False
        return prefixes_overlap(self.key_prefix, other.key_prefix)

    def update_from(self, new: S3ProfileBody, *, region_moves: bool) -> S3ProfileBody:
        """Return the profile after an update.

        Args:
            new: The requested profile.
            region_moves: Whether the region may change if there is an endpoint.

        Raises:
            ApiError: 400 `UpdateError` for a field that may not change.
        """
        refuse_changes(self, new, "bucket", "key_prefix")
        if new.endpoint is None or not region_moves:
            refuse_changes(self, new, "region")
        kept_fields: dict[str, Any] = {}
        if new.storage_layout is None:
            kept_fields["storage_layout"] = self.storage_layout
        if new.allow_alternative_protocols is None and self.allow_alternative_protocols:
            kept_fields["allow_alternative_protocols"] = True
        return new.model_copy(update=kept_fields)


class S3Credential(StorageCredentialBody):
    """An S3 credential. Both spellings of the key fields are accepted, but not together."""

    type: Literal["s3"]
    credential_type: Literal["access-key", "aws-system-identity", "cloudflare-r2"]
    access_key_id: str | None = None
    secret_access_key: str | None = None
    aws_access_key_id: str | None = None
    aws_secret_access_key: str | None = None
    external_id: str | None = None
    token: str | None = None
    account_id: str | None = None

    @model_validator(mode="after")
    def _one_spelling(self, info: ValidationInfo) -> S3Credential:
        if self.credential_type == "aws-system-identity":
            return self
        if not knows(info, "0.12"):
            prefix = "aws_" if self.credential_type == "access-key" else ""
            for name in (f"{prefix}access_key_id", f"{prefix}secret_access_key"):
                if getattr(self, name) is None:
                    raise ValueError(f"missing field `{name.replace('_', '-')}`")
        for name in ("access_key_id", "secret_access_key"):
            new, old = getattr(self, name), getattr(self, f"aws_{name}")
            if new is not None and old is not None:
                raise ValueError(f"duplicate field `{name.replace('_', '-')}`")
            if new is None and old is None:
                raise ValueError(f"missing field `{name.replace('_', '-')}`")
            setattr(self, name, new if new is not None else old)
            setattr(self, f"aws_{name}", None)
        return self

    @property
    def kind(self) -> dict[str, str]:
        """Return the credential's type as responses contain it."""
        return {"type": "s3", "credential-type": self.credential_type}


def apply_forced_settings(profile: S3ProfileBody, credential: S3Credential | None) -> S3ProfileBody:
    """Return the profile with settings that a credential forces: Cloudflare's keys set a flavor and exclude roles."""
    if credential is None or credential.credential_type != "cloudflare-r2":
        return profile
    if profile.endpoint is None:
        raise ApiError(400, "Invalidendpoint", "Storage Profile `endpoint` must be provided for Cloudflare R2.")
    forced = {"assume_role_arn": None, "sts_role_arn": None, "sts_enabled": True, "flavor": "s3-compat"}
    return profile.model_copy(update=forced)


def check_bucket(bucket: str) -> None:
    """Raise 400 for an invalid bucket name."""
    reason = None
    if not 3 <= len(bucket) <= 63:
        reason = "Bucket name must be between 3 and 63 characters long."
    elif not re.fullmatch(r"[a-z0-9.-]+", bucket):
        reason = "Bucket name can consist only of lowercase letters, numbers, dots (.), and hyphens (-)."
    elif not (bucket[0].isalnum() and bucket[-1].isalnum()):
        reason = "Bucket name must begin and end with a letter or number."
    elif ".." in bucket:
        reason = "Bucket name must not contain two adjacent periods."
    if reason:
        message = f"Invalid location `s3://{bucket}`. Context: []. Source: Invalid bucket name `{bucket}`: {reason}"
        raise ApiError(400, "InvalidLocation", message)


def _endpoint(url: str | None, bucket: str) -> str | None:
    if url is None or not url.strip():
        return None
    normal = _normal_url(url, "InvalidS3Endpoint", "S3 endpoint")
    scheme, host, path, *_ = urlsplit(normal)
    if path.strip("/") not in ("", bucket):
        raise ApiError(400, "InvalidS3Endpoint", f"Storage Profile `endpoint` must not have a path, found `{path}`.")
    return f"{scheme}://{host}/"


def _sts_endpoint(url: str | None) -> str | None:
    return None if url is None or not url.strip() else _normal_url(url, "InvalidStsEndpoint", "STS endpoint")


def _normal_url(url: str, kind: str, label: str) -> str:
    """Return a URL as URL libraries write it: host in lower case, no default port, at least `/` as path."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ApiError(400, kind, f"{label} must be an http or https URL, found `{url}`.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = {"http": 80, "https": 443}[parts.scheme]
    port = f":{parts.port}" if parts.port not in (None, default) else ""
    return f"{parts.scheme}://{host}{port}{parts.path or '/'}"


def _arn(field: str, arn: str | None) -> str | None:
    arn = (arn or "").strip() or None
    if arn and not re.fullmatch(r"arn:[\w-]+:[\w-]+:[\w-]*:\d*:.+", arn):
        raise ApiError(400, f"Invalid{field}", f"Storage Profile `{field}` must be an ARN, found `{arn}`.")
    return arn
