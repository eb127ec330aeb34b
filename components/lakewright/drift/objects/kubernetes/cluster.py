"""A cluster as a `kubernetes` provider reaches it, read by the official client: lists of objects by kind."""

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
_OK = 200
_NOT_FOUND = 404
_UNAUTHORIZED = 401


class ClusterUnreachableError(LakewrightError):
    """The cluster does not respond, or its credentials cannot be used. The message has one line."""


class ListDeniedError(LakewrightError):
    """The cluster refused a list."""


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

    def _get(self, path: str, query: dict[str, str], token: str = "") -> Mapping[str, Any]:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        # The methods of the client differ between its versions, but not its connection and its credentials.
        url = f"{self._configuration.host}{path}?{urlencode(query | ({'continue': token} if token else {}))}"
        headers = {"Accept": "application/json", "User-Agent": "lakewright"}
        try:
            for credential in self._configuration.auth_settings().values():
                headers[credential["key"]] = credential["value"]
            response = self._connections.request("GET", url, headers=headers, timeout=_TIMEOUT, retries=1)
            if response.status == _NOT_FOUND:
                return {}
            if response.status == _UNAUTHORIZED:
                raise ClusterUnreachableError("the cluster refused the credentials of the kubeconfig")
            if response.status != _OK:
                raise ListDeniedError(f"GET {path}: {response.status} {response.reason}")
            return as_mapping(json.loads(response.data))
        except (HTTPError, OSError, ValueError, self._kubernetes.config.ConfigException) as error:
            raise ClusterUnreachableError(f"the cluster does not respond: {_format_error(error)}") from None


def _format_error(error: Exception) -> str:
    return " ".join(str(getattr(error, "reason", None) or error).split())
