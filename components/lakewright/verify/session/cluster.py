"""The tenant's namespace in a Kubernetes cluster: tokens of its ServiceAccounts, and the objects that its pods use."""

# The cluster's client carries no types; its values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from lakewright.client_access.check import IdentityUnavailableError, ProbeFailedError
from lakewright.validation.documents import as_list, as_mapping

TIMEOUT = 15
"""Seconds to wait for each response of the cluster."""
TOKEN_SECONDS = 900
"""Lifetime of a requested token; a run is shorter."""

_LIST_CALLS = (
    ("Deployment", "AppsV1Api", "list_namespaced_deployment"),
    ("CronJob", "BatchV1Api", "list_namespaced_cron_job"),
    ("Pod", "CoreV1Api", "list_namespaced_pod"),
    ("ConfigMap", "CoreV1Api", "list_namespaced_config_map"),
    ("NetworkPolicy", "NetworkingV1Api", "list_namespaced_network_policy"),
)
"""Kinds of the objects that describe and configure pods, with the calls that list them."""


class TenantCluster:
    """The namespace of a tenant, through the kubeconfig of this machine."""

    def __init__(self, context: str | None, namespace: str) -> None:
        """Load the kubeconfig; `context` is one of its contexts, None the current context.

        Raises:
            IdentityUnavailableError: There is no kubeconfig, or it has no such context.
        """
        import kubernetes  # noqa: PLC0415 - slow to load

        self._kubernetes, self.namespace = cast(Any, kubernetes), namespace
        try:
            self._api = self._kubernetes.config.new_client_from_config(context=context)
        except self._kubernetes.config.ConfigException as error:
            raise IdentityUnavailableError(f"the kubeconfig cannot be used: {error}") from None

    def issue_token(self, service_account: str, audiences: Sequence[str]) -> str:
        """Return a token of a ServiceAccount, as its pods get it (TokenRequest). No audience: the cluster's own.

        Raises:
            IdentityUnavailableError: The cluster issues none.
        """
        spec = {"audiences": [*audiences], "expirationSeconds": TOKEN_SECONDS}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        create = self._kubernetes.client.CoreV1Api(self._api).create_namespaced_service_account_token
        title = f"a token of ServiceAccount {self.namespace}/{service_account}"
        with self._explain_errors(title, IdentityUnavailableError):
            return str(create(service_account, self.namespace, request, _request_timeout=TIMEOUT).status.token)

    def read_secret(self, name: str, key: str) -> str:
        """Return a key of a Secret that pods mount.

        Raises:
            IdentityUnavailableError: It cannot be read.
        """
        read = self._kubernetes.client.CoreV1Api(self._api).read_namespaced_secret
        with self._explain_errors(f"Secret {self.namespace}/{name}", IdentityUnavailableError):
            data = as_mapping(read(name, self.namespace, _request_timeout=TIMEOUT).data)
        try:
            return base64.b64decode(str(data[key]), validate=True).decode().strip()
        except (KeyError, ValueError, binascii.Error):
            raise IdentityUnavailableError(f"Secret {self.namespace}/{name} has no readable key {key}") from None

    def list_manifests(self) -> Iterator[dict[str, Any]]:
        """Yield the objects that describe and configure the tenant's pods.

        Raises:
            ProbeFailedError: The cluster does not list them.
        """
        for kind, group, call in _LIST_CALLS:
            list_all: Callable[..., Any] = getattr(getattr(self._kubernetes.client, group)(self._api), call)
            with self._explain_errors(f"objects of kind {kind} in {self.namespace}", ProbeFailedError):
                object_list = self._api.sanitize_for_serialization(list_all(self.namespace, _request_timeout=TIMEOUT))
            for item in as_list(as_mapping(object_list).get("items")):
                yield {**as_mapping(item), "kind": kind}

    @contextmanager
    def _explain_errors(self, title: str, error_type: type[Exception]) -> Generator[None]:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            yield
        except (self._kubernetes.client.ApiException, HTTPError, OSError) as error:
            reason = " ".join(str(getattr(error, "reason", None) or error).split())
            raise error_type(
                f"{title}: the cluster responded with {getattr(error, 'status', '')} {reason}".rstrip()
            ) from None
