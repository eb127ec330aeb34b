"""Interface of storage backends. All code that depends on the kind of a storage asks its `StorageBackend`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from lakewright_spark.aws_partition import service_host
from lakewright_spark.catalog.warehouse import StorageKind

from lakewright.names.types import BucketName
from lakewright.storage.live_storage import AccessKeys, LiveStorage, Placeholders, RoleFactsReader
from lakewright.validation.strict_model import StrictModel

if TYPE_CHECKING:
    import pulumi


class AwsDefaults(Protocol):
    """Settings of an environment for storages on AWS."""

    @property
    def region(self) -> str:
        """Region of storages that name none."""
        ...

    @property
    def s3_endpoint(self) -> str | None:
        """Endpoint of a sandbox; None for AWS."""
        ...


@dataclass(frozen=True)
class StorageAddress:
    """Where a storage is reached."""

    region: str = ""
    """Empty for services without regions."""
    endpoint: str | None = None
    """None for AWS."""
    path_style: bool = False


@dataclass(frozen=True)
class WarehouseAccess:
    """How Lakekeeper reaches the data of one warehouse."""

    bucket: pulumi.Input[str]
    key_prefix: pulumi.Input[str]
    settings: Mapping[str, Any]
    """Fields that the warehouse's section of the spec sets, in the names of the provider's `S3Profile`."""
    role_arn: pulumi.Input[str] | None = None
    vending_role_arn: pulumi.Input[str] | None = None
    """Role that vends credentials; None if `role_arn` does."""
    kms_key_arn: pulumi.Input[str] | None = None


@dataclass(frozen=True)
class BucketProbe:
    """How `lakewright doctor` reaches a bucket that the stack does not make.

    Without keys it uses the AWS identity of the environment.
    """

    bucket: str
    address: StorageAddress | None = None
    access_key_id: str | None = None
    """Reference to the key's id."""
    secret_access_key: str | None = None
    """Reference to the secret."""
    ca_certificates: str | None = None
    """Custom certificate authorities, in PEM."""


@dataclass(frozen=True)
class Question:
    """A value that `lakewright new` asks for."""

    path: str
    """Field of the storage, dotted."""
    text: str
    option: str
    """Parameter of `lakewright new` that sets the value."""
    default: str | None = None
    until_known: str | None = None
    """Value to check the spec with if the user gives none. The written spec then lacks the field."""


class StorageBackend(StrictModel):
    """A kind of storage. Its fields are its part of the spec."""

    summary: ClassVar[str]
    """The text in `lakewright new --help`."""
    can_make_bucket: ClassVar[bool] = False
    """Whether a stack can make the bucket."""
    makes_role: ClassVar[bool] = False
    """Whether the stack makes a role for each warehouse."""
    proves_role: ClassVar[bool] = False
    """Whether the tenant makes the role, so that its limits have to be proven."""
    needs_external_id: ClassVar[bool] = False
    """Whether Lakekeeper assumes a role that requires an external ID."""
    is_on_aws: ClassVar[bool] = False
    """Whether regions belong to partitions of AWS."""
    service: ClassVar[StorageKind] = "s3"
    """Storage service, as jobs see it."""
    url_scheme: ClassVar[str] = "s3"
    """Scheme of the locations of tables."""
    archive_refusal: ClassVar[str | None] = "the stack does not own the identity by which Lakekeeper writes"
    """Why a warehouse cannot become read-only with `deletion: archive`; None if the stack limits its roles."""
    unsupported_settings: ClassVar[Mapping[str, str]] = {}
    """Fields of warehouses that the service cannot have, each with the reason."""
    questions: ClassVar[Sequence[Question]] = ()

    backend: Any
    bucket: BucketName

    @classmethod
    def why_not_vended(cls, storage: Mapping[str, Any]) -> str | None:  # noqa: ARG003 - for subclasses
        """Return why a storage, as written, cannot vend credentials; None if it can."""
        return None

    @classmethod
    def name_identity_location(cls, storage: Mapping[str, Any]) -> str | None:  # noqa: ARG003 - for subclasses
        """Return the location that Lakekeeper's own identity reaches, as `tenant_specs.identity_locations` names it.

        None if the storage, as written, has a credential or a role of the tenant.
        """
        return None

    @classmethod
    def describe_container(cls, storage: Mapping[str, Any]) -> str:
        """Return the container of a storage's objects, as written, to compare storages of one spec."""
        return str(storage.get("bucket"))

    @classmethod
    def is_made(cls, storage: Mapping[str, Any]) -> bool:  # noqa: ARG003 - for subclasses
        """Return whether the stack makes the bucket of a storage, as written."""
        return cls.can_make_bucket

    @classmethod
    def read_back(cls, live: LiveStorage) -> dict[str, Any] | None:  # noqa: ARG003 - for subclasses
        """Return the fields of a storage that exists; None if the backend has no such storages.

        Raises:
            NotExpressibleError: The backend has such storages, but its fields cannot express this storage.
        """
        return None

    @classmethod
    def fill_references(
        cls,
        name: str,  # noqa: ARG003 - for subclasses
        storage: Mapping[str, Any],  # noqa: ARG003
        keys: AccessKeys | None,  # noqa: ARG003
        roles: Mapping[str, RoleFactsReader],  # noqa: ARG003
    ) -> Placeholders | None:
        """Return references for the fields of a read storage that no server shows; None if it is complete.

        Args:
            name: Name of the storage in the spec.
            storage: Its fields, as read.
            keys: References that a person named.
            roles: Facts about roles by ARN.
        """
        return None

    @property
    def makes_bucket(self) -> bool:
        """Whether the stack makes the bucket, and removes it with the stack."""
        return self.can_make_bucket

    @property
    def stack_access(self) -> dict[str, Any] | None:
        """How the stack reaches a store: the fields of `OwnBucket`. None for AWS, with the environment's identity."""
        return None

    @property
    def server_access(self) -> dict[str, Any]:
        """The key of Lakekeeper in the fields of `RecordedStore`, if it is not the key of the stack."""
        return {}

    @property
    def store_certificates(self) -> str | None:
        """Certificate authorities of the store, in PEM; None for authorities that every machine trusts."""
        return None

    @property
    def own_endpoint(self) -> str | None:
        """Address of the service; None for AWS."""
        return None

    @property
    def role_arn_of_tenant(self) -> str | None:
        """Role that the tenant provides; None if the stack makes one or none is needed."""
        return None

    @property
    def external_id_of_tenant(self) -> str | None:
        """External ID that the tenant chose, or `config:KEY`; None if the stack makes one."""
        return None

    @property
    def existing_kms_key_arn(self) -> str | None:
        """KMS key of an existing bucket."""
        return None

    @property
    def has_own_key(self) -> bool:
        """Return whether the stack makes a KMS key for the bucket."""
        return False

    @property
    def allows_deletion(self) -> bool:
        """Return whether the platform may delete objects."""
        return True

    @abstractmethod
    def address(self, defaults: AwsDefaults) -> StorageAddress:
        """Return where the storage is reached."""
        raise NotImplementedError

    @abstractmethod
    def storage_profile(self, access: WarehouseAccess, address: StorageAddress) -> dict[str, Any]:
        """Return the storage profile of a warehouse in the provider's fields; only what is set."""
        raise NotImplementedError

    @abstractmethod
    def storage_credential(self, external_id: pulumi.Input[str] | None) -> dict[str, Any]:
        """Return the storage credential of a warehouse in the provider's fields."""
        raise NotImplementedError

    def network_url(self, address: StorageAddress) -> str:
        """Return the address that pods must reach."""
        return address.endpoint or f"https://{service_host('s3', address.region)}"

    def client_options(self, address: StorageAddress) -> dict[str, str]:
        """Return the S3 options of clients. They hold no keys: the catalog vends keys."""
        options = {"s3.region": address.region, "client.region": address.region}
        if address.endpoint:
            options["s3.endpoint"] = address.endpoint.rstrip("/")
        if address.path_style:
            options["s3.path-style-access"] = "true"
        return options

    def probe(self) -> BucketProbe | None:
        """Return how `lakewright doctor` reaches the bucket; None if the stack makes it, or only Lakekeeper does."""
        return None


def s3_profile(flavor: str, access: WarehouseAccess, address: StorageAddress, **more: Any) -> dict[str, Any]:
    """Return a storage profile in the fields of the provider's `S3Profile`; only what is set."""
    settings = access.settings
    profile: dict[str, Any] = {
        **settings,
        "bucket": access.bucket,
        "key_prefix": access.key_prefix,
        "region": address.region,
        "flavor": flavor,
        "endpoint": address.endpoint,
        "path_style_access": address.path_style or None,
        "assume_role_arn": access.role_arn,
        "sts_role_arn": access.vending_role_arn,
        # Clients without credentials need signed requests.
        "remote_signing_enabled": bool(settings.get("remote_signing_enabled")) or not settings["sts_enabled"],
        "aws_kms_key_arn": access.kms_key_arn,
        **more,
    }
    return {name: value for name, value in profile.items() if value is not None}


class AwsBackend(StorageBackend):
    """S3 on AWS, which Lakekeeper reaches by assuming a role."""

    is_on_aws: ClassVar[bool] = True
    needs_external_id: ClassVar[bool] = True

    region: Any

    def address(self, defaults: AwsDefaults) -> StorageAddress:
        """Return the region's S3, or that of the environment's sandbox."""
        endpoint = defaults.s3_endpoint
        return StorageAddress(self.region or defaults.region, endpoint, path_style=endpoint is not None)

    def storage_profile(self, access: WarehouseAccess, address: StorageAddress) -> dict[str, Any]:
        """Return a storage profile of flavor `aws`."""
        return s3_profile("aws", access, address)

    def storage_credential(self, external_id: pulumi.Input[str] | None) -> dict[str, Any]:
        """Return the credential by which Lakekeeper uses its own AWS identity."""
        return {"type": "aws-system-identity", "external_id": external_id}
