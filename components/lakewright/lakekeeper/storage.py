"""A warehouse's storage: S3 profile, credential by reference and delete profile, and their forms on the wire."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, Tag, model_validator

from lakewright.credentials import Reference
from lakewright.lakekeeper.declared import Declared, Replace, ServerKeeps, has_unknown, one_of
from lakewright.types import (
    Arn,
    BucketName,
    ExternalIdValue,
    KeyPrefix,
    Region,
    RoleArn,
    Seconds,
    StorageEndpoint,
    StsEndpoint,
)


def _blank_is_none(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


def _flavor(value: Any) -> Any:
    return "s3-compat" if value == "minio" else value


OptionalRole = Annotated[RoleArn | None, BeforeValidator(_blank_is_none)]


class StorageLayout(Declared):
    """Where new tables go below the warehouse's prefix."""

    type: Literal["default", "tabular-only", "full-hierarchy"]
    tabular: str | None = None
    namespace: str | None = None

    @model_validator(mode="after")
    def _templates(self) -> Self:
        if has_unknown([self.tabular, self.namespace]):
            return self
        wanted = {"default": set[str](), "tabular-only": {"tabular"}, "full-hierarchy": {"tabular", "namespace"}}[
            self.type
        ]
        given = {name for name in ("tabular", "namespace") if getattr(self, name)}
        if given != wanted:
            names = " and ".join(f"`{name}`" for name in sorted(wanted)) or "no template"
            raise ValueError(f"a layout of type `{self.type}` has {names}")
        if self.type == "tabular-only" and "{uuid}" not in (self.tabular or ""):
            raise ValueError("`tabular` must contain {uuid}: without namespaces in the path, names alone would collide")
        for name in sorted(given):
            if not any(part in getattr(self, name) for part in ("{uuid}", "{name}")):
                raise ValueError(f"`{name}` must contain {{uuid}} or {{name}}")
        return self


class S3Profile(Declared):
    """Storage on S3 or what speaks its protocol."""

    type: Literal["s3"] = "s3"
    bucket: Annotated[BucketName, Replace()]
    key_prefix: Annotated[KeyPrefix, Replace()] = ""
    region: Annotated[Region, Replace()]
    endpoint: StorageEndpoint | None = None
    sts_endpoint: StsEndpoint | None = None
    flavor: Annotated[Literal["aws", "s3-compat"], BeforeValidator(_flavor)] = "aws"
    path_style_access: bool = False
    assume_role_arn: OptionalRole = None
    sts_enabled: bool = True
    sts_role_arn: OptionalRole = None
    sts_token_validity_seconds: Annotated[int, Field(ge=900, le=43200)] = 3600
    sts_session_tags: dict[str, str] = {}
    remote_signing_enabled: bool = True
    remote_signing_url_style: Literal["auto", "path", "virtual_host"] = "auto"
    push_s3_delete_disabled: bool = True
    aws_kms_key_arn: Annotated[Arn | None, BeforeValidator(_blank_is_none)] = None
    allow_alternative_protocols: bool = False
    legacy_md5_behavior: bool = False
    storage_layout: Annotated[StorageLayout | None, ServerKeeps()] = None

    @model_validator(mode="after")
    def _vending_needs_a_role(self) -> Self:
        if has_unknown([self.flavor, self.sts_enabled, self.assume_role_arn, self.sts_role_arn]):
            return self
        if self.flavor == "aws" and self.sts_enabled and not (self.assume_role_arn or self.sts_role_arn):
            raise ValueError(
                "on AWS, vended credentials need a role: set `assume_role_arn` or `sts_role_arn`,"
                " or `sts_enabled: false`"
            )
        return self

    @property
    def roles(self) -> tuple[str | None, str | None]:
        """The roles that the server assumes: for its own access, for vending."""
        return self.assume_role_arn, self.sts_role_arn

    @property
    def base(self) -> str:
        """Where it is, for people."""
        return f"s3://{self.bucket}/{self.key_prefix}".rstrip("/")


class AccessKey(Declared):
    """An access key. Both halves are references; what they point to is sent and never kept."""

    type: Literal["access-key"]
    access_key_id: Reference
    secret_access_key: Reference
    external_id: ExternalIdValue | None = None


class SystemIdentity(Declared):
    """The server's own AWS identity, which assumes the profile's role under an external id."""

    type: Literal["aws-system-identity"]
    external_id: ExternalIdValue | None = None


Credential = Annotated[
    Annotated[AccessKey, Tag("access-key")] | Annotated[SystemIdentity, Tag("aws-system-identity")],
    one_of("access-key", "aws-system-identity"),
]


class HardDelete(Declared):
    """A dropped table is gone at once."""

    type: Literal["hard"] = "hard"


class SoftDelete(Declared):
    """A dropped table can be brought back for some time."""

    type: Literal["soft"]
    expiration_seconds: Seconds


DeleteProfile = Annotated[
    Annotated[HardDelete, Tag("hard")] | Annotated[SoftDelete, Tag("soft")],
    one_of("hard", "soft"),
]


def _wire(key: str) -> str:
    return key.replace("_", "-")


def profile_request(profile: S3Profile) -> dict[str, Any]:
    """A profile as it is sent."""
    body = {_wire(key): value for key, value in profile.model_dump(exclude_none=True).items()}
    return body | {"key-prefix": profile.key_prefix or None}


def profile_observed(found: dict[str, Any], declared: S3Profile) -> S3Profile:
    """A profile as the server answers it, in the words of a declaration.

    What an older server does not know has its default, and what a declaration leaves to the server stays left out.
    """
    values: dict[str, Any] = {}
    for name, field in S3Profile.model_fields.items():
        value = found.get(_wire(name))
        values[name] = field.get_default(call_default_factory=True) if value is None else value
    layout: dict[str, Any] = found.get("storage-layout") or {"type": "default"}
    values["storage_layout"] = StorageLayout.model_construct(None, **layout) if declared.storage_layout else None
    return S3Profile.model_construct(**values)


def credential_request(credential: AccessKey | SystemIdentity, secret: Callable[[str], str]) -> dict[str, Any]:
    """A credential as it is sent: the one place where its secrets are read."""
    body: dict[str, Any] = {"type": "s3", "credential-type": credential.type}
    if isinstance(credential, AccessKey):
        # This spelling of the keys is the only one that every supported version takes.
        body["aws-access-key-id"] = secret(credential.access_key_id)
        body["aws-secret-access-key"] = secret(credential.secret_access_key)
    if credential.external_id:
        body["external-id"] = credential.external_id
    return body


def references(credential: object) -> list[str]:
    """The references in a credential."""
    if isinstance(credential, AccessKey) and not has_unknown([credential.access_key_id, credential.secret_access_key]):
        return [credential.access_key_id, credential.secret_access_key]
    return []


def delete_profile_request(profile: HardDelete | SoftDelete) -> dict[str, Any]:
    """A delete profile as it is sent."""
    return {_wire(key): value for key, value in profile.model_dump().items()}


def delete_profile_observed(found: dict[str, Any]) -> HardDelete | SoftDelete:
    """A delete profile as the server answers it."""
    if found["type"] == "soft":
        return SoftDelete.model_construct(type="soft", expiration_seconds=found["expiration-seconds"])
    return HardDelete()
