"""The settings and identities of a run, from a tenant's spec and its environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, TokenAuth, TokenFileAuth

from lakewright.client_access.role_documents import AwsSettings
from lakewright.credentials import references
from lakewright.credentials.references import ClientToken
from lakewright.environment.environment import Environment
from lakewright.environment.tenant_spec_rules import read_value
from lakewright.environment.unit_identity import (
    NoPrincipal,
    ServiceAccountToken,
    SharedPrincipal,
    UnitIdentity,
    find_identities,
    find_identity,
    tenant_auth,
)
from lakewright.kubernetes import connect
from lakewright.names.object_names import MAINTENANCE, fill_placeholders
from lakewright.spec import TenantSpec
from lakewright.storage.registry import REFERENCE_PATHS
from lakewright.verify.session.settings import VerifiedCluster, VerifiedServer, VerifySettings
from lakewright.verify.session.subjects import AccountTokens, CredentialSource, JobsToken, ProbeIdentity

_NO_UNIT = "the tenant has no computing unit, and no identity outside of the cluster"
_REMEDY_WITHOUT_UNIT = (
    "add a unit to `computing_units` of the spec and run `lakewright up`: `verify` then uses the token that the cluster"
    " issues for the unit's ServiceAccount"
)
_REMEDY_ANONYMOUS = (
    "set `lakekeeper.jobs_auth` in the environment to `token-file` (ServiceAccounts) or `client-credentials` (OAuth2"
    " clients), on a server that authenticates its callers"
)
_REMEDY_SHARED = (
    "make an OAuth2 client for the tenant and set `identity.client_id` and `identity.subject` in the spec, or write"
    " `{tenant}` in `lakekeeper.jobs_auth.client_id` of the environment"
)


def make_settings(
    spec: TenantSpec, environment: Environment, resolve: Callable[[str], str] = references.resolve
) -> VerifySettings:
    """Return the settings of an environment that probes need. `resolve` returns the secret of a reference."""
    server, cluster, account = environment.lakekeeper, environment.kubernetes, environment.aws
    return VerifySettings(
        VerifiedServer(
            server.endpoint.rstrip("/"),
            server.auth,
            str(server.ca_bundle) if server.ca_bundle else None,
            server.allow_plain_http,
            server.principal_arn,
        ),
        VerifiedCluster(
            cluster.context,
            cluster.render_to / spec.name if cluster.render_to else None,
            _list_own_secrets(spec, environment),
        ),
        AwsSettings(account.profile, account.region, account.shared_credentials_file, account.endpoint),
        tuple(certificates for storage in spec.storage.values() if (certificates := storage.store_certificates)),
        _list_references(spec, environment),
        resolve,
    )


def list_subjects(spec: TenantSpec, environment: Environment) -> list[ProbeIdentity]:
    """Return the identities of a tenant's computing units; without units, the identity of its jobs.

    Units that share a client are one subject. Maintenance jobs may change warehouses, so they are not subjects.
    """
    if not spec.computing_units:
        auth = tenant_auth(spec, environment)
        source = None if isinstance(auth, TokenFileAuth) else _find_auth_source(auth)
        jobs = ProbeIdentity(
            "jobs",
            tuple(spec.warehouse_names),
            source,
            is_shared_with_maintenance=_is_shared_with_maintenance(spec, environment, source),
        )
        if source:
            problem, remedy = _find_problem(_find_jobs_identity(spec, environment))
            return [replace(jobs, problem=problem, remedy=remedy)]
        remedy = _REMEDY_WITHOUT_UNIT if isinstance(auth, TokenFileAuth) else _REMEDY_ANONYMOUS
        return [replace(jobs, problem=_NO_UNIT, remedy=remedy)]
    subjects: dict[object, ProbeIdentity] = {}
    for unit in spec.computing_units:
        identity = find_identity(spec, environment, unit.name)
        source, warehouses = _find_source(identity), tuple(unit.visible_warehouses(spec.warehouse_names))
        key = source or unit.name
        if before := subjects.get(key):
            together = tuple(dict.fromkeys([*before.warehouses, *warehouses]))
            subjects[key] = replace(before, name=f"{before.name}, {unit.name}", warehouses=together)
            continue
        secret = identity.pod.secret
        problem, remedy = _find_problem(identity)
        subjects[key] = ProbeIdentity(
            unit.name,
            warehouses,
            source,
            (secret.name, secret.key) if secret else None,
            problem,
            remedy,
            _is_shared_with_maintenance(spec, environment, source),
        )
    return [*subjects.values()]


def _is_shared_with_maintenance(spec: TenantSpec, environment: Environment, source: CredentialSource | None) -> bool:
    """Return whether the maintenance jobs authenticate with this client or token."""
    if spec.maintenance is None or source is None:
        return False
    other = _find_source(find_identity(spec, environment, MAINTENANCE))
    if isinstance(source, ClientToken) and isinstance(other, ClientToken):
        return (source.token_url, source.client_id) == (other.token_url, other.client_id)
    return source == other


def _find_jobs_identity(spec: TenantSpec, environment: Environment) -> UnitIdentity:
    """Return the tenant's identity, which jobs outside units have: that of a `maintenance` without its own."""
    return find_identity(spec.model_copy(update={"maintenance": None}), environment, MAINTENANCE)


def _find_problem(identity: UnitIdentity) -> tuple[str | None, str]:
    """Return why the catalog cannot distinguish the identity from other tenants, and the remedy; None if it can."""
    match identity.principal:
        case NoPrincipal():
            return "`jobs_auth` is none: every request is anonymous", _REMEDY_ANONYMOUS
        case SharedPrincipal(client_id):
            whose = f"client `{client_id}`" if client_id else "the token"
            return f"{whose} is shared by all tenants", _REMEDY_SHARED
        case _:
            return None, ""


def _find_source(identity: UnitIdentity) -> CredentialSource | None:
    match identity.token:
        case ServiceAccountToken(_, service_account, audiences):
            return AccountTokens(service_account, audiences)
        case ClientToken() as client:
            return client
        case None:
            return _find_auth_source(identity.auth)


def _find_auth_source(auth: CatalogAuth) -> CredentialSource | None:
    """Return the credential of an identity that the spec does not describe: the pods' references, read here."""
    if isinstance(auth, TokenAuth):
        return JobsToken(auth.token)
    if isinstance(auth, ClientCredentialsAuth):
        return ClientToken(auth.token_url, auth.client_id, auth.client_secret, auth.audience, auth.scope)
    return None


def _list_own_secrets(spec: TenantSpec, environment: Environment) -> frozenset[str]:
    """Return the names of the Secrets that the pods need themselves."""
    served = [connect.secret_names(unit, environment.kubernetes.connect) for unit in spec.computing_units]
    secrets = [identity.pod.secret for identity in find_identities(spec, environment).values()]
    return frozenset(secret.name for secret in secrets if secret).union(*served)


def _list_references(spec: TenantSpec, environment: Environment) -> frozenset[str]:
    """Return the references to secrets of environment and spec."""
    stores = [storage.model_dump() for storage in spec.storage.values()]
    keys = [read_value(store, path) for store in stores for path in REFERENCE_PATHS]
    environment_references = {fill_placeholders(reference, spec.name) for reference in environment.own_references}
    return frozenset(environment_references | {key for key in keys if isinstance(key, str)})
