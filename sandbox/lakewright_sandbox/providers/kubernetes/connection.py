"""The connection to the sandbox's cluster: the kubeconfig's address, and the calls that the real plugin makes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import yaml

from lakewright_sandbox.cluster.app import PLATFORM
from lakewright_sandbox.cluster.kinds import ObjectKind, find_kind
from lakewright_sandbox.providers.kubernetes.manifests import Manifest
from lakewright_sandbox.providers.protocol.errors import NotASandboxError, SandboxProviderError, UnsupportedError
from lakewright_sandbox.providers.protocol.properties import Properties


class RefusedByClusterError(SandboxProviderError):
    """The API server refused a call; `code` is the HTTP status, `reason` the API's reason."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        """Set HTTP status, reason and message."""
        super().__init__(message)
        self.code, self.reason = code, reason


@dataclass(frozen=True)
class ClusterConnection:
    """A client of one cluster."""

    http: httpx.Client

    @classmethod
    def open(cls, config: Properties) -> ClusterConnection:
        """Connect to the cluster of a provider's configuration. Raises NotASandboxError for any other cluster."""
        server = read_server(config)
        http = httpx.Client(base_url=server, timeout=30, trust_env=False)
        try:
            platform = http.get("/version").json().get("platform")
        except (httpx.HTTPError, ValueError) as error:
            raise SandboxProviderError(f"the cluster at {server} does not answer: {type(error).__name__}") from error
        if platform != PLATFORM:
            raise NotASandboxError(
                f"the cluster at {server} is not a sandbox's: run `pulumi plugin install resource kubernetes` "
                "and use the real provider for it"
            )
        return cls(http)

    def get(self, manifest: Manifest) -> Manifest | None:
        """Return the live object of a manifest, None if it does not exist."""
        return self._call("GET", manifest, missing_is_none=True)

    def create(self, manifest: Manifest, *, dry_run: bool) -> Manifest:
        """Create an object as the plugin does since 4.29: by POST, since an apply would take over an existing one."""
        query = {"fieldManager": "pulumi-kubernetes"} | ({"dryRun": "All"} if dry_run else {})
        return self._call("POST", manifest, query, json.dumps(manifest), "application/json") or {}

    def apply(self, manifest: Manifest, manager: str, *, force: bool, dry_run: bool) -> Manifest:
        """Change an object by server-side apply."""
        query = {"fieldManager": manager, "force": str(force).lower()} | ({"dryRun": "All"} if dry_run else {})
        return self._call("PATCH", manifest, query, yaml.safe_dump(manifest), "application/apply-patch+yaml") or {}

    def set_managed_fields(self, live: Manifest, managed: list[Properties]) -> None:
        """Change the owners of fields without changing the object."""
        patch = [
            {"op": "replace", "path": "/metadata/managedFields", "value": managed},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
        ]
        self._call("PATCH", live, {}, json.dumps(patch), "application/json-patch+json")

    def delete(self, manifest: Manifest) -> None:
        """Delete an object if it exists."""
        self._call("DELETE", manifest, missing_is_none=True)

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
            answer = self.http.request(method, path, params=query or {}, content=body, headers={"content-type": media})
        except httpx.HTTPError as error:
            raise SandboxProviderError(f"the cluster does not answer: {type(error).__name__}") from error
        body_json = cast(Manifest, answer.json())
        if missing_is_none and answer.status_code == 404:
            return None
        if answer.is_error:
            raise RefusedByClusterError(answer.status_code, body_json["reason"], body_json["message"])
        return body_json


def read_server(config: Properties) -> str:
    """Return the server's address in a provider's kubeconfig, given as text or file, by default in $KUBECONFIG."""
    given = str(config.get("kubeconfig") or os.environ.get("KUBECONFIG") or "")
    try:
        text = given if "\n" in given or given.startswith("{") else Path(given).expanduser().read_text("utf-8")
        document: Any = yaml.safe_load(text)
        wanted = config.get("context") or document["current-context"]
        context = next(entry["context"] for entry in document["contexts"] if entry["name"] == wanted)
        return next(entry["cluster"]["server"] for entry in document["clusters"] if entry["name"] == context["cluster"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise SandboxProviderError(
            "the kubernetes provider's `kubeconfig`, or $KUBECONFIG, must contain the cluster of its context; it "
            f"cannot be used ({type(error).__name__})"
        ) from error


def _kind(manifest: Manifest) -> ObjectKind:
    if (found := find_kind(manifest["apiVersion"], manifest["kind"])) is None:
        raise UnsupportedError(f"the sandbox's cluster has no {manifest['kind']} of {manifest['apiVersion']}")
    return found


def _path(manifest: Manifest, *, collection: bool) -> str:
    kind, metadata = _kind(manifest), manifest["metadata"]
    base = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    within = f"/namespaces/{metadata.get('namespace') or 'default'}" if kind.namespaced else ""
    return f"{base}{within}/{kind.plural}" + ("" if collection else f"/{metadata['name']}")
