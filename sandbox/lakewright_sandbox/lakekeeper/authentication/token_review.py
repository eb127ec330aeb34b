"""Authenticate Kubernetes service accounts by a TokenReview of a cluster's API, as released servers do."""

# The cluster's client has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.authentication.token_claims import Claims, build_refusal, names_audience
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal

log = logging.getLogger(__name__)


class MissingServiceAccountError(SandboxError):
    """The process has no address of a cluster, or no token of a ServiceAccount."""


class TokenReviewer:
    """Asks a cluster about each token. The cluster refuses tokens of accounts that were deleted."""

    def __init__(self, kubeconfig: Path | None, audiences: Sequence[str], subject: Literal["uid", "username"]) -> None:
        """Use the current context of a kubeconfig, or the ServiceAccount of this pod.

        Args:
            kubeconfig: File with the address of the cluster, and an identity that may create TokenReviews. None in a
                pod, which has them in variables and in files.
            audiences: Accepted audiences; the cluster's own if empty.
            subject: The property that identifies an account.

        Raises:
            MissingServiceAccountError: There is no kubeconfig, and the process does not run in a pod with a token.
        """
        import kubernetes  # noqa: PLC0415 - slow to load

        package = cast(Any, kubernetes)
        self._client = package.client
        client = package.config.new_client_from_config(str(kubeconfig)) if kubeconfig else _open_in_cluster(package)
        self._api = package.client.AuthenticationV1Api(client)
        self._audiences, self._subject = list(audiences), subject

    def handles(self, claims: Claims) -> bool:
        """Return whether unverified claims name an accepted audience."""
        return names_audience(claims, self._audiences)

    def principal(self, token: str) -> TokenPrincipal:
        """Return the principal of a token. Raises 401 `AuthenticationFailed`, also if the cluster does not respond."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - slow to load

        spec = {"token": token} | ({"audiences": self._audiences} if self._audiences else {})
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        try:
            status: Any = self._api.create_token_review(body, _request_timeout=10).status
        except (self._client.ApiException, HTTPError, OSError) as error:
            log.warning("cannot review a token at the cluster: %s", type(error).__name__)
            raise build_refusal("TokenReview") from None
        user, audiences = status.user, set(status.audiences or ())
        is_for_server = not self._audiences or bool(audiences.intersection(self._audiences))
        if status.error or not status.authenticated or not is_for_server or not user:
            raise build_refusal("TokenReview")
        subject = str((user.uid if self._subject == "uid" else user.username) or "").strip()
        if not subject:
            raise build_refusal("TokenReview")
        return TokenPrincipal(id=f"kubernetes~{subject}", name=str(user.username), email=None, is_human=False)


def _open_in_cluster(package: Any) -> Any:
    """Return a client with the token of this pod's ServiceAccount, which is read again when it is renewed."""
    configuration = package.client.Configuration()
    try:
        package.config.load_incluster_config(client_configuration=configuration)
    except package.config.ConfigException as error:
        raise MissingServiceAccountError(f"tokens of ServiceAccounts cannot be reviewed: {error}") from None
    return package.client.ApiClient(configuration)
