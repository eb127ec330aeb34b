"""Storage profiles of Azure Data Lake Storage Gen2 and Google Cloud Storage, and the layout that every profile has."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from lakewright.lakekeeper.provider.inputs import Declared, Replace, ServerKeeps, Since, has_unknown
from lakewright.names.azure_names import AdlsAccountName, AdlsContainerName, AdlsHost
from lakewright.names.types import AdlsKeyPrefix, GcsBucketName, GcsKeyPrefix, StorageEndpoint


class StorageLayout(Declared):
    """Layout of the folders of new tables below the warehouse's prefix. Existing tables do not move."""

    type: Literal["default", "tabular-only", "full-hierarchy"]
    """`default`, `tabular-only` (all tables side by side) or `full-hierarchy` (nested folders of namespaces)."""
    tabular: str | None = None
    """Name of a table's folder, with `{uuid}` or `{name}`."""
    namespace: str | None = None
    """Name of a namespace's folder, with `{uuid}` or `{name}`."""

    @model_validator(mode="after")
    def _templates(self) -> Self:
        if has_unknown([self.type, self.tabular, self.namespace]):
            return self
        expected = {"default": set[str](), "tabular-only": {"tabular"}, "full-hierarchy": {"tabular", "namespace"}}[
            self.type
        ]
        templates = {name for name in ("tabular", "namespace") if getattr(self, name)}
        if templates != expected:
            names = " and ".join(f"`{name}`" for name in sorted(expected)) or "no template"
            raise ValueError(f"a layout of type `{self.type}` needs exactly: {names}")
        if self.type == "tabular-only" and "{uuid}" not in (self.tabular or ""):
            raise ValueError("`tabular` must contain {uuid}: without namespaces in the path, names alone would collide")
        for name in sorted(templates):
            if not any(part in getattr(self, name) for part in ("{uuid}", "{name}")):
                raise ValueError(f"`{name}` must contain {{uuid}} or {{name}}")
        return self


DEFAULT_HOST = "dfs.core.windows.net"
DEFAULT_AUTHORITY = "https://login.microsoftonline.com/"
WEEK = 7 * 24 * 3600


def _none_if(default: str) -> AfterValidator:
    """Replace an explicit default with None.

    The server distinguishes an explicit default from an omitted value, and allows no change between the two.
    """

    def check(value: str | None) -> str | None:
        return None if value == default else value

    return AfterValidator(check)


class AdlsProfile(Declared):
    """Storage on ADLS."""

    type: Literal["adls"]
    """`adls`: Azure Data Lake Storage."""
    account_name: Annotated[AdlsAccountName, Replace()]
    """Name of the storage account. The server would change it in place, and tables contain it in their addresses."""
    filesystem: Annotated[AdlsContainerName, Replace()]
    """Name of the container."""
    key_prefix: Annotated[AdlsKeyPrefix, Replace()] = ""
    """Folder in the container for all data of the warehouse."""
    host: Annotated[AdlsHost | None, _none_if(DEFAULT_HOST), Replace()] = None
    """Host of the storage. Default: `dfs.core.windows.net`."""
    authority_host: Annotated[StorageEndpoint | None, _none_if(DEFAULT_AUTHORITY), Replace()] = None
    """URL of the identity provider. Default: `https://login.microsoftonline.com/`."""
    sas_enabled: bool = True
    """Whether tables are loaded with vended SAS tokens."""
    sas_token_validity_seconds: Annotated[int, Field(ge=1, le=WEEK)] = 3600
    """Lifetime of a vended SAS token, in seconds; at most a week."""
    allow_alternative_protocols: bool = False
    """Whether table locations may begin with `wasbs://`."""
    storage_layout: Annotated[StorageLayout | None, ServerKeeps(), Since((0, 12))] = None
    """Layout of the folders of new tables below the prefix. If omitted, the server keeps its value."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Return no roles: this storage has none to assume."""
        return ()

    @property
    def place(self) -> tuple[Any, ...]:
        """Values that identify the storage and never change."""
        return self.type, self.account_name, self.filesystem, self.key_prefix, self.host

    @property
    def where(self) -> str:
        """Location as a URL, for messages."""
        host = self.host or DEFAULT_HOST
        return f"abfss://{self.filesystem}@{self.account_name}.{host}/{self.key_prefix}".rstrip("/")


def adls_defaults_left_out(profile: dict[str, Any]) -> dict[str, Any]:
    """Return the hosts of a response, with None instead of a default."""
    authority = profile["authority_host"] and f"{profile['authority_host'].rstrip('/')}/"
    return {
        "host": None if profile["host"] == DEFAULT_HOST else profile["host"],
        "authority_host": None if authority == DEFAULT_AUTHORITY else authority,
    }


class GcsProfile(Declared):
    """Storage on GCS."""

    type: Literal["gcs"]
    """`gcs`: Google Cloud Storage."""
    bucket: Annotated[GcsBucketName, Replace()]
    """Name of the bucket."""
    key_prefix: Annotated[GcsKeyPrefix, Replace()] = ""
    """Folder in the bucket for all data of the warehouse."""
    sts_enabled: bool = True
    """Whether tables are loaded with vended credentials."""
    storage_layout: Annotated[StorageLayout | None, ServerKeeps(), Since((0, 12))] = None
    """Layout of the folders of new tables below the prefix. If omitted, the server keeps its value."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Return no roles: this storage has none to assume."""
        return ()

    @property
    def place(self) -> tuple[Any, ...]:
        """Values that identify the storage and never change."""
        return self.type, self.bucket, self.key_prefix

    @property
    def where(self) -> str:
        """Location as a URL, for messages."""
        return f"gs://{self.bucket}/{self.key_prefix}".rstrip("/")
