"""The connection to the sandbox's cluster: the kubeconfig's address, and the calls that the real plugin makes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

import httpx
import yaml
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from lakewright_sandbox.cluster.app import PLATFORM
from lakewright_sandbox.cluster.kinds import ObjectKind, find_kind
from lakewright_sandbox.providers.kubernetes.kubeconfig import open_http
from lakewright_sandbox.providers.kubernetes.manifests import Manifest
from lakewright_sandbox.providers.protocol.errors import NotASandboxError, SandboxProviderError, UnsupportedError
from lakewright_sandbox.providers.protocol.properties import Properties

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_SECONDS_TO_DELETE = 300
"""The time that the real plugin waits for most kinds."""
_SECONDS_BETWEEN_LOOKS = 0.1
_MARK = "/api/v1/namespaces/kube-public/configmaps/lakewright-sandbox"
"""An object that marks a real API server as one of a sandbox. Only its administrator can make it."""


class RefusedByClusterError(SandboxProviderError):
    """The API server refused a call; `code` is the HTTP status, `reason` the API's reason."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        """Set HTTP status, reason and message."""
        super().__init__(message)
        self.code, self.reason = code, reason


class _StillThereError(SandboxProviderError):
    """A deleted object still exists."""


@dataclass(frozen=True)
class ClusterConnection:
    """A client of one cluster."""

    http: httpx.Client

    @classmethod
    def open(cls, config: Properties) -> ClusterConnection:
        """Connect to the cluster of a provider's configuration. Raises NotASandboxError for any other cluster."""
        http = open_http(config)
        try:
            is_sandbox = _is_sandbox(http)
        except (httpx.HTTPError, ValueError) as error:
            raise SandboxProviderError(
                f"the cluster at {http.base_url} does not respond: {type(error).__name__}"
            ) from error
        if not is_sandbox:
            raise NotASandboxError(
                f"the cluster at {http.base_url} is not a sandbox's: run `pulumi plugin install resource kubernetes` "
                "and use the real provider for it"
            )
        return cls(http)

    def get(self, manifest: Manifest) -> Manifest | None:
        """Return the live object of a manifest, None if it does not exist."""
        return self._call("GET", manifest, missing_is_none=True)

    def create(self, manifest: Manifest, *, dry_run: bool) -> Manifest:
        """Create an object by POST, as the plugin does since 4.29: an apply would take over an existing object."""
        query = {"fieldManager": "pulumi-kubernetes"} | ({"dryRun": "All"} if dry_run else {})
        return self._call("POST", manifest, query, json.dumps(manifest), "application/json") or {}

    def apply(self, manifest: Manifest, manager: str, *, force: bool, dry_run: bool) -> Manifest:
        """Change an object by server-side apply."""
        query = {"fieldManager": manager, "force": str(force).lower()} | ({"dryRun": "All"} if dry_run else {})
        return self._call("PATCH", manifest, query, yaml.safe_dump(manifest), "application/apply-patch+yaml") or {}

    def set_managed_fields(self, live: Manifest, managed: list[Properties]) -> Manifest:
        """Change the owners of fields without changing the object; return the object."""
        patch = [
            {"op": "replace", "path": "/metadata/managedFields", "value": managed},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
        ]
        return self._call("PATCH", live, {}, json.dumps(patch), "application/json-patch+json") or {}

    def delete(self, manifest: Manifest) -> None:
        """Delete an object with its dependents if it exists, and wait until it no longer exists."""
        query = {"propagationPolicy": "Foreground"}
        if self._call("DELETE", manifest, query, missing_is_none=True) is not None:
            self._wait_until_gone(manifest)

    def _wait_until_gone(self, manifest: Manifest) -> None:
        # Concurrent calls of a function with tenacity's decorator clear each other's statistics, and fail.
        Retrying(
            retry=retry_if_exception_type(_StillThereError),
            wait=wait_fixed(_SECONDS_BETWEEN_LOOKS),
            stop=stop_after_delay(_SECONDS_TO_DELETE),
            reraise=True,
        )(self._check_gone, manifest)

    def _check_gone(self, manifest: Manifest) -> None:
        if (live := self.get(manifest)) is not None and live["metadata"].get("deletionTimestamp"):
            raise _StillThereError(
                f"{manifest['kind']} {manifest['metadata']['name']} is still being deleted after {_SECONDS_TO_DELETE} s"
            )

    def _call(
        self,
        method: str,
        manifest: Manifest,
        query: dict[str, str] | None = None,
        body: str | None = None,
        media: str = "application/json",
        *,
        missing_is_none: bool = False,
    ) -> Manifest | None:
        path = _path(manifest, collection=method == "POST")
        try:
            response = self.http.request(
                method, path, params=query or {}, content=body, headers={"content-type": media}
            )
        except httpx.HTTPError as error:
            raise SandboxProviderError(f"the cluster does not respond: {type(error).__name__}") from error
        body_json = cast(Manifest, response.json())
        if missing_is_none and response.status_code == 404:
            return None
        if response.is_error:
            raise RefusedByClusterError(response.status_code, body_json["reason"], body_json["message"])
        return body_json


def _is_sandbox(http: httpx.Client) -> bool:
    """Return whether a cluster is the sandbox's stand-in, or an API server on this machine that is marked as one."""
    if http.get("/version").json().get("platform") == PLATFORM:
        return True
    return http.base_url.host in _LOOPBACK and http.get(_MARK).json().get("kind") == "ConfigMap"


def _kind(manifest: Manifest) -> ObjectKind:
    if (object_kind := find_kind(manifest["apiVersion"], manifest["kind"])) is None:
        raise UnsupportedError(f"the sandbox's cluster has no {manifest['kind']} of {manifest['apiVersion']}")
    return object_kind


def _path(manifest: Manifest, *, collection: bool) -> str:
    kind, metadata = _kind(manifest), manifest["metadata"]
    base = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    within = f"/namespaces/{metadata.get('namespace') or 'default'}" if kind.namespaced else ""
    return f"{base}{within}/{kind.plural}" + ("" if collection else f"/{metadata['name']}")
