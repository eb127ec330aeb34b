"""Settings of authentication: OIDC providers and tokens of Kubernetes service accounts."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, model_validator

from lakewright.platform_stack.settings.types import HttpUrl, Text, TextList
from lakewright.platform_stack.settings.variables import EnvPrefix, EnvVar
from lakewright.validation.strict_model import StrictModel

_PROVIDER = re.compile(r"[a-z0-9-]+")


def _check_provider_id(value: str) -> str:
    if not _PROVIDER.fullmatch(value) or value in {"oidc", "kubernetes"}:
        raise ValueError("an identity provider's id has lower-case letters, digits and `-`; not `oidc`, `kubernetes`")
    return value


_CONFIGURATION = "/.well-known/openid-configuration"
_ENTRA_HOSTS = (
    "login.microsoftonline.com",
    "login.microsoftonline.us",
    "login.partner.microsoftonline.cn",
    "sts.windows.net",
)
"""Hosts of Entra, whose `sub` differs for each application: the user's id is `oid`. In B2C (`NAME.b2clogin.com`), the
user's id is `sub`."""
_EXTERNAL_ENTRA = ".ciamlogin.com"
"""Domain of the hosts of Entra External ID, which issues the same tokens as Entra."""


def choose_subject_claims(provider_uri: str) -> list[str]:
    """Return the claims that have the subject of an issuer's tokens.

    Lakekeeper identifies users by them, and directories of groups name users by the same id.
    """
    host = urlsplit(provider_uri).hostname or ""
    return ["oid"] if host in _ENTRA_HOSTS or host.endswith(_EXTERNAL_ENTRA) else ["sub"]


def _fill_subject_claims(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    provider = cast(dict[str, Any], document)
    uri = provider.get("provider_uri")
    if provider.get("subject_claims") is not None or not isinstance(uri, str):
        return provider
    return provider | {"subject_claims": choose_subject_claims(uri)}


def _check_provider_uri(value: str) -> str:
    if value.rstrip("/").endswith(_CONFIGURATION):
        raise ValueError(f"expected the address without `{_CONFIGURATION}`, which Lakekeeper appends itself")
    return value


ProviderId = Annotated[str, AfterValidator(_check_provider_id)]
ProviderUri = Annotated[HttpUrl, AfterValidator(_check_provider_uri)]


class OidcSettings(StrictModel):
    """The primary identity provider. User ids are `oidc~SUBJECT`."""

    provider_uri: Annotated[ProviderUri, EnvVar("OPENID_PROVIDER_URI")]
    """Address whose `/.well-known/openid-configuration` names issuer and keys."""
    audience: Annotated[TextList, EnvVar("OPENID_AUDIENCE", form="comma")]
    """Accepted audiences of tokens, any of them. Required: otherwise tokens for other services are accepted."""
    additional_issuers: Annotated[TextList | None, EnvVar("OPENID_ADDITIONAL_ISSUERS", form="comma")] = None
    scope: Annotated[Text | None, EnvVar("OPENID_SCOPE")] = None
    """Scope that every token must have."""
    subject_claims: Annotated[TextList, EnvVar("OPENID_SUBJECT_CLAIM", form="comma")] = ["sub"]
    """Claims with the subject, in order of preference. Default: `sub`, and `oid` for Entra and Entra External ID at
    Microsoft's hosts; with a custom domain, set `[oid]`. A later change orphans all users."""
    roles_claim: Annotated[Text | None, EnvVar("OPENID_ROLES_CLAIM", since="0.11.2")] = None
    display_name_template: Annotated[Text | None, EnvVar("OPENID_DISPLAY_NAME_TEMPLATE", since="0.14.0")] = None

    @model_validator(mode="before")
    @classmethod
    def _claims_of_issuer(cls, document: Any) -> Any:
        return _fill_subject_claims(document)


class FurtherOidcProvider(StrictModel):
    """Another identity provider. User ids are `ID~SUBJECT`."""

    provider_uri: Annotated[ProviderUri, EnvVar("URI")]
    audience: Annotated[TextList, EnvVar("AUDIENCE", form="comma")]
    additional_issuers: Annotated[TextList | None, EnvVar("ADDITIONAL_ISSUERS", form="comma")] = None
    scope: Annotated[Text | None, EnvVar("SCOPE")] = None
    subject_claims: Annotated[TextList, EnvVar("SUBJECT_CLAIMS", form="comma")] = ["sub"]
    roles_claim: Annotated[Text | None, EnvVar("ROLES_CLAIM")] = None
    display_name_template: Annotated[Text | None, EnvVar("DISPLAY_NAME_TEMPLATE", since="0.14.0")] = None
    require_connected_on_startup: Annotated[bool | None, EnvVar("REQUIRE_CONNECTED_ON_STARTUP")] = None

    @model_validator(mode="before")
    @classmethod
    def _claims_of_issuer(cls, document: Any) -> Any:
        return _fill_subject_claims(document)


class KubernetesAuthentication(StrictModel):
    """Tokens of service accounts, which the cluster's TokenReview checks. User ids are `kubernetes~SUBJECT`."""

    enabled: Annotated[Literal[True], EnvVar("ENABLE_KUBERNETES_AUTHENTICATION")] = True
    audience: Annotated[TextList, EnvVar("KUBERNETES_AUTHENTICATION_AUDIENCE", form="comma")] = ["lakekeeper"]
    """Accepted audiences. The first is the audience of the tokens of computing units and jobs."""
    accept_legacy_service_accounts: Annotated[
        bool | None, EnvVar("KUBERNETES_AUTHENTICATION_ACCEPT_LEGACY_SERVICEACCOUNT")
    ] = None
    subject_source: Annotated[
        Literal["uid", "username"] | None, EnvVar("KUBERNETES_AUTHENTICATION_SUBJECT_SOURCE", since="0.13.3")
    ] = None
    """`username` makes user ids `kubernetes~system:serviceaccount:NAMESPACE:NAME`, known before the account exists."""


class AuthenticationSettings(StrictModel):
    """Authentication of callers. Without any, every caller is anonymous: a trial."""

    oidc: Annotated[OidcSettings | None, EnvPrefix("")] = None
    providers: Annotated[
        dict[ProviderId, FurtherOidcProvider], EnvPrefix("OPENID_PROVIDERS__{key}__", since="0.12.4")
    ] = {}
    kubernetes: Annotated[KubernetesAuthentication | None, EnvPrefix("")] = None

    @property
    def is_enabled(self) -> bool:
        """Return whether callers must authenticate."""
        return bool(self.oidc or self.providers or self.kubernetes)
