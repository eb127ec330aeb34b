"""Storage on Google Cloud: objects through the JSON API, and downscoped tokens for clients."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import jwt

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.storage.google_profile import GcsCredential, GcsProfileBody, GcsServiceKey
from lakewright_sandbox.lakekeeper.storage.object_store import VendedAccess, build_storage_error

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a kind of tokens


@dataclass(frozen=True)
class GoogleStorage:
    """The storage of a warehouse: profile, credential and the address of the service."""

    profile: GcsProfileBody
    credential: GcsCredential
    endpoint: str

    @property
    def vends_credentials(self) -> bool:
        """Return whether clients may get downscoped tokens."""
        return self.profile.sts_enabled

    @property
    def signs_requests(self) -> bool:
        """Return False: the server signs requests to S3 only."""
        return False

    def open_objects(self, http: httpx.Client) -> GoogleObjects:
        """Return the objects with the server's own credential."""
        try:
            return GoogleObjects(http, self.endpoint, self._request_token(http))
        except ApiError as error:
            message = f"Failed to initialize GCS client with credentials file: {error.message}"
            raise ApiError(412, "InitializeClientError", message) from None

    def vend(self, http: httpx.Client, location: str, *, writable: bool) -> VendedAccess:
        """Return access to a location by a downscoped token. Raises 424 `FailedDependency`."""
        request = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": _ACCESS_TOKEN,
            "subject_token": self._request_token(http),
            "subject_token_type": _ACCESS_TOKEN,
            "options": quote(json.dumps(build_boundary(self.profile.bucket, location, writable=writable)), safe=""),
        }
        try:
            response = http.post(f"{self.endpoint}/v1/token", json=request).json()
            token, seconds = str(response["access_token"]), int(response.get("expires_in") or 3600)
        except (httpx.HTTPError, ValueError, KeyError):
            raise _build_dependency_error("Failed to downscope.") from None
        milliseconds = str(int(time.time() + seconds) * 1000)
        config = {
            "gcs.oauth2.token": token,
            "gcs.oauth2.token-expires-at": milliseconds,
            "expiration-time": milliseconds,
        }
        if self.credential.key:
            config["gcs.project-id"] = self.credential.key.project_id
        return VendedAccess(
            GoogleObjects(http, self.endpoint, token), config, "gcs.oauth2.refresh-credentials-endpoint"
        )

    def _request_token(self, http: httpx.Client) -> str:
        """Return a token of the service account. Raises 424 `FailedDependency`."""
        key = self.credential.key
        try:
            assertion = _sign_assertion(key) if key else ""
            form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
            response = http.post(key.token_uri if key else self.endpoint, data=form)
            return str(response.raise_for_status().json()["access_token"])
        except (httpx.HTTPError, ValueError, KeyError, jwt.PyJWTError):
            raise _build_dependency_error("Failed to get gcp token from token source") from None


def build_boundary(bucket: str, location: str, *, writable: bool) -> dict[str, Any]:
    """Return the Credential Access Boundary of a location. Source: `gcs/sts.rs` of Lakekeeper 0.13.3."""
    prefix = location.rstrip("/").removeprefix(f"gs://{bucket}/") + "/"
    in_bucket = f"projects/_/buckets/{_escape(bucket)}"
    expression = " || ".join(
        [
            *(f"resource.name.startsWith('{in_bucket}/{kind}/{_escape(prefix)}')" for kind in ("objects", "folders")),
            f"api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('{_escape(prefix)}')",
        ]
    )
    rule = {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{bucket}",
        "availablePermissions": [f"inRole:roles/storage.{'objectUser' if writable else 'objectViewer'}"],
        "availabilityCondition": {"title": "obj-prefixes", "expression": expression},
    }
    return {"accessBoundary": {"accessBoundaryRules": [rule]}}


class GoogleObjects:
    """Objects by their `gs://` URI, with a token. Raises `StorageError`."""

    def __init__(self, http: httpx.Client, endpoint: str, token: str) -> None:
        """Use a service with a token."""
        self._http, self._endpoint, self._token = http, endpoint, token

    def write(self, uri: str, body: bytes) -> None:
        """Write an object."""
        bucket, name = _split_uri(uri)
        params = {"uploadType": "media", "name": name}
        self._send("POST", f"/upload/storage/v1/b/{bucket}/o", uri, params=params, body=body)

    def read(self, uri: str) -> bytes:
        """Return the content of an object."""
        return self._send("GET", _object_path(uri), uri, params={"alt": "media"}).content

    def delete(self, uri: str) -> None:
        """Delete an object. An object that does not exist is deleted already."""
        self._send("DELETE", _object_path(uri), uri, accepted=(404,))

    def list(self, uri: str) -> Iterator[str]:
        """Yield the URIs under a location, which is taken as a directory."""
        bucket = _split_uri(uri)[0]
        page_token = ""
        while True:
            page = self._list_page(uri, page_token)
            entries: list[dict[str, Any]] = page.get("items") or []
            for entry in entries:
                yield f"gs://{bucket}/{entry['name']}"
            page_token = str(page.get("nextPageToken") or "")
            if not page_token:
                return

    def is_empty(self, uri: str) -> bool:
        """Return whether there is no object under a location."""
        return not self._list_page(uri, "").get("items")

    def delete_under(self, uri: str) -> int:
        """Delete all objects under a location. Return their number."""
        uris = list(self.list(uri))
        for object_uri in uris:
            self.delete(object_uri)
        return len(uris)

    def _list_page(self, uri: str, page_token: str) -> Any:
        bucket, prefix = _split_uri(uri.rstrip("/") + "/")
        params = {"prefix": prefix} | ({"pageToken": page_token} if page_token else {})
        return self._send("GET", f"/storage/v1/b/{bucket}/o", uri, params=params).json()

    def _send(
        self,
        method: str,
        path: str,
        uri: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        accepted: tuple[int, ...] = (),
    ) -> httpx.Response:
        headers = {"authorization": f"Bearer {self._token}"}
        headers |= {"content-type": "application/octet-stream"} if body is not None else {}
        try:
            response = self._http.request(
                method, f"{self._endpoint}{path}", params=params, content=body, headers=headers
            )
        except httpx.HTTPError as error:
            raise build_storage_error("GCS", 0, uri, type(error).__name__) from None
        if not response.is_success and response.status_code not in accepted:
            raise build_storage_error("GCS", response.status_code, uri, response.reason_phrase)
        return response


def _sign_assertion(key: GcsServiceKey) -> str:
    now = int(time.time())
    claims = {"iss": key.client_email, "scope": _SCOPE, "aud": key.token_uri, "iat": now, "exp": now + 3600}
    return jwt.encode(claims, key.private_key, algorithm="RS256", headers={"kid": key.private_key_id})


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"')


def _object_path(uri: str) -> str:
    bucket, name = _split_uri(uri)
    return f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}"


def _split_uri(uri: str) -> tuple[str, str]:
    bucket, _, name = uri.partition("://")[2].partition("/")
    return bucket, name


def _build_dependency_error(reason: str) -> ApiError:
    message = f"Failed Dependency: '{reason}', please check your storage provider configuration."
    return ApiError(424, "FailedDependency", message)
