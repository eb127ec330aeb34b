"""A cluster as a `kubernetes` provider reaches it, by the connection of the official client."""

# The client has no types; responses are checked where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlencode

import yaml

from lakewright.drift.session import ScanSession
from lakewright.errors import LakewrightError
from lakewright.validation.documents import as_list, as_mapping

_PAGE = 500
"""Objects in a response, as `kubectl` requests them."""
_TIMEOUT = 60.0
"""Seconds to wait for a response."""
_OK, _CREATED, _ACCEPTED = 200, 201, 202
_ERRORS = 400
_UNAUTHORIZED, _NOT_FOUND, _CONFLICT = 401, 404, 409


class ClusterUnreachableError(LakewrightError):
    """The cluster does not respond, or its credentials cannot be used. The message has one line."""


class ListDeniedError(LakewrightError):
    """The cluster refused a list."""


class ChangeDeniedError(LakewrightError):
    """The cluster refused to create or delete an object."""


@dataclass(frozen=True)
class Collection:
    """A kind of objects of a cluster."""

    path: str
    """Path of its API version, such as `/apis/apps/v1`."""
    plural: str
    is_namespaced: bool


def open_cluster(kubeconfig: str, context: str, session: ScanSession) -> LiveCluster:
    """Return the client of a cluster, opened once in a run. `Cluster` has the same parameters.

    Raises:
        ClusterUnreachableError: The kubeconfig cannot be used.
    """
    return session.shared.get_cached(("kubernetes", kubeconfig, context), lambda: LiveCluster(kubeconfig, context))


class LiveCluster:
    """A client of a cluster. Its methods raise ClusterUnreachableError if the cluster does not respond."""

    def __init__(self, kubeconfig: str, context: str) -> None:
        """Load the kubeconfig.

        Args:
            kubeconfig: Text or path; empty for the kubeconfig of the environment, else the service account of this pod.
            context: A context of it; empty for its current context.

        Raises:
            ClusterUnreachableError: The kubeconfig cannot be used.
        """
        import kubernetes  # noqa: PLC0415 - slow to load

        self._kubernetes = cast(Any, kubernetes)
        self._lock = threading.Lock()
        self._versions: dict[str, dict[str, Collection]] = {}
        try:
            self._configuration = self._load(kubeconfig, context or None)
            self._connections = self._kubernetes.client.ApiClient(self._configuration).rest_client.pool_manager
        except (self._kubernetes.config.ConfigException, OSError, ValueError, yaml.YAMLError) as error:
            raise ClusterUnreachableError(f"the kubeconfig cannot be used: {_format_error(error)}") from None

    def _load(self, kubeconfig: str, context: str | None) -> Any:
        config, client = self._kubernetes.config, self._kubernetes.client
        configuration = client.Configuration()
        if "\n" in kubeconfig or kubeconfig.startswith("{"):
            document = yaml.safe_load(kubeconfig)
            config.load_kube_config_from_dict(document, context=context, client_configuration=configuration)
        elif kubeconfig or os.environ.get("KUBECONFIG") or (Path.home() / ".kube" / "config").exists():
            path = str(Path(kubeconfig).expanduser()) if kubeconfig else None
            config.load_kube_config(config_file=path, context=context, client_configuration=configuration)
        else:
            config.load_incluster_config(client_configuration=configuration)
        return configuration

    def collection(self, api_version: str, kind: str) -> Collection | None:
        """Return the collection of a kind; None if the cluster does not serve it."""
        with self._lock:
            if api_version not in self._versions:
                self._versions[api_version] = self._discover(api_version)
            return self._versions[api_version].get(kind)

    def _discover(self, api_version: str) -> dict[str, Collection]:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        served = map(as_mapping, as_list(as_mapping(self._get(path, {})).get("resources")))
        return {
            str(item["kind"]): Collection(path, str(item["name"]), bool(item.get("namespaced")))
            for item in served
            if "/" not in str(item["name"])
        }

    def objects(self, collection: Collection, *, namespace: str = "", labels: str = "") -> Iterator[Mapping[str, Any]]:
        """Yield the objects of a kind, page by page.

        Args:
            collection: The kind.
            namespace: A namespace; empty for all.
            labels: A label selector; empty for all objects.

        Raises:
            ListDeniedError: The cluster refused the list.
        """
        within = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        query = {"limit": str(_PAGE)} | ({"labelSelector": labels} if labels else {})
        token = ""
        while True:
            page = self._get(f"{collection.path}{within}/{collection.plural}", query, token)
            yield from map(as_mapping, as_list(page.get("items")))
            token = str(as_mapping(page.get("metadata")).get("continue") or "")
            if not token:
                return

    def create(self, collection: Collection, manifest: Mapping[str, Any]) -> bool:
        """Create an object in its namespace. Return False if it exists.

        Raises:
            ChangeDeniedError: The cluster refused it.
        """
        namespace = quote(str(as_mapping(manifest.get("metadata")).get("namespace")), safe="")
        path = f"{collection.path}/namespaces/{namespace}/{collection.plural}"
        status, reason, _ = self._request("POST", path, manifest)
        if status not in (_CREATED, _CONFLICT):
            raise ChangeDeniedError(f"POST {path}: {status} {reason}")
        return status == _CREATED

    def delete(self, collection: Collection, namespace: str, name: str) -> bool:
        """Delete an object. Return False if it does not exist.

        Raises:
            ChangeDeniedError: The cluster refused it.
        """
        path = f"{collection.path}/namespaces/{quote(namespace, safe='')}/{collection.plural}/{quote(name, safe='')}"
        status, reason, _ = self._request("DELETE", path)
        if status not in (_OK, _ACCEPTED, _NOT_FOUND):
            raise ChangeDeniedError(f"DELETE {path}: {status} {reason}")
        return status != _NOT_FOUND

    def _get(self, path: str, query: dict[str, str], token: str = "") -> Mapping[str, Any]:
        # The methods of the client differ between its versions, but not its connection and its credentials.
        address = f"{path}?{urlencode(query | ({'continue': token} if token else {}))}"
        status, reason, document = self._request("GET", address)
        if status == _NOT_FOUND:
            return {}
        if status != _OK:
            raise ListDeniedError(f"GET {path}: {status} {reason}")
        return document

    def _request(
        self, method: str, address: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, str, Mapping[str, Any]]:
        """Return status, reason and document of a response.

        Raises:
            ClusterUnreachableError: The cluster does not respond, or refused the credentials.
        """
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "lakewright"}
        content = None if body is None else json.dumps(body)
        try:
            for credential in self._configuration.auth_settings().values():
                headers[credential["key"]] = credential["value"]
            response = self._connections.request(
                method,
                f"{self._configuration.host}{address}",
                headers=headers,
                body=content,
                timeout=_TIMEOUT,
                retries=1 if method == "GET" else False,
            )
            if response.status == _UNAUTHORIZED:
                raise ClusterUnreachableError("the cluster refused the credentials of the kubeconfig")
            document: Mapping[str, Any] = {}
            if response.status < _ERRORS:
                document = as_mapping(json.loads(response.data))
            return int(response.status), _find_reason(response), document
        except (HTTPError, OSError, ValueError, self._kubernetes.config.ConfigException) as error:
            raise ClusterUnreachableError(f"the cluster does not respond: {_format_error(error)}") from None


def _find_reason(response: Any) -> str:
    """Return the HTTP reason, and the message of a failure, in one line."""
    try:
        message = as_mapping(json.loads(response.data)).get("message") if response.status >= _ERRORS else None
    except ValueError:
        message = None
    return " ".join(f"{response.reason} ({message})".split()) if message else str(response.reason)


def _format_error(error: Exception) -> str:
    return " ".join(str(getattr(error, "reason", None) or error).split())
