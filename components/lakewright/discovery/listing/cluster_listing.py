"""List objects of a Kubernetes cluster, page by page, with the kubeconfig of this machine."""

# The client has no types; responses are checked where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from lakewright.validation.documents import list_of, mapping_of

_PAGE = "500"
_TIMEOUT = (5, 60)
"""Seconds to connect, and to wait for a response."""


class ClusterListingError(Exception):
    """A cluster does not list its objects. The message has one line."""


class ClusterLister:
    """Lists objects of one cluster."""

    def __init__(self, context: str | None) -> None:
        """Load the kubeconfig; `context` is one of its contexts, None its current one.

        Raises:
            ClusterListingError: There is none, or it has no such context.
        """
        import kubernetes  # noqa: PLC0415 - slow to load

        self._kubernetes = cast(Any, kubernetes)
        try:
            self._api = self._kubernetes.config.new_client_from_config(context=context)
        except (self._kubernetes.config.ConfigException, OSError, ValueError) as error:
            raise ClusterListingError(f"the kubeconfig cannot be used: {_one_line(error)}") from None

    def objects(self, path: str, labels: str = "") -> Iterator[Mapping[str, Any]]:
        """Yield the objects of a collection, such as `/apis/apps/v1/deployments`.

        Raises:
            ClusterListingError: The cluster does not answer, or refuses the list.
        """
        query = [("limit", _PAGE), *([("labelSelector", labels)] if labels else [])]
        token = ""
        while True:
            page = self._get(path, [*query, *([("continue", token)] if token else [])])
            yield from map(mapping_of, list_of(page.get("items")))
            token = str(mapping_of(page.get("metadata")).get("continue") or "")
            if not token:
                return

    def _get(self, path: str, query: list[tuple[str, str]]) -> Mapping[str, Any]:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            response = self._api.call_api(
                path,
                "GET",
                query_params=query,
                header_params={"Accept": "application/json"},
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=_TIMEOUT,
            )
            return mapping_of(json.loads(response.data))
        except self._kubernetes.client.ApiException as error:
            raise ClusterListingError(f"GET {path}: {error.status} {error.reason}") from None
        except (HTTPError, OSError, ValueError) as error:
            raise ClusterListingError(f"GET {path}: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(getattr(error, "reason", None) or error).split())
