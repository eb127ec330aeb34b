"""Storage on Azure Data Lake Storage (generation 2). Tested by its requests alone: the sandbox has no such storage."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from lakewright.lakekeeper.provider.inputs import Declared, Replace, ServerKeeps, Since
from lakewright.lakekeeper.storage.layout import StorageLayout
from lakewright.names.types import AdlsKeyPrefix, StorageEndpoint

DEFAULT_HOST = "dfs.core.windows.net"
DEFAULT_AUTHORITY = "https://login.microsoftonline.com/"
WEEK = 7 * 24 * 3600


def _matching(pattern: str, rule: str) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(rule)
        return value

    return AfterValidator(check)


def _none_if(default: str) -> AfterValidator:
    """The server tells a default that was written out from one that was not, and lets neither become the other."""

    def check(value: str | None) -> str | None:
        return None if value == default else value

    return AfterValidator(check)


AccountName = Annotated[
    str, _matching(r"[a-z0-9]{3,24}", "a storage account has 3 to 24 lower-case letters and digits")
]
Filesystem = Annotated[
    str,
    _matching(
        r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]",
        "a filesystem has 3 to 63 lower-case letters, digits and single `-`, and starts and ends with none",
    ),
]
Host = Annotated[str, _matching(r"[A-Za-z0-9.-]+", "a host looks like `dfs.core.windows.net`")]


class AdlsProfile(Declared):
    """Storage on ADLS. `account_name` may change in place, as the server allows; see to it that the data moved."""

    type: Literal["adls"]
    """`adls`: Azure Data Lake Storage."""
    account_name: AccountName
    """Name of the storage account."""
    filesystem: Annotated[Filesystem, Replace()]
    """Name of the container."""
    key_prefix: Annotated[AdlsKeyPrefix, Replace()] = ""
    """Folder in the container that everything lies under."""
    host: Annotated[Host | None, _none_if(DEFAULT_HOST), Replace()] = None
    """Host of the storage; left out: Azure's own."""
    authority_host: Annotated[StorageEndpoint | None, _none_if(DEFAULT_AUTHORITY), Replace()] = None
    """URL of the identity provider; left out: Azure's own."""
    sas_enabled: bool = True
    """Whether tables are loaded with vended SAS tokens."""
    sas_token_validity_seconds: Annotated[int, Field(ge=1, le=WEEK)] = 3600
    """Life of a vended SAS token; a week at most."""
    allow_alternative_protocols: bool = False
    """Whether table locations may begin with `wasbs://`."""
    storage_layout: Annotated[StorageLayout | None, ServerKeeps(), Since((0, 12))] = None
    """Where new tables go below the prefix. Left out: as the server has it."""

    @property
    def roles(self) -> tuple[str, ...]:
        """There are no roles to assume."""
        return ()

    @property
    def place(self) -> tuple[Any, ...]:
        """What tells it from other storage, and never changes."""
        return self.type, self.account_name, self.filesystem, self.key_prefix, self.host

    @property
    def where(self) -> str:
        """Where it is, for people."""
        host = self.host or DEFAULT_HOST
        return f"abfss://{self.filesystem}@{self.account_name}.{host}/{self.key_prefix}".rstrip("/")


def adls_defaults_left_out(found: dict[str, Any]) -> dict[str, Any]:
    """The addresses in what the server answers, as they are declared: a default is left out."""
    authority = found["authority_host"] and f"{found['authority_host'].rstrip('/')}/"
    return {
        "host": None if found["host"] == DEFAULT_HOST else found["host"],
        "authority_host": None if authority == DEFAULT_AUTHORITY else authority,
    }
