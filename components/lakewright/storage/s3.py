"""Backend `s3`: a bucket of an S3-compatible store, reached with an access key. It exists, or the stack makes it."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from lakewright.credentials.references import Reference
from lakewright.field_map.marks import NotExpressibleError
from lakewright.names.types import Arn, NotBlank, Region, normalize_endpoint
from lakewright.storage.backend import (
    AwsDefaults,
    BucketProbe,
    Question,
    StorageAddress,
    StorageBackend,
    WarehouseAccess,
    s3_profile,
)
from lakewright.storage.live_storage import AccessKeys, LiveStorage, Placeholders, RoleFactsReader, is_in_s3
from lakewright.storage.restricted_fields import TenantEndpoint, TenantStsEndpoint
from lakewright.validation.strict_model import StrictModel

if TYPE_CHECKING:
    import pulumi


_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----", re.DOTALL)


def _certificates(value: str) -> str:
    """Return the certificates of a PEM text without anything else."""
    blocks = list(_BLOCK.finditer(value))
    if any(block[1] != "CERTIFICATE" for block in blocks):
        # The message must not repeat the value, which may be a private key.
        raise ValueError("expected certificates only; found another kind of PEM block, which may be a secret")
    if not blocks:
        raise ValueError("expected the certificates of an authority in PEM (`-----BEGIN CERTIFICATE-----`)")
    text = "\n".join(block[0] for block in blocks) + "\n"
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("expected certificates in PEM; at least one of them cannot be read") from None
    return text


Certificates = Annotated[str, AfterValidator(_certificates)]
"""Certificates in PEM, without private keys."""


StoreProduct = Literal["minio", "rustfs", "seaweedfs", "ceph", "r2"]


@dataclass(frozen=True)
class StoreFeatures:
    """Parts of S3 that a store has. `docs/guides/stores.md` has the same table."""

    makes_buckets: bool = True
    """Whether a stack can make and empty a bucket: R2 cannot list versions, and marks no bucket with a tag."""
    needs_sts_role: bool = False
    """Whether AssumeRole needs the ARN of a role."""
    has_own_credential_api: bool = False
    """Whether Lakekeeper gets temporary credentials from an API of the store's own instead of STS."""


STORES: Mapping[StoreProduct, StoreFeatures] = {
    "minio": StoreFeatures(),
    "rustfs": StoreFeatures(),
    "seaweedfs": StoreFeatures(needs_sts_role=True),
    "ceph": StoreFeatures(needs_sts_role=True),
    "r2": StoreFeatures(makes_buckets=False, has_own_credential_api=True),
}
"""Features by the name that a spec gives a store."""


_ONLY_WHEN_MADE = ("versioning", "noncurrent_version_days", "tls_only", "admin_credential")
"""Fields of buckets that the stack makes."""
_OF_CREDENTIAL_API = ("token", "account_id")
"""Fields of credentials for a store with an API of its own for temporary credentials."""


class StoreCredential(StrictModel):
    """An access key of an S3-compatible store, by reference."""

    access_key_id: Reference
    secret_access_key: Reference


class LakekeeperCredential(StoreCredential):
    """The access key that Lakekeeper uses."""

    token: Reference | None = None
    """API token that creates temporary credentials, for `store: r2`."""
    account_id: NotBlank | None = None
    """Id of the Cloudflare account, for `store: r2`."""


class S3Storage(StorageBackend):
    """A bucket of an S3-compatible store."""

    summary: ClassVar[str] = "a bucket of an S3-compatible store"
    can_make_bucket: ClassVar[bool] = True
    archive_refusal: ClassVar[str | None] = "Lakekeeper writes with an access key, which no policy of the stack limits"
    questions: ClassVar[Sequence[Question]] = (
        Question("endpoint", "endpoint of the store", option="endpoint"),
        Question(
            "credential.access_key_id",
            "reference to the access key's id",
            option="access_key",
            default="config:store_access_key_id",
        ),
        Question(
            "credential.secret_access_key",
            "reference to the secret key",
            option="secret_key",
            default="config:store_secret_access_key",
        ),
    )

    backend: Literal["s3"]
    store: StoreProduct | None = None
    """The product, so that what it lacks is refused. Left out: a store with STS as MinIO has it."""
    endpoint: TenantEndpoint
    region: Region = "local-01"
    path_style: bool = True
    ca_certificates: Certificates | None = None
    """Certificate authorities of the store, in PEM. The stack trusts them; pods do, too. Lakekeeper must trust them by
    its own configuration."""
    credential: LakekeeperCredential
    """The key that Lakekeeper uses."""
    sts: bool = True
    """Whether the store has AssumeRole. Without it, credentials cannot be vended: use `delegation: remote-signing`."""
    sts_endpoint: TenantStsEndpoint | None = None
    sts_role_arn: Arn | None = None
    create: bool = False
    """Whether the stack makes the bucket, and deletes it with the stack. Otherwise the bucket must exist."""
    admin_credential: StoreCredential | None = None
    """The key that makes, checks and empties the bucket. Default: `credential`."""
    versioning: bool = False
    """Whether the bucket keeps deleted and overwritten objects."""
    noncurrent_version_days: Annotated[int, Field(ge=1, le=3650)] | None = None
    """How long it keeps them. Left out: until they are deleted."""
    tls_only: bool = False
    """Whether a bucket policy denies requests without TLS, on stores that apply bucket policies to their users."""

    @model_validator(mode="after")
    def _is_consistent(self) -> S3Storage:
        for problem in (self._problem_of_bucket(), self._problem_of_credential(), self._problem_of_store()):
            if problem:
                raise ValueError(problem)
        return self

    def _problem_of_bucket(self) -> str | None:
        unused = [name for name in _ONLY_WHEN_MADE if getattr(self, name)]
        if unused and not self.create:
            return f"`{unused[0]}` needs `create: true`: the stack does not change a bucket that it did not make"
        if self.noncurrent_version_days and not self.versioning:
            return "`noncurrent_version_days` needs `versioning: true`"
        if self.tls_only and self.endpoint.startswith("http://"):
            return "`tls_only` needs an `endpoint` with `https://`: Lakekeeper and jobs would be denied"
        if self.ca_certificates and self.endpoint.startswith("http://"):
            return "`ca_certificates` needs an `endpoint` with `https://`"
        return None

    def _problem_of_credential(self) -> str | None:
        unused = [name for name in _OF_CREDENTIAL_API if getattr(self.credential, name) is not None]
        if unused and not self.features.has_own_credential_api:
            return f"`credential.{unused[0]}` needs `store: r2`: only R2 uses it. Set `store`, or leave it out"
        return None

    def _problem_of_store(self) -> str | None:
        if self.store is None:
            return None
        has = STORES[self.store]
        cloudflare = (self.credential.token, self.credential.account_id)
        if self.create and not has.makes_buckets:
            return f"`create` is not possible with `store: {self.store}`: make the bucket, and leave `create` out"
        if has.has_own_credential_api and self.sts and None in cloudflare:
            return (
                f"`store: {self.store}` vends credentials by `credential.token` and `credential.account_id`: set both,"
                " or set `sts: false`"
            )
        if has.has_own_credential_api and (self.sts_role_arn or self.sts_endpoint):
            return f"`store: {self.store}` has no STS: leave out `sts_role_arn` and `sts_endpoint`"
        if has.needs_sts_role and self.sts and not self.sts_role_arn:
            return f"`store: {self.store}` needs `sts_role_arn` to vend credentials: set it, or set `sts: false`"
        return None

    @classmethod
    def read_back(cls, live: LiveStorage) -> dict[str, Any] | None:
        """Return the fields of a storage in a store. The credential has the named references, or empty references."""
        if live.is_on_aws or not is_in_s3(live.profile):
            return None
        profile, kind = live.profile, live.credential_type
        if kind not in {None, "access-key"}:
            reason = "whose account id the server does not show" if kind == "cloudflare-r2" else "not an access key"
            raise NotExpressibleError(f"its credential is of type `{kind}`, {reason}; declare it manually")
        endpoint = profile.get("endpoint")
        if not endpoint:
            raise NotExpressibleError("it is in an S3-compatible store without an `endpoint`")
        fields: dict[str, Any] = {
            "bucket": profile["bucket"],
            "endpoint": normalize_endpoint(str(endpoint)).rstrip("/"),
            "region": profile["region"],
            "path_style": bool(profile.get("path-style-access")),
            "sts_endpoint": profile.get("sts-endpoint"),
            "sts_role_arn": profile.get("sts-role-arn") or None,
        }
        defaults = {name: cls.model_fields[name].default for name in ("region", "path_style")}
        fields = {name: value for name, value in fields.items() if value is not None and value != defaults.get(name)}
        return fields | {"credential": asdict(live.keys or AccessKeys("", ""))}

    @classmethod
    def fill_references(
        cls,
        name: str,
        storage: Mapping[str, Any],  # noqa: ARG003 - a key is never read back
        keys: AccessKeys | None,
        roles: Mapping[str, RoleFactsReader],  # noqa: ARG003
    ) -> Placeholders | None:
        """Return references to keys of the stack's configuration, unless a person named other references."""
        if keys is not None:
            return None
        stem = name.replace("-", "_")
        placeholders = AccessKeys(f"config:{stem}_access_key_id", f"config:{stem}_secret_access_key")
        credential = asdict(placeholders)
        comment = "Credentials cannot be read back: set or replace these references."
        return Placeholders({"credential": credential}, tuple(credential.values()), comment)

    @classmethod
    def is_made(cls, storage: Mapping[str, Any]) -> bool:
        """Return whether the stack makes the bucket of a storage, as written."""
        return storage.get("create") is True

    @property
    def makes_bucket(self) -> bool:
        """Whether the stack makes the bucket."""
        return self.create

    @property
    def features(self) -> StoreFeatures:
        """Features of the store."""
        return STORES[self.store] if self.store else StoreFeatures()

    @classmethod
    def why_not_vended(cls, storage: Mapping[str, Any]) -> str | None:
        """Return why a store, as written, cannot vend credentials."""
        return "the storage has `sts: false`" if storage.get("sts") is False else None

    @property
    def store_certificates(self) -> str | None:
        """Certificate authorities of the store, in PEM."""
        return self.ca_certificates

    @property
    def own_endpoint(self) -> str | None:
        """Endpoint of the store."""
        return self.endpoint

    @property
    def stack_access(self) -> dict[str, Any]:
        """How the stack reaches the bucket: the fields of `OwnBucket`, secrets by reference."""
        keys = self.admin_credential or self.credential
        fields = {
            "bucket": self.bucket,
            "region": self.region,
            "endpoint": self.endpoint.rstrip("/"),
            "path_style": self.path_style,
            "access_key_id": keys.access_key_id,
            "secret_access_key": keys.secret_access_key,
            "ca_certificates": self.ca_certificates,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def server_access(self) -> dict[str, Any]:
        """The key of Lakekeeper, if the stack has another key."""
        if self.admin_credential is None:
            return {}
        keys = self.credential
        return {
            "server_access_key_id": keys.access_key_id,
            "server_secret_access_key": keys.secret_access_key,
        }

    def address(self, defaults: AwsDefaults) -> StorageAddress:  # noqa: ARG002 - a store is not on AWS
        """Return the address of the store."""
        return StorageAddress(self.region, self.endpoint, path_style=self.path_style)

    def storage_profile(self, access: WarehouseAccess, address: StorageAddress) -> dict[str, Any]:
        """Return a storage profile of flavor `s3-compat`."""
        return s3_profile("s3-compat", access, address, sts_endpoint=self.sts_endpoint, sts_role_arn=self.sts_role_arn)

    def storage_credential(self, external_id: pulumi.Input[str] | None) -> dict[str, Any]:  # noqa: ARG002 - no role
        """Return the access key, by reference."""
        is_cloudflare = self.features.has_own_credential_api and self.sts
        keys = self.credential.model_dump(exclude_none=True)
        if not is_cloudflare:
            keys = {name: keys[name] for name in ("access_key_id", "secret_access_key")}
        return {"type": "cloudflare-r2" if is_cloudflare else "access-key", **keys}

    def probe(self) -> BucketProbe | None:
        """Return how the bucket is reached with the keys that Lakekeeper uses; None if the stack makes it."""
        if self.create:
            return None
        keys = self.credential
        address = StorageAddress(self.region, self.endpoint, path_style=self.path_style)
        return BucketProbe(self.bucket, address, keys.access_key_id, keys.secret_access_key, self.ca_certificates)
