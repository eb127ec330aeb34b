"""Backend `existing`: a bucket on AWS that the tenant provides, with a role of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BeforeValidator, model_validator

from lakewright.field_map.marks import NotExpressibleError
from lakewright.names.types import ExternalIdValue, KmsKeyArn, Region, RoleArn, check_kms_key_arn
from lakewright.storage.backend import AwsBackend, BucketProbe, Question, StorageAddress
from lakewright.storage.live_storage import AccessKeys, LiveStorage, Placeholders, RoleFactsReader
from lakewright.storage.restricted_fields import ConfigKeyOrText
from lakewright.validation.documents import as_mapping

ROLE_NOT_MADE = "arn:aws:iam::000000000000:role/lakewright/not-made-yet"
"""Stands for a role in checks of a spec: the external ID is reserved before the role exists."""


def fill_missing_roles(spec: Any) -> tuple[Any, list[str]]:
    """Return a spec's document with a role in each storage of this backend, and the storages that name none.

    The owner of the bucket makes the role from policies that `lakewright byo reserve` prints. Until then the spec is
    complete but for the role.
    """
    document = as_mapping(spec)
    stores = {str(name): item for name, item in as_mapping(document.get("storage")).items()}
    missing = [
        name
        for name, item in stores.items()
        if as_mapping(item).get("backend") == "existing" and as_mapping(item).get("role_arn") is None
    ]
    if not missing:
        return spec, []
    roles = {name: {**as_mapping(stores[name]), "role_arn": ROLE_NOT_MADE} for name in missing}
    return {**document, "storage": stores | roles}, missing


def name_external_id_key(storage: str) -> str:
    """Return the key of the stack's configuration that holds the reserved external ID of a storage."""
    return f"byo_external_id_{storage}"


def _require_role(value: Any) -> Any:
    if value is None:
        raise ValueError(
            "required: the ARN of the role that the bucket's owner makes. `lakewright byo reserve` prints its policies"
        )
    return value


def _check_readable_key(arn: str) -> None:
    try:
        check_kms_key_arn(arn)
    except ValueError as error:
        raise NotExpressibleError(f"its `aws-kms-key-arn` is {arn}: {error}") from None


class ExistingStorage(AwsBackend):
    """A bucket on AWS that the tenant provides. The stack makes nothing in it; a role of the tenant gives access."""

    summary: ClassVar[str] = "a bucket that the tenant provides"
    proves_role: ClassVar[bool] = True
    archive_refusal: ClassVar[str | None] = "the role that Lakekeeper assumes belongs to the tenant, not to the stack"
    questions: ClassVar[Sequence[Question]] = (
        Question("region", "region of the bucket", option="region"),
        Question("role_arn", "ARN of the tenant's role, if it exists", option="role_arn", until_known=ROLE_NOT_MADE),
    )

    backend: Literal["existing"]
    region: Region
    role_arn: Annotated[RoleArn, BeforeValidator(_require_role)]
    external_id: Annotated[ExternalIdValue, ConfigKeyOrText()] | None = None
    """External ID that the tenant's role requires (`sts:ExternalId`), or `config:KEY` of the stack's configuration.

    Default: the ID that `lakewright byo reserve` keeps in the stack's configuration. Without one, the stack makes it:
    the first `up` fails at the role, `lakewright byo reserve` prints the policies that the role needs, and the next
    `up` continues.
    """
    kms_key_arn: KmsKeyArn | None = None

    may_delete: bool = True
    """Whether the platform may delete objects. With `false`, the role needs `s3:DeleteObject` on Lakekeeper's own probe
    objects only: nothing is purged, compacted, expired or cleaned up, and `deletion: purge` is refused."""

    @model_validator(mode="before")
    @classmethod
    def _role_is_named(cls, storage: Any) -> Any:
        # A missing role gets its own message, together with the other mistakes of the storage.
        return {"role_arn": None} | cast(dict[str, Any], storage) if isinstance(storage, dict) else storage

    @classmethod
    def read_back(cls, live: LiveStorage) -> dict[str, Any] | None:
        """Return the fields of a storage on AWS that Lakekeeper reaches by a role."""
        if not live.is_on_aws:
            return None
        profile = live.profile
        role = str(profile.get("assume-role-arn") or "").strip()
        if live.credential_type == "access-key":
            raise NotExpressibleError("it has an access key on AWS; specs reach AWS by a role with an external ID")
        if not role:
            raise NotExpressibleError("it has no `assume-role-arn`; specs reach AWS by a role with an external ID")
        facts = live.roles.get(role)
        if facts and facts.is_known and facts.external_id is None:
            raise NotExpressibleError(
                f"the trust policy of {role} requires no `sts:ExternalId`; specs always send it. Add the condition, and"
                " the ID to the warehouse's credential"
            )
        if key := profile.get("aws-kms-key-arn"):
            _check_readable_key(key)
        fields = {
            "bucket": profile["bucket"],
            "region": profile["region"],
            "role_arn": role,
            "external_id": facts.external_id if facts else None,
            "kms_key_arn": key or None,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def fill_references(
        cls,
        name: str,
        storage: Mapping[str, Any],
        keys: AccessKeys | None,  # noqa: ARG003 - AWS needs none
        roles: Mapping[str, RoleFactsReader],
    ) -> Placeholders | None:
        """Return a reference to an external ID that could not be read."""
        if "external_id" in storage:
            return None
        reference = f"config:external_id_{name.replace('-', '_')}"
        facts = roles.get(str(storage["role_arn"]))
        why = f" ({facts.problem})" if facts and facts.problem else ""
        comment = f"The role's external ID could not be read{why}: set this reference."
        return Placeholders({"external_id": reference}, (reference,), comment)

    @property
    def allows_deletion(self) -> bool:
        """Return whether the bucket's owner lets the platform delete."""
        return self.may_delete

    def client_options(self, address: StorageAddress) -> dict[str, str]:
        """Return the S3 options of clients. Iceberg's clients delete nothing if the platform may not."""
        options = super().client_options(address)
        return options if self.may_delete else options | {"s3.delete-enabled": "false"}

    @property
    def role_arn_of_tenant(self) -> str | None:
        """Role that gives access to the bucket."""
        return self.role_arn

    @property
    def external_id_of_tenant(self) -> str | None:
        """External ID that the tenant chose, or `config:KEY`."""
        return self.external_id

    @property
    def existing_kms_key_arn(self) -> str | None:
        """KMS key of the bucket."""
        return self.kms_key_arn

    def probe(self) -> BucketProbe | None:
        """Return the bucket; it is reached with the AWS identity of the environment."""
        return BucketProbe(self.bucket)
