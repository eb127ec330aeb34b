"""Requests to S3 as clients of a table send them: signed with vended credentials, or by the catalog."""

# botocore carries no types; its values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import re
import ssl
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast
from urllib.parse import quote

import httpx
from lakewright_spark.aws_partition import service_host

from lakewright.client_access.catalog_access import CatalogAccess
from lakewright.client_access.check import AttemptResult, ProbeFailedError

S3Method = Literal["GET", "PUT", "DELETE", "POST"]
TIMEOUT = 30
"""Seconds to wait for each response."""
_DENIALS = frozenset({"AccessDenied", "AllAccessDisabled"})
"""S3 error codes of missing rights. Other 403s, as for an expired key, prove nothing."""


@dataclass(frozen=True)
class StoreResponse:
    """Status and error code of S3, or of the catalog that did not sign the request."""

    status: int
    code: str = ""
    content: bytes = b""
    is_refused_by_catalog: bool = False

    def __str__(self) -> str:
        """Return the evidence, without the content."""
        text = f"{self.status} {self.code}".strip()
        return f"not signed: {text}" if self.is_refused_by_catalog else text

    @property
    def is_success(self) -> bool:
        """Return whether the request was allowed."""
        return 200 <= self.status < 300

    @property
    def denial(self) -> AttemptResult:
        """Return whether the request was denied. "No such object" is the response of a right to read."""
        if self.is_success:
            return "allowed"
        if self.is_refused_by_catalog:
            return "denied" if 400 <= self.status < 500 and self.code else "not proven"
        if self.code == "NoSuchKey":
            return "allowed"
        return "denied" if self.status == 403 and self.code in _DENIALS else "not proven"


@dataclass(frozen=True)
class StoreAddress:
    """Address of requests to a bucket."""

    region: str
    endpoint: str | None
    path_style: bool

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> StoreAddress:
        """Return the address in the client configuration of a table."""
        region = config.get("s3.region") or config.get("client.region") or "us-east-1"
        return cls(region, config.get("s3.endpoint"), config.get("s3.path-style-access") == "true")

    def with_region(self, region: str | None) -> StoreAddress:
        """Return the address for a bucket of another region of AWS: S3 redirects requests to the wrong region."""
        return self if region is None or self.endpoint else replace(self, region=region)

    def build_url(self, bucket: str, key: str = "", query: Mapping[str, str] | None = None) -> str:
        """Return the URL of an object, or of the bucket with query parameters."""
        scheme, _, host = (self.endpoint or f"https://{service_host('s3', self.region)}").rstrip("/").partition("://")
        path = quote(key, safe="/-._~")
        base = f"{scheme}://{host}/{bucket}/{path}" if self.path_style or "." in bucket else ""
        base = base or f"{scheme}://{bucket}.{host}/{path}"
        # A parameter without a value, as in `?policy`, has no `=`: signatures treat both alike, stores do not.
        text = "&".join(f"{name}={quote(value, safe='')}" if value else name for name, value in (query or {}).items())
        return f"{base}?{text}" if text else base


class TableStore(Protocol):
    """Access to S3 by one table's credential."""

    @abstractmethod
    def send(
        self,
        method: S3Method,
        bucket: str,
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        content: bytes = b"",
        region: str | None = None,
    ) -> StoreResponse:
        """Send a request to S3 and return its response. `region`: the bucket's region, if it is not the table's."""
        raise NotImplementedError


@dataclass(frozen=True)
class VendedKeys:
    """Short-lived keys that the catalog vended for one table. Never printed."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> VendedKeys | None:
        """Return the keys in a client configuration; None if it has none."""
        key, secret = config.get("s3.access-key-id"), config.get("s3.secret-access-key")
        return cls(key, secret, config.get("s3.session-token")) if key and secret else None

    def __repr__(self) -> str:
        """Return a text without the keys."""
        return "VendedKeys(...)"


class VendedStore(TableStore):
    """Signs requests with vended credentials."""

    def __init__(self, address: StoreAddress, keys: VendedKeys, http: httpx.Client) -> None:
        """Create the access; it sends nothing."""
        self._address, self._keys, self._http = address, keys, http

    def send(
        self,
        method: S3Method,
        bucket: str,
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        content: bytes = b"",
        region: str | None = None,
    ) -> StoreResponse:
        """Sign a request and send it."""
        from botocore import auth, awsrequest, credentials  # noqa: PLC0415 - slow to load

        address = self._address.with_region(region)
        url = address.build_url(bucket, key, query)
        request = cast(Any, awsrequest).AWSRequest(method=method, url=url, data=content)
        keys = cast(Any, credentials).Credentials(
            self._keys.access_key_id, self._keys.secret_access_key, self._keys.session_token
        )
        cast(Any, auth).S3SigV4Auth(keys, "s3", address.region).add_auth(request)
        return _send(self._http, method, url, dict(request.headers.items()), content)


class SignedStore(TableStore):
    """Has the catalog sign each request (`remote-signing`)."""

    def __init__(
        self, address: StoreAddress, catalog: CatalogAccess, sign_path: str, http: httpx.Client, project: str | None
    ) -> None:
        """Create the access; it sends nothing."""
        self._address, self._catalog, self._sign_path = address, catalog, sign_path
        self._http, self._project = http, project

    def send(
        self,
        method: S3Method,
        bucket: str,
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        content: bytes = b"",
        region: str | None = None,
    ) -> StoreResponse:
        """Have a request signed and send it."""
        address = self._address.with_region(region)
        url = address.build_url(bucket, key, query)
        sign_body = make_sign_request(method, url, address.region)
        response = self._catalog.request("POST", self._sign_path, body=sign_body, project=self._project)
        if not response.is_success:
            return StoreResponse(response.status, response.kind, is_refused_by_catalog=True)
        headers = cast(dict[str, list[str]], response.body.get("headers") or {})
        first = {name: values[0] for name, values in headers.items() if values}
        return _send(self._http, method, str(response.body.get("uri") or url), first, content)


def make_sign_request(method: str, url: str, region: str) -> dict[str, Any]:
    """Return the body of a sign call."""
    host = httpx.URL(url).netloc.decode("ascii")
    return {"region": region, "uri": url, "method": method, "headers": {"Host": [host]}}


def open_s3_http(ca_bundle: str | None, certificates: Sequence[str] = ()) -> httpx.Client:
    """Return an HTTP client for S3 that trusts the authorities of the environment and of stores (PEM text)."""
    trust = ssl.create_default_context()
    if ca_bundle:
        trust.load_verify_locations(cafile=ca_bundle)
    for text in certificates:
        trust.load_verify_locations(cadata=text)
    return httpx.Client(timeout=TIMEOUT, verify=trust, follow_redirects=False)


def _send(http: httpx.Client, method: str, url: str, headers: Mapping[str, str], content: bytes) -> StoreResponse:
    sent_headers = {name: value for name, value in headers.items() if name.lower() not in {"host", "content-length"}}
    try:
        response = http.request(method, url, headers=sent_headers, content=content)
    except httpx.HTTPError as error:
        raise ProbeFailedError(f"S3 at {httpx.URL(url).host}: no response ({type(error).__name__})") from None
    code = re.search(rb"<Code>([A-Za-z0-9.]{1,80})</Code>", response.content)
    return StoreResponse(response.status_code, code[1].decode() if code else "", response.content)


def make_listing_query(prefix: str | None = None) -> dict[str, str]:
    """Return the query parameters that list the objects below a prefix, or all of a bucket."""
    return {"list-type": "2", "max-keys": "1", **({"prefix": prefix} if prefix is not None else {})}
