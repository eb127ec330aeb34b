"""LakekeeperServer: how the objects of a platform are wired, from secrets to the gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from lakewright.environment.platform_outputs import PlatformOutputs
from lakewright.kubernetes.computing_unit import KubernetesObject
from lakewright.kubernetes.drift_check.component import DriftCronJob
from lakewright.kubernetes.settings import CatalogPods
from lakewright.lakekeeper.server.bootstrap import Bootstrap
from lakewright.platform_stack.manifests import gateway, lakekeeper, network_policies, openfga
from lakewright.platform_stack.manifests.lakekeeper import SecretKeys
from lakewright.platform_stack.manifests.objects import Manifest, make_object
from lakewright.platform_stack.secret_values import SecretValues, encode_secret_data
from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.platform_stack.settings.server_environment import (
    POSTGRES_PORT,
    as_string,
    build_server_environment,
    format_kafka_config,
    list_kafka_sources,
)
from lakewright.platform_stack.settings.types import parse_cluster_secret
from lakewright.platform_stack.settings.variables import PREFIX

_PASSWORD = f"{PREFIX}PG_PASSWORD"
_API_KEY = f"{PREFIX}OPENFGA__API_KEY"
_KAFKA = f"{PREFIX}KAFKA_CONFIG"


@dataclass(frozen=True)
class PlatformFiles:
    """Contents of the files that a spec names."""

    authorities: Mapping[str, str] = field(default_factory=dict[str, str])
    """PEM of certificate authorities by `ca`, `database-ca` and `openfga-ca`."""
    certificate: str | None = None
    """PEM of the gateway's certificate."""


class LakekeeperServer(pulumi.ComponentResource):
    """Lakekeeper on Kubernetes, with its migration, gateway and network policies."""

    outputs: PlatformOutputs

    def __init__(
        self,
        spec: PlatformSpec,
        *,
        secrets: Mapping[str, str],
        files: PlatformFiles,
        management_ca_bundle: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the objects of a spec.

        Args:
            spec: The platform, checked.
            secrets: Resolved secrets by their source (`secret_values.resolve_sources`).
            files: Contents of the files that the spec names.
            management_ca_bundle: Path of the certificate authorities for the management API.
            opts: Options, with the provider of the cluster.
        """
        super().__init__("lakewright:index:LakekeeperServer", spec.name, {}, opts)
        self._spec = spec
        self._environment = build_server_environment(spec)
        self._authorities = {name: f"{spec.name}-{name}" for name in ("ca", "database-ca") if name in files.authorities}
        within = pulumi.ResourceOptions(parent=self)
        self._secrets = SecretValues(spec.name, secrets, opts=within, protect=not spec.trial)
        self._first = [self._declare("namespace", lakekeeper.namespace(spec), after=[])]

        prepared = self._declare_prerequisites(files)
        keys, values = self._list_server_secrets()
        prepared.append(self._declare_secret(f"{spec.name}-server", encode_secret_data(values, as_string)))
        databases = self._declare_trial_postgres()
        permissions = self._declare_openfga(databases, files.authorities.get(openfga.OPENFGA_CA), after=prepared)
        job = lakekeeper.migration_job(spec, self._environment, keys, self._authorities)
        migrated = self._declare("migration", job, after=[*prepared, *databases, *permissions])
        mounted = {name: files.authorities[name] for name in self._authorities} | self._list_secret_files()
        server = self._declare_server(keys, values, mounted, after=migrated)
        ready = self._declare_gateway(files, after=[*prepared, *server])
        self._declare_bootstrap(management_ca_bundle, after=[*server, *ready])
        if spec.drift_check:
            location = network_policies.locate_drift_check(spec)
            DriftCronJob(location, spec.drift_check, after=self._first, opts=within)
        self.outputs = build_platform_outputs(spec)
        self.register_outputs({"platform": self.outputs.model_dump(mode="json")})

    def _declare(
        self, name: str, manifest: Manifest, *, after: Sequence[pulumi.Resource], ignored_paths: Sequence[str] = ()
    ) -> pulumi.Resource:
        options = pulumi.ResourceOptions(parent=self, depends_on=list(after), ignore_changes=list(ignored_paths))
        return KubernetesObject(f"{self._spec.name}-{name}", manifest, options)

    def _declare_secret(self, name: str, data: pulumi.Output[dict[str, str]], kind: str = "Opaque") -> pulumi.Resource:
        manifest = make_object(self._spec, "v1", "Secret", name, type=kind, data=data)
        return self._declare(f"secret-{name}", manifest, after=self._first)

    def _declare_prerequisites(self, files: PlatformFiles) -> list[pulumi.Resource]:
        """Make the objects that pods need before they start: policies, accounts, rights, and files."""
        spec, first = self._spec, self._first
        resources = [
            self._declare(f"policy-{policy['metadata']['name']}", policy, after=first)
            for policy in network_policies.list_network_policies(spec)
        ]
        resources += [
            *(
                []
                if spec.server.service_account
                else [self._declare("account", lakekeeper.server_account(spec), after=first)]
            ),
            self._declare("migration-account", lakekeeper.migration_account(spec), after=first),
            self._declare("gateway-account", gateway.gateway_account(spec), after=first),
        ]
        if spec.server.authentication.kubernetes:
            role = self._declare("token-review", lakekeeper.make_token_review_role(spec), after=[])
            resources.append(
                self._declare("token-review-binding", lakekeeper.make_token_review_binding(spec), after=[role])
            )
        for name, pem in files.authorities.items():
            resources.append(self._declare(name, lakekeeper.ca_config_map(spec, name, pem), after=first))
        if values := self._list_secret_files():
            resources.append(self._declare_secret(f"{spec.name}-files", encode_secret_data(values)))
        return resources

    def _list_secret_files(self) -> dict[str, pulumi.Output[str]]:
        return {
            file: self._secrets.find_secret(file, source) for file, source in sorted(self._environment.files.items())
        }

    def _list_server_secrets(self) -> tuple[SecretKeys, dict[str, pulumi.Output[str]]]:
        """Return Secret and key of each variable, and the values of the variables in the stack's own Secret."""
        own_secret = f"{self._spec.name}-server"
        keys: dict[str, tuple[str, str]] = {}
        values: dict[str, pulumi.Output[str]] = {}
        for variable, source in self._environment.secrets.items():
            cluster_secret = parse_cluster_secret(source)
            keys[variable] = cluster_secret or (own_secret, variable)
            if cluster_secret is None:
                values[variable] = self._secrets.find_secret(variable, source)
        if self._spec.server.events.kafka:
            sources = {
                key: self._secrets.find_secret(f"kafka {key}", source)
                for key, source in list_kafka_sources(self._spec).items()
            }
            keys[_KAFKA] = (own_secret, _KAFKA)
            values[_KAFKA] = pulumi.Output.all(**sources).apply(
                lambda secrets: format_kafka_config(self._spec, secrets)
            )
        return keys, values

    def _declare_trial_postgres(self) -> list[pulumi.Resource]:
        spec, trial = self._spec, self._spec.database.trial_postgres
        if trial is None:
            return []
        password = {openfga.POSTGRES_PASSWORD_VARIABLE: self._secrets.mint_once(_PASSWORD)}
        before = [
            self._declare_secret(openfga.postgres_secret_name(spec), encode_secret_data(password)),
            self._declare("postgres-scripts", openfga.postgres_scripts(spec), after=self._first),
        ]
        return [
            self._declare("postgres", openfga.postgres_set(spec, trial), after=before),
            self._declare("postgres-service", openfga.postgres_service(spec), after=self._first),
        ]

    def _declare_openfga(
        self, databases: Sequence[pulumi.Resource], authorities: str | None, *, after: Sequence[pulumi.Resource]
    ) -> list[pulumi.Resource]:
        """Make OpenFGA for the server, after its migration. `authorities` is the PEM text of its database's."""
        spec, settings = self._spec, self._spec.server.authorization.openfga
        if settings is None or settings.server is None:
            return []
        values = {
            openfga.DATASTORE_VARIABLE: self._find_openfga_database(settings.server.database_uri),
            openfga.KEYS_VARIABLE: self._secrets.find_secret(_API_KEY, str(settings.key_source)),
        }
        before = [
            self._declare_secret(openfga.openfga_secret_name(spec), encode_secret_data(values)),
            self._declare("openfga-account", openfga.openfga_account(spec), after=self._first),
        ]
        migrated = self._declare(
            "openfga-migration", openfga.openfga_migration(spec, settings.server), after=[*before, *after, *databases]
        )
        mounted = {**values, **({openfga.OPENFGA_CA: authorities} if authorities else {})}
        manifest = openfga.openfga_deployment(spec, settings.server, self._secrets.compute_digest(mounted))
        return [
            self._declare("openfga", manifest, after=[migrated]),
            self._declare("openfga-service", openfga.openfga_service(spec), after=[migrated]),
            self._declare("openfga-budget", openfga.openfga_budget(spec), after=self._first),
        ]

    def _find_openfga_database(self, source: str | None) -> pulumi.Output[str]:
        if source is not None:
            return self._secrets.find_secret("openfga database_uri", source)
        host = f"{self._spec.name}-postgres.{self._spec.namespace}.svc:{POSTGRES_PORT}"
        return self._secrets.mint_once(_PASSWORD).apply(
            lambda password: f"postgres://lakekeeper:{password}@{host}/openfga?sslmode=disable"
        )

    def _declare_server(
        self,
        keys: SecretKeys,
        values: Mapping[str, pulumi.Output[str]],
        mounted: Mapping[str, pulumi.Input[str]],
        *,
        after: pulumi.Resource,
    ) -> list[pulumi.Resource]:
        """Make Deployment and Service after the migration. The server reads mounted files only when it starts."""
        spec = self._spec
        manifest = lakekeeper.server_deployment(
            spec, self._environment, keys, self._authorities, self._secrets.compute_digest({**values, **mounted})
        )
        # Without a number of replicas in an update, the API server would scale the Deployment to one pod.
        is_autoscaled = spec.server.autoscaling is not None and spec.kubernetes.render_to is None
        ignored_paths = ["spec.replicas"] if is_autoscaled else []
        resources = [
            self._declare("server", manifest, after=[after], ignored_paths=ignored_paths),
            # Not before the Deployment: the provider waits for a Service's endpoints.
            self._declare("service", lakekeeper.server_service(spec), after=[after]),
            self._declare("budget", lakekeeper.server_budget(spec), after=self._first),
        ]
        if autoscaler := lakekeeper.autoscaler(spec):
            resources.append(self._declare("autoscaler", autoscaler, after=resources[:1]))
        return resources

    def _declare_gateway(self, files: PlatformFiles, *, after: Sequence[pulumi.Resource]) -> list[pulumi.Resource]:
        """Make the gateway, which resolves the server's Service when it starts, and the routes."""
        spec = self._spec
        before = [*after, self._declare("gateway-config", gateway.gateway_config_map(spec), after=self._first)]
        tls = spec.gateway.tls
        if tls and tls.key and files.certificate:
            pair = {
                "tls.crt": pulumi.Output.from_input(files.certificate),
                "tls.key": self._secrets.find_secret("gateway key", tls.key),
            }
            name = str(gateway.tls_secret_name(spec))
            before.append(self._declare_secret(name, encode_secret_data(pair), "kubernetes.io/tls"))
        resources = [
            self._declare("gateway", gateway.gateway_deployment(spec), after=before),
            self._declare("gateway-service", gateway.gateway_service(spec), after=before),
            self._declare("gateway-budget", gateway.gateway_budget(spec), after=self._first),
        ]
        for name, route, service, port in (
            (f"{spec.name}-gateway", spec.gateway.route, gateway.gateway_name(spec), spec.gateway.listen_port),
            (f"{spec.name}-management", spec.management.route, spec.name, lakekeeper.SERVER_PORT),
        ):
            if route:
                manifest = gateway.route_manifest(spec, route, name=name, service=service, port=port)
                resources.append(self._declare(f"route-{name}", manifest, after=resources[:2]))
        return resources

    def _declare_bootstrap(self, ca_bundle: str | None, *, after: Sequence[pulumi.Resource]) -> None:
        spec = self._spec
        if spec.bootstrap is None:
            return
        server: dict[str, Any] = {
            "endpoint": spec.management_url,
            "auth": spec.bootstrap.auth.model_dump(exclude_none=True),
        }
        if ca_bundle:
            server["ca_bundle"] = ca_bundle
        if spec.allow_plain_http:
            server["allow_plain_http"] = True
        Bootstrap(
            spec.name,
            server=server,
            accept_terms_of_use=True,
            is_operator=spec.bootstrap.is_operator,
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(after)),
        )


def build_platform_outputs(spec: PlatformSpec) -> PlatformOutputs:
    """Return the outputs of a spec."""
    kubernetes = spec.server.authentication.kubernetes
    pods = None
    if spec.gateway.url is None:
        pods = CatalogPods(namespace=spec.namespace, labels=gateway.gateway_labels(spec), port=spec.gateway.listen_port)
    return PlatformOutputs(
        server_version=spec.server.version,
        authz_backend=spec.server.authorization.backend,
        endpoint=spec.management_url,
        catalog_uri=f"{spec.catalog_url}/catalog",
        allow_plain_http=spec.allow_plain_http or spec.trial,
        jobs_token_audience=kubernetes.audience[0] if kubernetes else None,
        kubernetes_subject=(kubernetes.subject_source if kubernetes else None) or "uid",
        principal_arn=spec.aws.role_arn if spec.aws else None,
        principal_has_session_tags=spec.aws is not None and spec.aws.kind == "pod-identity",
        namespace=spec.namespace,
        catalog_pods=pods,
    )
