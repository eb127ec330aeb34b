"""The identity of a unit or of the maintenance job: how it authenticates, and who it is to Lakekeeper. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, NoAuth, TokenAuth, TokenFileAuth

from lakewright.credentials.references import ClientToken
from lakewright.environment.environment import Environment, LakekeeperSettings
from lakewright.kubernetes.jobs_identity import PodIdentity
from lakewright.names.object_names import MAINTENANCE, TENANT, fill_placeholders, namespace_name
from lakewright.spec import Problem, TenantSpec
from lakewright.spec.identity import IdentitySpec
from lakewright.spec.standard_roles import role_problems

KUBERNETES = "kubernetes"
"""Identity provider of service accounts in Lakekeeper's user ids."""
CLIENT_ID = "{client_id}"
"""Placeholder of a client's id in `lakekeeper.jobs_subject`."""


@dataclass(frozen=True)
class NoPrincipal:
    """The catalog does not authenticate its callers."""

    def user_id(self, uid: str | None = None) -> None:
        """Return None: there is no user."""
        _ = uid


@dataclass(frozen=True)
class SharedPrincipal:
    """One client or token of all tenants, for trials. The catalog cannot tell the tenants apart."""

    client_id: str | None
    """None for a token."""

    def user_id(self, uid: str | None = None) -> None:
        """Return None: the user is not the tenant's."""
        _ = uid


@dataclass(frozen=True)
class ClientPrincipal:
    """An OAuth2 client of the tenant."""

    client_id: str | None
    """None for a token, whose client is not known here."""
    subject: str
    provider: str = "oidc"
    """Id of the identity provider in Lakekeeper."""

    def user_id(self, uid: str | None = None) -> str:
        """Return the id of its user in Lakekeeper."""
        _ = uid
        return f"{self.provider}~{self.subject}"


@dataclass(frozen=True)
class ServiceAccountPrincipal:
    """A Kubernetes ServiceAccount, which Lakekeeper knows by its uid or by its name."""

    namespace: str
    name: str
    by_name: bool = False
    uid: str | None = None
    """Uid that the spec names. The cluster assigns it when the account is created."""

    @property
    def username(self) -> str:
        """Return the name that Kubernetes gives the account's user."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    def user_id(self, uid: str | None = None) -> str | None:
        """Return the id of its user in Lakekeeper, or None while the uid is unknown.

        Args:
            uid: Uid that the cluster reported. A uid of the spec overrides it.
        """
        if self.by_name:
            return f"{KUBERNETES}~{self.username}"
        account_uid = self.uid or uid
        return f"{KUBERNETES}~{account_uid}" if account_uid else None


Principal: TypeAlias = NoPrincipal | SharedPrincipal | ClientPrincipal | ServiceAccountPrincipal


@dataclass(frozen=True)
class ServiceAccountToken:
    """A token that Kubernetes issues on a TokenRequest."""

    namespace: str
    service_account: str
    audiences: tuple[str, ...]
    """Empty for the cluster's own audience."""


TokenSource: TypeAlias = ServiceAccountToken | ClientToken


@dataclass(frozen=True)
class UnitIdentity:
    """Identity of one unit."""

    unit: str
    """Name of the computing unit, or `maintenance`."""
    auth: CatalogAuth
    """Authentication in the unit's catalog configuration."""
    pod: PodIdentity
    """Token or Secret that its pods mount."""
    principal: Principal
    token: TokenSource | None
    """How to get a token from outside the cluster; None if the unit has no identity of its own."""


def find_identity(spec: TenantSpec, environment: Environment, unit: str) -> UnitIdentity:
    """Return the identity of a computing unit, or of the maintenance job (`names.object_names.MAINTENANCE`)."""
    identity = _identity_spec(spec, unit)
    auth = _auth(spec.name, environment.lakekeeper, identity)
    principal = _principal(spec, environment, unit, auth, identity)
    return UnitIdentity(
        unit=unit,
        auth=auth,
        pod=PodIdentity(
            (identity and identity.secret) or environment.kubernetes.jobs_secret,
            environment.lakekeeper.jobs_token_audience,
        ),
        principal=principal,
        token=_find_token(environment, auth, principal, identity),
    )


def tenant_auth(spec: TenantSpec, environment: Environment) -> CatalogAuth:
    """Return the authentication of jobs outside units, with the tenant's identity."""
    return _auth(spec.name, environment.lakekeeper, _find_client(spec.identity))


def list_units(spec: TenantSpec) -> list[str]:
    """Return the names of all clients: the computing units, and the maintenance job if it exists."""
    return [*(unit.name for unit in spec.computing_units), *([MAINTENANCE] if spec.maintenance else [])]


def find_identities(spec: TenantSpec, environment: Environment) -> dict[str, UnitIdentity]:
    """Return the identity of each unit and job by its name."""
    return {unit: find_identity(spec, environment, unit) for unit in list_units(spec)}


def identity_problems(spec: TenantSpec, environment: Environment) -> Iterator[Problem]:
    """Yield what is wrong with the identities of a spec in an environment."""
    server, auth = environment.lakekeeper, environment.lakekeeper.jobs_auth
    for path, identity in _list_identities(spec):
        if _find_client(identity) and not isinstance(auth, ClientCredentialsAuth | TokenAuth):
            yield Problem(
                path,
                "expected an environment with `lakekeeper.jobs_auth` of kind client-credentials or token, whose"
                f" tokens the client gets; found {auth.kind}. Change the environment, or remove `{path}`",
            )
        elif identity.service_account_uid and not isinstance(auth, TokenFileAuth):
            yield Problem(
                f"{path}.service_account_uid",
                "expected an environment with `lakekeeper.jobs_auth` of kind token-file, where units authenticate by"
                f" their ServiceAccount; found {auth.kind}",
            )
    if spec.identity and spec.identity.service_account_uid:
        yield Problem(
            "identity.service_account_uid",
            "expected it at each computing unit and at `maintenance`: each has a ServiceAccount of its own",
        )
    if isinstance(auth, ClientCredentialsAuth):
        yield from _client_problems(spec, server, auth)
    elif isinstance(auth, TokenAuth):
        for path, identity in _list_identities(spec):
            if identity.client_id and not identity.subject:
                yield Problem(
                    f"{path}.subject", "required: the subject of the tokens of the client that `client_id` names"
                )
    for path, reason in role_problems(spec):
        yield Problem(path, reason)
    for role, members in spec.role_members.items():
        if members.groups and environment.directory is None:
            yield Problem(
                f"role_members.{role}.group",
                "expected an environment with a `directory`, whose groups are read; it has none. Add Keycloak or"
                " Entra to the environment, or list `users`",
            )


def _client_problems(spec: TenantSpec, server: LakekeeperSettings, auth: ClientCredentialsAuth) -> Iterator[Problem]:
    """Yield units and jobs without a client of their own, and clients without a subject."""
    # Jobs outside units use the tenant's client as well.
    for path, identity in {("identity", spec.identity): None} | {
        (_path(spec, unit), _identity_spec(spec, unit)): None for unit in list_units(spec)
    }:
        has_client = identity is not None and identity.client_id is not None
        if not has_client and TENANT not in auth.client_id:
            if not server.trial:
                yield Problem(
                    path,
                    f"expected an OAuth2 client of the tenant; client `{auth.client_id}` of the environment's"
                    " `lakekeeper.jobs_auth` is shared by all tenants, so the catalog cannot tell them apart. Make a"
                    " client per tenant and set `client_id` and `subject` here, or write `{tenant}` in"
                    " `lakekeeper.jobs_auth.client_id`. For a trial, set `lakekeeper.trial: true` in the environment",
                )
        elif _find_subject(spec.name, server, auth, identity) is None:
            yield Problem(
                f"{path}.subject",
                "required: the subject of the client's tokens, by which Lakekeeper knows it. Or set"
                " `lakekeeper.jobs_subject` with `{client_id}` in the environment",
            )


def _find_subject(
    tenant: str, server: LakekeeperSettings, auth: ClientCredentialsAuth, identity: IdentitySpec | None
) -> str | None:
    """Return the subject of a client's tokens: the spec's subject, or the subject that the environment derives.

    A subject that follows from the tenant alone is not that of a client that the spec names.
    """
    if identity and identity.subject:
        return identity.subject
    own_client = identity.client_id if identity else None
    if server.jobs_subject is None or (own_client and CLIENT_ID not in server.jobs_subject):
        return None
    client_id = own_client or fill_placeholders(auth.client_id, tenant)
    return fill_placeholders(server.jobs_subject, tenant).replace(CLIENT_ID, client_id)


def _list_identities(spec: TenantSpec) -> Iterator[tuple[str, IdentitySpec]]:
    if spec.identity:
        yield "identity", spec.identity
    for index, unit in enumerate(spec.computing_units):
        if unit.identity:
            yield f"computing_units.{index}.identity", unit.identity
    if spec.maintenance and spec.maintenance.identity:
        yield "maintenance.identity", spec.maintenance.identity


def _identity_spec(spec: TenantSpec, unit: str) -> IdentitySpec | None:
    """Return the identity that the spec names for a unit: its own, or the tenant's."""
    if unit == MAINTENANCE:
        identity = spec.maintenance.identity if spec.maintenance else None
    else:
        identity = next(candidate.identity for candidate in spec.computing_units if candidate.name == unit)
    return identity or spec.identity


def _path(spec: TenantSpec, unit: str) -> str:
    """Return the path of the identity that a unit uses."""
    if unit == MAINTENANCE:
        return "maintenance.identity" if spec.maintenance and spec.maintenance.identity else "identity"
    index, unit_spec = next(
        (at, candidate) for at, candidate in enumerate(spec.computing_units) if candidate.name == unit
    )
    return f"computing_units.{index}.identity" if unit_spec.identity else "identity"


def _find_client(identity: IdentitySpec | None) -> IdentitySpec | None:
    return identity if identity and not identity.service_account_uid else None


def _auth(tenant: str, server: LakekeeperSettings, identity: IdentitySpec | None) -> CatalogAuth:
    auth = server.jobs_auth
    if not isinstance(auth, ClientCredentialsAuth):
        return auth
    settings = {
        "client_id": (identity and identity.client_id) or fill_placeholders(auth.client_id, tenant),
        "client_secret": fill_placeholders(auth.client_secret, tenant),
        "audience": (identity and identity.audience) or auth.audience,
        "scope": (identity and identity.scope) or auth.scope,
    }
    return auth.model_copy(update=settings)


def _principal(
    spec: TenantSpec, environment: Environment, unit: str, auth: CatalogAuth, identity: IdentitySpec | None
) -> Principal:
    server = environment.lakekeeper
    if isinstance(auth, NoAuth):
        return NoPrincipal()
    if isinstance(auth, TokenFileAuth):
        return ServiceAccountPrincipal(
            namespace=namespace_name(spec.name),
            name=unit,
            by_name=server.kubernetes_subject == "username",
            uid=identity.service_account_uid if identity else None,
        )
    client_id = auth.client_id if isinstance(auth, ClientCredentialsAuth) else None
    subject = identity.subject if identity else None
    if isinstance(auth, ClientCredentialsAuth):
        has_client = (identity and identity.client_id) or TENANT in getattr(server.jobs_auth, "client_id", "")
        if not has_client:
            return SharedPrincipal(client_id)
        subject = _find_subject(spec.name, server, auth, identity)
    return ClientPrincipal(client_id, subject, server.identity_provider) if subject else SharedPrincipal(client_id)


def _find_token(
    environment: Environment, auth: CatalogAuth, principal: Principal, identity: IdentitySpec | None
) -> TokenSource | None:
    if isinstance(principal, ServiceAccountPrincipal):
        audience = environment.lakekeeper.jobs_token_audience
        return ServiceAccountToken(principal.namespace, principal.name, (audience,) if audience else ())
    if not isinstance(principal, ClientPrincipal) or not isinstance(auth, ClientCredentialsAuth):
        return None
    # In a sandbox, the file of the pods' secret is on this machine.
    outside = auth.client_secret if environment.sandbox else None
    return ClientToken(
        token_url=auth.token_url,
        client_id=auth.client_id,
        client_secret=(identity.client_secret if identity else None) or outside,
        audience=auth.audience,
        scope=auth.scope,
    )
