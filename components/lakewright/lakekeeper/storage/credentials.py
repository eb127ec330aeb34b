"""Storage credentials of warehouses: secrets by reference, and their conversion to requests."""

import json
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, cast
from urllib.parse import urlsplit

from pydantic import Tag

from lakewright.credentials.references import Reference, UnresolvedCredentialError
from lakewright.lakekeeper.provider.inputs import Declared, discriminate_by_type, has_unknown
from lakewright.names.host_kinds import is_loopback
from lakewright.names.types import ExternalIdValue, NotBlank


class StorageCredential(Declared):
    """Base of storage credentials. The secrets that it references are sent and never stored."""

    family: ClassVar[str]
    """Type of storage that the credential is for, as the server calls it."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """Names of the properties that are references."""


class AccessKey(StorageCredential):
    """An access key of S3 or an S3-compatible store."""

    family: ClassVar[str] = "s3"
    secrets: ClassVar[tuple[str, ...]] = ("access_key_id", "secret_access_key")

    type: Literal["access-key"]
    """`access-key`."""
    access_key_id: Reference
    """Reference to the key's id."""
    secret_access_key: Reference
    """Reference to the key's secret."""
    external_id: ExternalIdValue | None = None
    """External id that the trust policies of the roles require."""


class SystemIdentity(StorageCredential):
    """The server's AWS identity, which assumes the role of the profile with an external id."""

    family: ClassVar[str] = "s3"

    type: Literal["aws-system-identity"]
    """`aws-system-identity`."""
    external_id: ExternalIdValue | None = None
    """External id that the trust policy of the role requires."""


class CloudflareR2(StorageCredential):
    """An access key of Cloudflare R2, with the API token that creates temporary credentials."""

    family: ClassVar[str] = "s3"
    secrets: ClassVar[tuple[str, ...]] = ("access_key_id", "secret_access_key", "token")

    type: Literal["cloudflare-r2"]
    """`cloudflare-r2`."""
    access_key_id: Reference
    """Reference to the key's id."""
    secret_access_key: Reference
    """Reference to the key's secret."""
    token: Reference
    """Reference to the API token that creates temporary credentials."""
    account_id: NotBlank
    """Id of the Cloudflare account."""


class AzureClient(StorageCredential):
    """An Azure service principal."""

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
    """The server's Azure identity."""

    family: ClassVar[str] = "az"

    type: Literal["azure-system-identity"]
    """`azure-system-identity`."""


class GoogleServiceAccount(StorageCredential):
    """The key of a Google service account, in the JSON form of a key file."""

    family: ClassVar[str] = "gcs"
    secrets: ClassVar[tuple[str, ...]] = ("key",)

    type: Literal["service-account-key"]
    """`service-account-key`."""
    key: Reference
    """Reference to the account's key file, as JSON."""


class GoogleSystemIdentity(StorageCredential):
    """The server's Google identity."""

    family: ClassVar[str] = "gcs"

    type: Literal["gcp-system-identity"]
    """`gcp-system-identity`."""


class UndeclaredCredential(StorageCredential):
    """Placeholder in a refreshed state for a credential that is not declared, but was set outside the stack."""

    family: ClassVar[str] = ""

    type: Literal["undeclared"]
    """`undeclared`."""
    kind: str
    """Kind of the credential, as the server reports it."""


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
    discriminate_by_type(
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
"""Fields that the server requires in the key of a service account."""
GOOGLE_TOKEN_ADDRESSES = (
    "https://oauth2.googleapis.com/token",
    "https://accounts.google.com/o/oauth2/token",
    "https://oauth2.s3nsapis.fr/token",
)
"""Values of `token_uri` in keys of Google, in early keys, and in keys of its partner S3NS.

Source: Google Cloud, "Create and delete service account keys" and "Cloud de Confiance by S3NS".
"""

_WIRE = {
    # Every supported version accepts only this spelling for access keys, and only the other spelling for R2 keys.
    ("access-key", "access_key_id"): "aws-access-key-id",
    ("access-key", "secret_access_key"): "aws-secret-access-key",
}


def credential_request(credential: AnyCredential, secret: Callable[[str], str]) -> dict[str, Any]:
    """Return the request form of a credential. Its secrets are read only here.

    Raises:
        UnresolvedCredentialError: If a secret cannot be read, or the credential is not declared.
    """
    if isinstance(credential, UndeclaredCredential):
        raise UnresolvedCredentialError(
            f"a credential of type `{credential.kind}` was set outside the stack; its secrets are not known. Declare"
            " the credential to use."
        )
    body: dict[str, Any] = {"type": credential.family, "credential-type": credential.type}
    for name, value in credential.model_dump(exclude={"type"}, exclude_none=True).items():
        wire = _WIRE.get((credential.type, name), name.replace("_", "-"))
        body[wire] = secret(value) if name in credential.secrets else value
    if isinstance(credential, GoogleServiceAccount):
        body["key"] = _json(credential.key, body["key"])
    return body


def references(credential: object) -> list[str]:
    """Return the references of a credential. The list is empty if they are not known yet."""
    if not isinstance(credential, StorageCredential):
        return []
    values = [getattr(credential, name) for name in credential.secrets]
    return [] if has_unknown(values) else values


def mistake(credential: object, secret: Callable[[str], str], server: str) -> str | None:
    """Return why the server would refuse a credential's secret, or must not get it.

    Return None if the secret is valid or cannot be read on this machine.

    Args:
        credential: The credential.
        secret: Returns the secret of a reference.
        server: Address of the server.
    """
    if not isinstance(credential, GoogleServiceAccount) or not references(credential):
        return None
    try:
        text = secret(credential.key)
    except UnresolvedCredentialError:
        return None
    try:
        key = _json(credential.key, text)
    except UnresolvedCredentialError as malformed:
        return str(malformed)
    address = key["token_uri"]
    if address in GOOGLE_TOKEN_ADDRESSES or (_is_on_this_machine(address) and _is_on_this_machine(server)):
        return None
    addresses = " or ".join(GOOGLE_TOKEN_ADDRESSES)
    return (
        f"`{credential.key}` has another `token_uri` than the keys of Google, {addresses}. The server sends requests"
        " there. Create a new key at Google."
    )


def _is_on_this_machine(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def _json(reference: str, secret: str) -> dict[str, Any]:
    """Parse the key of a service account.

    Raises:
        UnresolvedCredentialError: If the key is malformed. The message never contains a value of the key.
    """
    try:
        key = json.loads(secret)
    except ValueError:
        key = None
    if not isinstance(key, dict):
        raise UnresolvedCredentialError(f"`{reference}` is not the JSON of a service account's key")
    fields = cast(dict[str, Any], key)
    if missing := [name for name in GOOGLE_KEY_FIELDS if not isinstance(fields.get(name), str)]:
        raise UnresolvedCredentialError(
            f"`{reference}` is an incomplete key of a service account: expected text in each of its"
            f" {len(GOOGLE_KEY_FIELDS)} fields, found none in {', '.join(missing)}. Create a new key at Google."
        )
    return fields
