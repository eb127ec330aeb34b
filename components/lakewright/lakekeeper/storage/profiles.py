"""Storage profiles and delete profiles of warehouses, with their conversion to requests and from responses."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, Tag, model_validator

from lakewright.lakekeeper.provider.inputs import (
    Declared,
    Replace,
    ServerKeeps,
    Since,
    discriminate_by_type,
    has_unknown,
    is_unknown,
)
from lakewright.lakekeeper.storage.azure_and_google import (
    AdlsProfile,
    GcsProfile,
    StorageLayout,
    adls_defaults_left_out,
)
from lakewright.lakekeeper.storage.credentials import AnyCredential, CloudflareR2, UndeclaredCredential
from lakewright.names.types import Arn, BucketName, Region, RoleArn, S3KeyPrefix, Seconds, StorageEndpoint, StsEndpoint


def _blank_is_none(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


def _flavor(value: Any) -> Any:
    return "s3-compat" if value == "minio" else value


OptionalRole = Annotated[RoleArn | None, BeforeValidator(_blank_is_none)]


class S3Profile(Declared):
    """Storage on S3 or an S3-compatible store."""

    type: Literal["s3"] = "s3"
    """`s3`: Amazon S3 or an S3-compatible store."""
    bucket: Annotated[BucketName, Replace()]
    """Name of the bucket."""
    key_prefix: Annotated[S3KeyPrefix, Replace()] = ""
    """Folder in the bucket for all data of the warehouse. If empty, the warehouse uses the whole bucket alone."""
    region: Annotated[Region, Replace()]
    """Region of the bucket. It changes in place if `endpoint` is set and the server is 0.12 or newer."""
    endpoint: StorageEndpoint | None = None
    """URL of an S3-compatible store. Default: AWS."""
    sts_endpoint: Annotated[StsEndpoint | None, Since((0, 12))] = None
    """URL of the store's STS. Default: `endpoint`."""
    flavor: Annotated[Literal["aws", "s3-compat"], BeforeValidator(_flavor)] = "aws"
    """`aws`, or `s3-compat` for all other stores."""
    path_style_access: bool = False
    """Whether URLs have the bucket in the path instead of the host name."""
    assume_role_arn: OptionalRole = None
    """Role that the server assumes for its own access, and for vending unless `sts_role_arn` is set."""
    sts_enabled: bool = True
    """Whether tables are loaded with vended credentials."""
    sts_role_arn: OptionalRole = None
    """Role that the server assumes to vend credentials."""
    sts_token_validity_seconds: Annotated[int, Field(ge=900, le=43200)] = 3600
    """Lifetime of a vended credential, in seconds; at most the session duration of the role."""
    sts_session_tags: dict[str, str] = {}
    """Session tags for both roles."""
    remote_signing_enabled: bool = True
    """Whether the server signs requests of clients (remote signing)."""
    remote_signing_url_style: Literal["auto", "path", "virtual_host"] = "auto"
    """How the server finds the bucket in a URL to sign."""
    push_s3_delete_disabled: bool = True
    """Whether clients are configured not to delete files, if the warehouse has soft deletion."""
    aws_kms_key_arn: Annotated[Arn | None, BeforeValidator(_blank_is_none)] = None
    """KMS key for encryption by clients. Vended credentials may use it."""
    allow_alternative_protocols: bool = False
    """Whether table locations may begin with `s3a://` or `s3n://`."""
    legacy_md5_behavior: bool = False
    """Whether requests have MD5 checksums, which old stores require."""
    storage_layout: Annotated[StorageLayout | None, ServerKeeps(), Since((0, 12))] = None
    """Layout of the folders of new tables below the prefix. If omitted, the server keeps its value."""

    @model_validator(mode="after")
    def _require_vending_role(self) -> Self:
        if has_unknown([self.flavor, self.sts_enabled, self.assume_role_arn, self.sts_role_arn]):
            return self
        if self.flavor == "aws" and self.sts_enabled and not (self.assume_role_arn or self.sts_role_arn):
            raise ValueError(
                "on AWS, vended credentials need a role: set `assume_role_arn` or `sts_role_arn`,"
                " or `sts_enabled: false`"
            )
        return self

    @property
    def is_on_aws(self) -> bool:
        """Whether the store is AWS."""
        return self.flavor == "aws"

    @property
    def roles(self) -> tuple[str | None, str | None]:
        """Roles that the server assumes: for its own access, and for vending."""
        return self.assume_role_arn, self.sts_role_arn

    @property
    def place(self) -> tuple[Any, ...]:
        """Values that identify the storage and never change."""
        return self.type, self.bucket, self.key_prefix, self.region

    @property
    def where(self) -> str:
        """Location as a URL, for messages."""
        return f"s3://{self.bucket}/{self.key_prefix}".rstrip("/") + f" in {self.region}"


Profile = S3Profile | AdlsProfile | GcsProfile

PROFILES: dict[str, type[Profile]] = {"s3": S3Profile, "adls": AdlsProfile, "gcs": GcsProfile}

FAMILY = {"s3": "s3", "adls": "az", "gcs": "gcs"}
"""Family of credentials, by type of storage."""

StorageProfile = Annotated[
    Annotated[S3Profile, Tag("s3")] | Annotated[AdlsProfile, Tag("adls")] | Annotated[GcsProfile, Tag("gcs")],
    discriminate_by_type("s3", "adls", "gcs", default="s3"),
]


class HardDelete(Declared):
    """A dropped table is deleted immediately."""

    type: Literal["hard"] = "hard"
    """`hard`."""


class SoftDelete(Declared):
    """A dropped table can be restored until it expires."""

    type: Literal["soft"]
    """`soft`."""
    expiration_seconds: Seconds
    """Seconds until a dropped table is deleted permanently."""


DeleteProfile = Annotated[
    Annotated[HardDelete, Tag("hard")] | Annotated[SoftDelete, Tag("soft")],
    discriminate_by_type("hard", "soft"),
]


def _wire(key: str) -> str:
    return key.replace("_", "-")


def profile_request(profile: Profile) -> dict[str, Any]:
    """Return the request form of a storage profile."""
    body = {_wire(key): value for key, value in profile.props().items()}
    return body | {"key-prefix": profile.key_prefix or None}


def profile_observed(response: dict[str, Any], args: Profile) -> Profile:
    """Return a response as a storage profile, comparable with the declared profile.

    A field that an older server does not report has its default. An omitted storage layout remains omitted.

    Raises:
        KeyError: If the type of storage is not supported.
    """
    profile = PROFILES[response["type"]]
    values: dict[str, Any] = {}
    for name, field in profile.model_fields.items():
        value = response.get(_wire(name))
        values[name] = field.get_default(call_default_factory=True) if value is None else value
    layout: dict[str, Any] = response.get("storage-layout") or {"type": "default"}
    values["storage_layout"] = StorageLayout.model_construct(None, **layout) if args.storage_layout else None
    if profile is AdlsProfile:
        values |= adls_defaults_left_out(values)
    return profile.model_construct(None, **values)


def mismatch(profile: Profile, credential: AnyCredential | None) -> str | None:
    """Return why a credential does not match a storage profile, or None if it does."""
    if is_unknown(credential) or isinstance(credential, UndeclaredCredential):
        return None
    family = FAMILY[profile.type]
    if credential is None:
        return None if family == "s3" else f"storage of type `{profile.type}` needs a credential"
    if credential.family != family:
        return f"a credential of type `{credential.type}` is not for storage of type `{profile.type}`"
    if isinstance(credential, CloudflareR2) and isinstance(profile, S3Profile):
        return _not_r2(profile)
    return None


def _not_r2(profile: S3Profile) -> str | None:
    """Return why a profile does not match a Cloudflare R2 credential, or None if it does.

    The server would change such a profile itself, and every later read would report drift.
    """
    if has_unknown([profile.endpoint, profile.flavor, profile.sts_enabled, *profile.roles]):
        return None
    if profile.endpoint and profile.flavor == "s3-compat" and profile.sts_enabled and not any(profile.roles):
        return None
    return (
        "Cloudflare R2 needs `endpoint`, `flavor` `s3-compat` and `sts_enabled` in `storage`, and neither"
        " `assume_role_arn` nor `sts_role_arn`"
    )


def delete_profile_request(profile: HardDelete | SoftDelete) -> dict[str, Any]:
    """Return the request form of a delete profile."""
    return {_wire(key): value for key, value in profile.model_dump().items()}


def delete_profile_observed(response: dict[str, Any]) -> HardDelete | SoftDelete:
    """Return a response as a delete profile."""
    if response["type"] == "soft":
        return SoftDelete.model_construct(type="soft", expiration_seconds=response["expiration-seconds"])
    return HardDelete()
