"""Credentials of warehouses, of each kind of storage: secrets by reference, and the form in which they are sent."""

import json
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Tag

from lakewright.credentials.references import Reference, UnresolvedCredentialError
from lakewright.lakekeeper.provider.inputs import Declared, has_unknown, one_of
from lakewright.names.types import ExternalIdValue, NotBlank


class StorageCredential(Declared):
    """Base of the credentials. What its references point to is sent and never kept."""

    family: ClassVar[str]
    """The storage that it is for, in the server's words."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """The properties that are references."""


class AccessKey(StorageCredential):
    """An access key of S3 or of what speaks its protocol."""

    family: ClassVar[str] = "s3"
    secrets: ClassVar[tuple[str, ...]] = ("access_key_id", "secret_access_key")

    type: Literal["access-key"]
    """`access-key`."""
    access_key_id: Reference
    """Reference to the key's id."""
    secret_access_key: Reference
    """Reference to the key's secret."""
    external_id: ExternalIdValue | None = None
    """External id that the roles' trust policies ask for."""


class SystemIdentity(StorageCredential):
    """The server's own AWS identity, which assumes the profile's role under an external id."""

    family: ClassVar[str] = "s3"

    type: Literal["aws-system-identity"]
    """`aws-system-identity`."""
    external_id: ExternalIdValue | None = None
    """External id that the role's trust policy asks for."""


class CloudflareR2(StorageCredential):
    """A key of Cloudflare's R2, and the token by which shorter-lived keys are made from it."""

    family: ClassVar[str] = "s3"
    secrets: ClassVar[tuple[str, ...]] = ("access_key_id", "secret_access_key", "token")

    type: Literal["cloudflare-r2"]
    """`cloudflare-r2`."""
    access_key_id: Reference
    """Reference to the key's id."""
    secret_access_key: Reference
    """Reference to the key's secret."""
    token: Reference
    """Reference to the API token that temporary credentials are made with."""
    account_id: NotBlank
    """Id of the Cloudflare account."""


class AzureClient(StorageCredential):
    """A service principal of Azure."""

    family: ClassVar[str] = "az"
    secrets: ClassVar[tuple[str, ...]] = ("client_secret",)

    type: Literal["client-credentials"]
    """`client-credentials`."""
    client_id: NotBlank
    """Id of the application."""
    tenant_id: NotBlank
    """Id of the directory."""
    client_secret: Reference
    """Reference to the application's secret."""


class AzureSharedKey(StorageCredential):
    """The key of a storage account."""

    family: ClassVar[str] = "az"
    secrets: ClassVar[tuple[str, ...]] = ("key",)

    type: Literal["shared-access-key"]
    """`shared-access-key`."""
    key: Reference
    """Reference to the account's key."""


class AzureSystemIdentity(StorageCredential):
    """The server's own Azure identity."""

    family: ClassVar[str] = "az"

    type: Literal["azure-system-identity"]
    """`azure-system-identity`."""


class GoogleServiceAccount(StorageCredential):
    """The key of a service account: the reference holds the JSON that Google gives out."""

    family: ClassVar[str] = "gcs"
    secrets: ClassVar[tuple[str, ...]] = ("key",)

    type: Literal["service-account-key"]
    """`service-account-key`."""
    key: Reference
    """Reference to the account's key file, as JSON."""


class GoogleSystemIdentity(StorageCredential):
    """The server's own Google identity."""

    family: ClassVar[str] = "gcs"

    type: Literal["gcp-system-identity"]
    """`gcp-system-identity`."""


class UndeclaredCredential(StorageCredential):
    """What stands in a refreshed state for a credential that somebody gave to a warehouse declared without one."""

    family: ClassVar[str] = ""

    type: Literal["undeclared"]
    """`undeclared`."""
    kind: str
    """What the server says of it."""


AnyCredential = (
    AccessKey
    | SystemIdentity
    | CloudflareR2
    | AzureClient
    | AzureSharedKey
    | AzureSystemIdentity
    | GoogleServiceAccount
    | GoogleSystemIdentity
    | UndeclaredCredential
)

Credential = Annotated[
    Annotated[AccessKey, Tag("access-key")]
    | Annotated[SystemIdentity, Tag("aws-system-identity")]
    | Annotated[CloudflareR2, Tag("cloudflare-r2")]
    | Annotated[AzureClient, Tag("client-credentials")]
    | Annotated[AzureSharedKey, Tag("shared-access-key")]
    | Annotated[AzureSystemIdentity, Tag("azure-system-identity")]
    | Annotated[GoogleServiceAccount, Tag("service-account-key")]
    | Annotated[GoogleSystemIdentity, Tag("gcp-system-identity")]
    | Annotated[UndeclaredCredential, Tag("undeclared")],
    one_of(
        "access-key",
        "aws-system-identity",
        "cloudflare-r2",
        "client-credentials",
        "shared-access-key",
        "azure-system-identity",
        "service-account-key",
        "gcp-system-identity",
    ),
]

GOOGLE_KEY_FIELDS = (
    "type",
    "project_id",
    "private_key_id",
    "private_key",
    "client_email",
    "client_id",
    "auth_uri",
    "token_uri",
    "auth_provider_x509_cert_url",
    "client_x509_cert_url",
    "universe_domain",
)
"""What the server demands of a service account's key."""

_WIRE = {
    # This spelling of an access key is the only one that every supported version takes; of an R2 key it is the other.
    ("access-key", "access_key_id"): "aws-access-key-id",
    ("access-key", "secret_access_key"): "aws-secret-access-key",
}


def credential_request(credential: AnyCredential, secret: Callable[[str], str]) -> dict[str, Any]:
    """A credential as it is sent: the one place where its secrets are read. Raises UnresolvedCredentialError."""
    if isinstance(credential, UndeclaredCredential):
        raise UnresolvedCredentialError(
            f"a credential of type `{credential.kind}` that somebody else has set is known by its type alone; declare"
            " the one to use"
        )
    body: dict[str, Any] = {"type": credential.family, "credential-type": credential.type}
    for name, value in credential.model_dump(exclude={"type"}, exclude_none=True).items():
        wire = _WIRE.get((credential.type, name), name.replace("_", "-"))
        body[wire] = secret(value) if name in credential.secrets else value
    if isinstance(credential, GoogleServiceAccount):
        body["key"] = _json(credential.key, body["key"])
    return body


def references(credential: object) -> list[str]:
    """The references in a credential, if they are known."""
    if not isinstance(credential, StorageCredential):
        return []
    values = [getattr(credential, name) for name in credential.secrets]
    return [] if has_unknown(values) else values


def mistake(credential: object, secret: Callable[[str], str]) -> str | None:
    """Say why the server would refuse a credential's secret; None too where the secret cannot be read here."""
    if not isinstance(credential, GoogleServiceAccount) or not references(credential):
        return None
    try:
        text = secret(credential.key)
    except UnresolvedCredentialError:
        return None
    try:
        _json(credential.key, text)
    except UnresolvedCredentialError as malformed:
        return str(malformed)
    return None


def _json(reference: str, secret: str) -> dict[str, Any]:
    """Parse a service account's key. Raises UnresolvedCredentialError, whose message never repeats a value."""
    try:
        key = json.loads(secret)
    except ValueError:
        key = None
    if not isinstance(key, dict):
        raise UnresolvedCredentialError(f"`{reference}` is not the JSON of a service account's key")
    fields = cast(dict[str, Any], key)
    if missing := [name for name in GOOGLE_KEY_FIELDS if not isinstance(fields.get(name), str)]:
        raise UnresolvedCredentialError(
            f"`{reference}` is not a whole key of a service account: expected text in each of its"
            f" {len(GOOGLE_KEY_FIELDS)} fields, found none in {', '.join(missing)}. Create the key anew at Google."
        )
    return fields
