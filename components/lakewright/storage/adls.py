"""Backend `adls`: an existing container of Azure Data Lake Storage Gen2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lakewright_spark.catalog.warehouse import StorageKind
from pydantic import model_validator

from lakewright.credentials.references import Reference
from lakewright.field_map.marks import NotExpressibleError
from lakewright.names.azure_names import AdlsAccountName, AdlsContainerName
from lakewright.names.types import NotBlank
from lakewright.storage.backend import Question, StorageAddress, WarehouseAccess
from lakewright.storage.cloud import CloudStorage
from lakewright.storage.live_storage import ADLS_SETTINGS, LiveStorage
from lakewright.validation.strict_model import StrictModel

if TYPE_CHECKING:
    import pulumi

AzureCloud = Literal["public", "us-government", "china"]


@dataclass(frozen=True)
class AzureHosts:
    """Hosts of a cloud."""

    storage: str
    """Suffix of the addresses of storage accounts, for the Data Lake API."""
    authority: str
    """Address of the identity provider."""


AZURE_CLOUDS: Mapping[AzureCloud, AzureHosts] = {
    "public": AzureHosts("dfs.core.windows.net", "https://login.microsoftonline.com/"),
    "us-government": AzureHosts("dfs.core.usgovcloudapi.net", "https://login.microsoftonline.us/"),
    "china": AzureHosts("dfs.core.chinacloudapi.cn", "https://login.chinacloudapi.cn/"),
}
"""Hosts by cloud. Specs name a cloud and no host, so that no secret of Lakekeeper is sent to another address.

Source: Azure SDK, `azure.identity.AzureAuthorityHosts`; Microsoft, "Azure Government vs. global Azure" and "Developer
guide for Azure in China".
"""

_IDENTITY = "azure-system-identity"
_HIDDEN_ID = "whose client id and directory id the server does not show; declare the storage manually"


class AzureCredential(StrictModel):
    """A key of the storage account, or the secret of an application, by reference."""

    account_key: Reference | None = None
    """Key of the storage account."""
    client_id: NotBlank | None = None
    """Id of the application (service principal)."""
    directory_id: NotBlank | None = None
    """Id of the Microsoft Entra tenant."""
    client_secret: Reference | None = None
    """Secret of the application."""

    @model_validator(mode="after")
    def _has_one_form(self) -> AzureCredential:
        client = (self.client_id, self.directory_id, self.client_secret)
        has_key, has_client = self.account_key is not None, all(client)
        if has_key == has_client or (has_key and any(client)):
            raise ValueError(
                "expected either `account_key`, or `client_id`, `directory_id` and `client_secret`; leave out"
                " `credential` for Lakekeeper's own identity"
            )
        return self


class AdlsStorage(CloudStorage):
    """A container of an Azure storage account with a hierarchical namespace. The stack makes nothing in it."""

    summary: ClassVar[str] = "a container of Azure Data Lake Storage"
    service: ClassVar[StorageKind] = "adls"
    key_field: ClassVar[str] = "account_key"
    url_scheme: ClassVar[str] = "abfss"
    unsupported_settings: ClassVar[Mapping[str, str]] = {
        "remote_signing": "Lakekeeper signs requests to S3 only",
        "session_tags": "they belong to roles of AWS",
    }
    questions: ClassVar[Sequence[Question]] = (
        Question("account", "storage account", option="account"),
        Question(
            "credential.account_key",
            "reference to the account's key",
            option="account_key",
            default="config:storage_account_key",
        ),
    )

    backend: Literal["adls"]
    bucket: AdlsContainerName
    """Name of the container (file system)."""
    account: AdlsAccountName
    """Name of the storage account."""
    cloud: AzureCloud = "public"
    credential: AzureCredential | None = None
    """Credential that Lakekeeper uses. Default: Lakekeeper's own identity, which `tenant_specs.identity_locations` of
    the environment must allow, and which the server must have enabled."""

    @classmethod
    def describe_container(cls, storage: Mapping[str, Any]) -> str:
        """Return the container with its account: accounts may have containers of the same name."""
        return f"{storage.get('account')}/{storage.get('bucket')}"

    @classmethod
    def read_back(cls, live: LiveStorage) -> dict[str, Any] | None:
        """Return the fields of a storage on ADLS. A key has an empty reference."""
        profile, kind = live.profile, live.credential_type
        if profile.get("type") != "adls":
            return None
        if kind not in {None, _IDENTITY, "shared-access-key"}:
            raise NotExpressibleError(f"its credential is of type `{kind}`, {_HIDDEN_ID}")
        fields = {"bucket": profile["filesystem"], "account": profile["account-name"], "cloud": _find_cloud(profile)}
        if fields["cloud"] == "public":
            del fields["cloud"]
        return fields if kind == _IDENTITY else fields | {"credential": {cls.key_field: ""}}

    @property
    def hosts(self) -> AzureHosts:
        """Hosts of the cloud."""
        return AZURE_CLOUDS[self.cloud]

    @property
    def own_endpoint(self) -> str | None:
        """Address of the storage account."""
        return f"https://{self.account}.{self.hosts.storage}"

    def storage_profile(self, access: WarehouseAccess, address: StorageAddress) -> dict[str, Any]:  # noqa: ARG002
        """Return a storage profile of type `adls`."""
        is_public = self.cloud == "public"
        profile: dict[str, Any] = {
            "type": "adls",
            "account_name": self.account,
            "filesystem": access.bucket,
            "key_prefix": access.key_prefix,
            "host": None if is_public else self.hosts.storage,
            "authority_host": None if is_public else self.hosts.authority,
            **{adls_name: access.settings.get(name) for name, adls_name in ADLS_SETTINGS.items()},
        }
        return {name: value for name, value in profile.items() if value is not None}

    def storage_credential(self, external_id: pulumi.Input[str] | None) -> dict[str, Any]:  # noqa: ARG002 - no role
        """Return the credential, secrets by reference."""
        credential = self.credential
        if credential is None:
            return {"type": _IDENTITY}
        if credential.account_key is not None:
            return {"type": "shared-access-key", "key": credential.account_key}
        return {
            "type": "client-credentials",
            "client_id": credential.client_id,
            "tenant_id": credential.directory_id,
            "client_secret": credential.client_secret,
        }

    def client_options(self, address: StorageAddress) -> dict[str, str]:  # noqa: ARG002 - the account has the address
        """Return the options of clients. PyIceberg needs the host of the Blob API outside of the public cloud."""
        if self.cloud == "public":
            return {}
        return {"adls.account-host": f"{self.account}.{self.hosts.storage.replace('dfs.', 'blob.', 1)}"}


def _find_cloud(profile: Mapping[str, Any]) -> AzureCloud:
    """Return the cloud of a storage profile in the server's JSON. Raises NotExpressibleError for other hosts."""
    public = AZURE_CLOUDS["public"]
    host = profile.get("host") or public.storage
    authority = f"{(profile.get('authority-host') or public.authority).rstrip('/')}/"
    for cloud, hosts in AZURE_CLOUDS.items():
        if (host, authority) == (hosts.storage, hosts.authority):
            return cloud
    names = ", ".join(AZURE_CLOUDS)
    raise NotExpressibleError(
        f"its host {host} with the authority {authority} is of no cloud that specs have ({names})"
    )
