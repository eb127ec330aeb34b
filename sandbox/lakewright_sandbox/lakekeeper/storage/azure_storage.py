"""Storage on Azure: objects through the Blob API, and SAS tokens of directories for clients.

The real server writes through the Data Lake API, which Azurite does not have.
"""

from __future__ import annotations

import binascii
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.storage.azure_profile import DEFAULT_HOST, AdlsProfileBody, AzCredential
from lakewright_sandbox.lakekeeper.storage.object_store import VendedAccess, build_storage_error
from lakewright_sandbox.object_stores.azure_signatures import (
    READ_PERMISSIONS,
    WRITE_PERMISSIONS,
    AzureAccount,
    authorize,
    make_sas,
    read_sas,
)

DEFAULT_SECONDS, BACKSHIFT_SECONDS, SHORTEST_SECONDS = 3600, 60, 120
"""Lifetime of a SAS without a setting, start in the past for differing clocks, and shortest lifetime.

Source: `az/mod.rs` of Lakekeeper 0.13.3.
"""


@dataclass(frozen=True)
class AzureStorage:
    """The storage of a warehouse: profile, credential and the address of the Blob service."""

    profile: AdlsProfileBody
    credential: AzCredential
    endpoint: str

    @property
    def vends_credentials(self) -> bool:
        """Return whether clients may get SAS tokens."""
        return self.profile.sas_enabled

    @property
    def signs_requests(self) -> bool:
        """Return False: the server signs requests to S3 only."""
        return False

    def open_objects(self, http: httpx.Client) -> AzureObjects:
        """Return the objects with the server's own credential."""
        return AzureObjects(http, self.endpoint, self._account)

    def vend(self, http: httpx.Client, location: str, *, writable: bool) -> VendedAccess:
        """Return access to a location by a SAS of its directory. Raises 412 `ShortTermCredentialError`."""
        account = self._account
        seconds = max(self.profile.sas_token_validity_seconds or DEFAULT_SECONDS, SHORTEST_SECONDS)
        expires = datetime.now(UTC) + timedelta(seconds=seconds - BACKSHIFT_SECONDS)
        container, directory = _split_uri(location.rstrip("/"))
        permissions = WRITE_PERMISSIONS if writable else READ_PERMISSIONS
        try:
            sas = make_sas(account, container, directory, permissions=permissions, expires=expires)
        except binascii.Error:
            message = "Failed to create short-term credential: Error getting azure sas token."
            raise ApiError(412, "ShortTermCredentialError", message) from None
        milliseconds = str(int(expires.timestamp()) * 1000)
        host = f"{self.profile.account_name}.{self.profile.host or DEFAULT_HOST}"
        config = {
            "expiration-time": milliseconds,
            f"adls.sas-token.{host}": sas,
            f"adls.sas-token-expires-at-ms.{host}": milliseconds,
        }
        objects = AzureObjects(http, self.endpoint, account, sas=read_sas(sas))
        return VendedAccess(objects, config, "adls.refresh-credentials-endpoint")

    @property
    def _account(self) -> AzureAccount:
        return AzureAccount(self.profile.account_name, self.credential.key or "")


class AzureObjects:
    """Objects by their `abfss://` URI, with the account's key or a SAS. Raises `StorageError`."""

    def __init__(
        self, http: httpx.Client, endpoint: str, account: AzureAccount, *, sas: Mapping[str, str] | None = None
    ) -> None:
        """Use a Blob service whose paths begin with the account."""
        self._http, self._endpoint, self._account, self._sas = http, endpoint, account, sas

    def write(self, uri: str, body: bytes) -> None:
        """Write an object."""
        self._send("PUT", uri, body=body, headers={"x-ms-blob-type": "BlockBlob"})

    def read(self, uri: str) -> bytes:
        """Return the content of an object."""
        return self._send("GET", uri).content

    def delete(self, uri: str) -> None:
        """Delete an object. An object that does not exist is deleted already."""
        self._send("DELETE", uri, accepted=(404,))

    def list(self, uri: str) -> Iterator[str]:
        """Yield the URIs under a location, which is taken as a directory."""
        base = uri.partition("://")[2].partition("/")[0]
        scheme = uri.partition("://")[0]
        marker = ""
        while True:
            page = self._list_page(uri, marker)
            for name in page.iterfind("./Blobs/Blob/Name"):
                yield f"{scheme}://{base}/{name.text}"
            marker = page.findtext("./NextMarker") or ""
            if not marker:
                return

    def is_empty(self, uri: str) -> bool:
        """Return whether there is no object under a location."""
        return self._list_page(uri, "").find("./Blobs/Blob") is None

    def delete_under(self, uri: str) -> int:
        """Delete all objects under a location. Return their number."""
        uris = list(self.list(uri))
        for object_uri in uris:
            self.delete(object_uri)
        return len(uris)

    def _list_page(self, uri: str, marker: str) -> ET.Element:
        prefix = _split_uri(uri.rstrip("/") + "/")[1]
        params = {"restype": "container", "comp": "list", "prefix": prefix} | ({"marker": marker} if marker else {})
        response = self._send("GET", uri, params=params, is_container=True)
        return ET.fromstring(response.content)  # noqa: S314 - a response of the emulator

    def _send(
        self,
        method: str,
        uri: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        is_container: bool = False,
        accepted: tuple[int, ...] = (),
    ) -> httpx.Response:
        container, name = _split_uri(uri)
        path = f"/{self._account.name}/{container}" + ("" if is_container else f"/{quote(name)}")
        query = dict(params or {})
        sent: dict[str, Any] = {**(headers or {}), "content-length": str(len(body))}
        if self._sas is None:
            try:
                sent = authorize(self._account, method, path, query, sent)
            except binascii.Error:
                raise build_storage_error("ADLS", 403, uri, "the account's key is not base64") from None
        else:
            query |= self._sas
        try:
            response = self._http.request(method, f"{self._endpoint}{path}", params=query, headers=sent, content=body)
        except httpx.HTTPError as error:
            raise build_storage_error("ADLS", 0, uri, type(error).__name__) from None
        if not response.is_success and response.status_code not in accepted:
            detail = response.headers.get("x-ms-error-code", response.reason_phrase)
            raise build_storage_error("ADLS", response.status_code, uri, detail)
        return response


def _split_uri(uri: str) -> tuple[str, str]:
    """Return container and path of an `abfss://CONTAINER@HOST/PATH` URI."""
    authority, _, path = uri.partition("://")[2].partition("/")
    return authority.partition("@")[0], path
