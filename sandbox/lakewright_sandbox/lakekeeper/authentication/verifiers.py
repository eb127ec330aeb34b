"""The verifiers of the tokens that a server accepts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol, cast

from lakewright_sandbox.lakekeeper.authentication.token_claims import Claims, get_text
from lakewright_sandbox.lakekeeper.authentication.token_review import TokenReviewer
from lakewright_sandbox.lakekeeper.authentication.token_verifier import TokenVerifier
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal
from lakewright_sandbox.lakekeeper.protocol.settings import OpenidProvider, Settings


class Verifier(Protocol):
    """Finds out whose token it is."""

    def handles(self, claims: Claims) -> bool:
        """Return whether a token with these unverified claims is for this verifier."""
        ...

    def principal(self, token: str) -> TokenPrincipal:
        """Return the principal of a token. Raises ApiError."""
        ...


def create_verifiers(settings: Settings) -> list[Verifier]:
    """Return the verifiers of accepted tokens; callers are not authenticated without any."""
    verifiers: list[Verifier] = [
        TokenVerifier(provider, partial(_find_subject, provider.subject_claims), ca_file=settings.ca_file)
        for provider in list_openid_providers(settings)
    ]
    if settings.kubernetes_issuer:
        subject = partial(_find_service_account, settings.kubernetes_subject)
        # A TokenReview without audiences checks the API server's own, which is its issuer by default.
        audiences = settings.kubernetes_audiences or (settings.kubernetes_issuer.rstrip("/"),)
        verifiers.append(TokenVerifier(OpenidProvider("kubernetes", settings.kubernetes_issuer, audiences), subject))
    if settings.kubeconfig or settings.in_cluster:
        verifiers.append(TokenReviewer(settings.kubeconfig, settings.kubernetes_audiences, settings.kubernetes_subject))
    return verifiers


def list_openid_providers(settings: Settings) -> tuple[OpenidProvider, ...]:
    """Return all OpenID providers in the order in which they are asked, the primary one first."""
    if not settings.openid_provider_uri:
        return settings.openid_providers
    primary = OpenidProvider(
        id="oidc",
        uri=settings.openid_provider_uri,
        audiences=settings.openid_audiences,
        subject_claims=settings.openid_subject_claims,
        roles_claim=settings.openid_roles_claim,
        additional_issuers=settings.openid_additional_issuers,
        scope=settings.openid_scope,
    )
    return (primary, *settings.openid_providers)


def _find_subject(names: tuple[str, ...], claims: Claims) -> str | None:
    return get_text(claims, *names)


def _find_service_account(source: str, claims: Claims) -> str | None:
    cluster = claims.get("kubernetes.io")
    account = cast(Claims, cluster).get("serviceaccount") if isinstance(cluster, Mapping) else None
    if not isinstance(account, Mapping):
        return None
    return get_text(cast(Mapping[str, Any], account), "uid") if source == "uid" else get_text(claims, "sub")
