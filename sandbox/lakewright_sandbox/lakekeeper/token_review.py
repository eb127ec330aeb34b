"""Authenticate Kubernetes service accounts by a TokenReview of a cluster's API, as released servers do."""

# The cluster's client has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal

log = logging.getLogger(__name__)


class TokenReviewer:
    """Asks a cluster about each token. The cluster refuses tokens of accounts that were deleted."""

    def __init__(self, kubeconfig: Path, audiences: Sequence[str], subject: Literal["uid", "username"]) -> None:
        """Use the current context of a kubeconfig.

        Args:
            kubeconfig: File with the address of the cluster, and an identity that may create TokenReviews.
            audiences: Accepted audiences; the cluster's own if empty.
            subject: The property that identifies an account.
        """
        import kubernetes  # noqa: PLC0415 - slow to load

        package = cast(Any, kubernetes)
        self._client = package.client
        self._api = package.client.AuthenticationV1Api(package.config.new_client_from_config(str(kubeconfig)))
        self._audiences, self._subject = list(audiences), subject

    def principal(self, token: str) -> TokenPrincipal:
        """Return the principal of a token. Raises 401 `AuthenticationFailed`, 503 if the cluster does not respond."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - slow to load

        spec = {"token": token} | ({"audiences": self._audiences} if self._audiences else {})
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        try:
            status: Any = self._api.create_token_review(body, _request_timeout=10).status
        except (self._client.ApiException, HTTPError, OSError) as error:
            log.warning("cannot review a token at the cluster: %s", type(error).__name__)
            raise ApiError(503, "AuthenticationBackendError", "The cluster cannot be asked about the token.") from None
        if not status.authenticated or not status.user or not status.user.uid:
            raise ApiError(401, "AuthenticationFailed", "The token was not accepted: TokenReview")
        subject = status.user.uid if self._subject == "uid" else status.user.username
        return TokenPrincipal(id=f"kubernetes~{subject}", name=str(status.user.username), email=None, is_human=False)
