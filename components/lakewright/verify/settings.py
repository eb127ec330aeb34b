"""The settings and identities of a run, from a tenant's spec and its environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, TokenFileAuth
from lakewright_spark.catalog.auth import TokenAuth as JobTokenAuth

from lakewright.credentials import references
from lakewright.credentials.client_token import ClientToken
from lakewright.environment.environment import Environment
from lakewright.environment.tenant_spec_rules import value_at
from lakewright.environment.unit_identity import (
    NoPrincipal,
    ServiceAccountToken,
    SharedPrincipal,
    UnitIdentity,
    identities_of,
    identity_of,
    tenant_auth,
)
from lakewright.kubernetes import connect
from lakewright.names.placeholders import filled_in
from lakewright.spec import TenantSpec
from lakewright.storage.registry import REFERENCE_PATHS
from lakewright.verify.roles.documents import AwsSettings
from lakewright.verify.session.settings import VerifiedCluster, VerifiedServer, VerifySettings
from lakewright.verify.session.subjects import AccountTokens, CredentialSource, JobsToken, ProbeIdentity


def settings_of(
    spec: TenantSpec, environment: Environment, resolve: Callable[[str], str] = references.resolve
) -> VerifySettings:
    """Return what probes need of an environment. `resolve` returns the secret of a reference."""
    server, cluster, account = environment.lakekeeper, environment.kubernetes, environment.aws
    return VerifySettings(
        VerifiedServer(
            server.endpoint.rstrip("/"),
            server.auth,
            str(server.ca_bundle) if server.ca_bundle else None,
            server.allow_plain_http,
        ),
        VerifiedCluster(
            cluster.context,
            cluster.render_to / spec.name if cluster.render_to else None,
            _own_secrets(spec, environment),
        ),
        AwsSettings(account.profile, account.region, account.shared_credentials_file, account.endpoint),
        tuple(found for storage in spec.storage.values() if (found := storage.store_certificates)),
        _references(spec, environment),
        resolve,
    )


def subjects_of(spec: TenantSpec, environment: Environment) -> list[ProbeIdentity]:
    """Return the identities of a tenant's computing units; without units, that of its jobs.

    Units with the same client are one subject. Maintenance jobs may change warehouses, so they are none.
    """
    if not spec.computing_units:
        auth = tenant_auth(spec, environment)
        problem = "the tenant has no computing unit, and no identity outside of the cluster"
        source = None if isinstance(auth, TokenFileAuth) else _from_auth(auth)
        return [ProbeIdentity("jobs", tuple(spec.warehouse_names), source, problem=None if source else problem)]
    subjects: dict[object, ProbeIdentity] = {}
    for unit in spec.computing_units:
        identity = identity_of(spec, environment, unit.name)
        source, warehouses = _source(identity), tuple(unit.visible_warehouses(spec.warehouse_names))
        key = source or unit.name
        if before := subjects.get(key):
            together = tuple(dict.fromkeys([*before.warehouses, *warehouses]))
            subjects[key] = replace(before, name=f"{before.name}, {unit.name}", warehouses=together)
            continue
        secret = identity.pod.secret
        subjects[key] = ProbeIdentity(
            unit.name,
            warehouses,
            source,
            (secret.name, secret.key) if secret else None,
            _problem(identity),
        )
    return [*subjects.values()]


def _problem(identity: UnitIdentity) -> str | None:
    """Return why the catalog cannot tell the unit from other tenants; None if it can."""
    match identity.principal:
        case NoPrincipal():
            return "`jobs_auth` is none: every request is anonymous"
        case SharedPrincipal(client_id):
            return f"{f'client `{client_id}`' if client_id else 'the token'} is shared by all tenants"
        case _:
            return None


def _source(identity: UnitIdentity) -> CredentialSource | None:
    match identity.token:
        case ServiceAccountToken(_, service_account, audiences):
            return AccountTokens(service_account, audiences)
        case ClientToken() as client:
            return client
        case None:
            return _from_auth(identity.auth)


def _from_auth(auth: CatalogAuth) -> CredentialSource | None:
    """Return the credential of an identity that the spec does not describe: the pods' references, read here."""
    if isinstance(auth, JobTokenAuth):
        return JobsToken(auth.token)
    if isinstance(auth, ClientCredentialsAuth):
        return ClientToken(auth.token_url, auth.client_id, auth.client_secret, auth.audience, auth.scope)
    return None


def _own_secrets(spec: TenantSpec, environment: Environment) -> frozenset[str]:
    """Return the names of the Secrets that the pods need themselves."""
    served = [connect.secret_names(unit, environment.kubernetes.connect) for unit in spec.computing_units]
    secrets = [identity.pod.secret for identity in identities_of(spec, environment).values()]
    return frozenset(secret.name for secret in secrets if secret).union(*served)


def _references(spec: TenantSpec, environment: Environment) -> frozenset[str]:
    """Return the references to secrets of environment and spec."""
    stores = [storage.model_dump() for storage in spec.storage.values()]
    keys = [value_at(store, path) for store in stores for path in REFERENCE_PATHS]
    own = {filled_in(reference, spec.name) for reference in environment.own_references}
    return frozenset(own | {key for key in keys if isinstance(key, str)})
