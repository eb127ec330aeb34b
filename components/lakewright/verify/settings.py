"""The settings and identities of a run, from a tenant's spec and its environment."""

from __future__ import annotations

from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, TokenFileAuth
from lakewright_spark.catalog.auth import TokenAuth as JobTokenAuth

from lakewright.environment.environment import Environment
from lakewright.kubernetes import connect
from lakewright.names.object_names import MAINTENANCE
from lakewright.spec import TenantSpec
from lakewright.verify.roles.documents import AwsSettings
from lakewright.verify.session.settings import ClusterSettings, ServerSettings, VerifySettings
from lakewright.verify.session.subjects import AccountTokens, ClientSecret, CredentialSource, FixedToken, Subject


def settings_of(spec: TenantSpec, environment: Environment) -> VerifySettings:
    """Return what probes need of an environment."""
    server, cluster, account = environment.lakekeeper, environment.kubernetes, environment.aws
    secret = cluster.jobs_secret
    return VerifySettings(
        ServerSettings(
            server.endpoint.rstrip("/"),
            server.auth,
            str(server.ca_bundle) if server.ca_bundle else None,
            server.allow_plain_http,
        ),
        ClusterSettings(
            cluster.context,
            cluster.render_to / spec.name if cluster.render_to else None,
            _own_secrets(spec, environment),
            (secret.name, secret.key) if secret else None,
        ),
        AwsSettings(account.profile, account.region, account.shared_credentials_file, account.endpoint),
        _references(spec, environment),
    )


def subjects_of(spec: TenantSpec, environment: Environment) -> list[Subject]:
    """Return the identities of a tenant: one per computing unit, or one for all that share a client."""
    auth = environment.lakekeeper.jobs_auth
    seen = {unit.name: tuple(unit.visible_warehouses(spec.warehouse_names)) for unit in spec.computing_units}
    if spec.maintenance or not seen:
        seen[MAINTENANCE] = tuple(spec.warehouse_names)
    audience = environment.lakekeeper.jobs_token_audience
    subjects: dict[CredentialSource | None, Subject] = {}
    for name, warehouses in seen.items():
        source = _source(auth, name, audience)
        before = subjects.get(source)
        if before:
            together = tuple(dict.fromkeys([*before.warehouses, *warehouses]))
            subjects[source] = Subject(f"{before.name}, {name}", together, source)
        else:
            subjects[source] = Subject(name, warehouses, source)
    return [*subjects.values()]


def _source(auth: CatalogAuth, service_account: str, audience: str | None) -> CredentialSource | None:
    if isinstance(auth, TokenFileAuth):
        return AccountTokens(service_account, (audience,) if audience else ())
    if isinstance(auth, JobTokenAuth):
        return FixedToken(auth.token)
    if isinstance(auth, ClientCredentialsAuth):
        return ClientSecret(auth.token_url, auth.client_id, auth.client_secret, auth.scope)
    return None


def _own_secrets(spec: TenantSpec, environment: Environment) -> frozenset[str]:
    """Return the names of the Secrets that the pods need themselves."""
    secret = environment.kubernetes.jobs_secret
    served = [connect.secret_names(unit, environment.kubernetes.connect) for unit in spec.computing_units]
    return frozenset({secret.name} if secret else ()).union(*served)


def _references(spec: TenantSpec, environment: Environment) -> frozenset[str]:
    """Return the references to secrets of environment and spec."""
    probes = [probe for storage in spec.storage.values() if (probe := storage.probe())]
    keys = [key for probe in probes for key in (probe.access_key_id, probe.secret_access_key) if key]
    return environment.own_references | frozenset(keys)
