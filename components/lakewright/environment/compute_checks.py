"""Checks of a spec's compute against the settings of the environment's cluster. They run before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from lakewright_spark.catalog.auth import ClientCredentialsAuth

from lakewright.environment.cluster import find_mistake as find_image_mistake
from lakewright.environment.environment import Environment
from lakewright.environment.unit_identity import find_identity
from lakewright.kubernetes import catalog_proxy, jobs_identity, network, texera, trust
from lakewright.kubernetes.runtimes import CONFIG_DIR
from lakewright.names.object_names import MAINTENANCE
from lakewright.spec import ComputingUnitSpec, TenantSpec
from lakewright.spec.quota import quota_mistakes, sum_amounts
from lakewright.validation.problems import Problem


def compute_problems(spec: TenantSpec, environment: Environment, name: str) -> Iterator[Problem]:
    """Yield what the environment `name` cannot give the spec's computing units and maintenance jobs."""
    if not spec.computing_units and spec.maintenance is None:
        return
    cluster = environment.kubernetes
    for resource, mistake in quota_mistakes(
        spec.quota, cluster.quota, sum_amounts(spec.computing_units, spec.maintenance)
    ):
        of_spec = spec.quota is not None and getattr(spec.quota, resource) is not None
        yield Problem(f"quota.{resource}" if of_spec else f"environment {name}: kubernetes.quota.{resource}", mistake)
    for index, unit in enumerate(spec.computing_units):
        if mistake := texera.find_catalog_mistake(unit, cluster.texera):
            yield Problem(f"computing_units.{index}.texera.catalog", mistake)
        for problem in texera_problems(unit, environment):
            yield Problem(f"environment {name}: {problem.path}", problem.expected)
    if cluster.ca_bundle and (mistake := trust.find_mistake(cluster.ca_bundle)):
        yield Problem(f"environment {name}: kubernetes.ca_bundle.file", mistake)
    if mistake := jobs_identity.find_token_mistake(environment.lakekeeper.jobs_auth):
        yield Problem(f"environment {name}: lakekeeper.jobs_auth.path", mistake)
    for path, file_path in zip(("jobs_ca_bundle", "jobs_truststore"), environment.trust_paths, strict=True):
        if cluster.ca_bundle and file_path and PurePosixPath(file_path).is_relative_to(CONFIG_DIR):
            reason = f"expected a path outside {CONFIG_DIR}, where another volume of the pod is; found {file_path}"
            yield Problem(f"environment {name}: lakekeeper.{path}", reason)
    for path, url in _addresses(environment):
        if mistake := network.find_mistake(url):
            yield Problem(f"environment {name}: {path}", mistake)
    yield from _standby_problems(spec, environment)


def texera_problems(unit: ComputingUnitSpec, environment: Environment) -> Iterator[Problem]:
    """Yield the settings that the environment lacks for a unit of Texera; nothing for other units."""
    cluster = environment.kubernetes
    if mistake := texera.find_start_mistake(unit, cluster.texera, trial=cluster.trial):
        yield Problem("kubernetes.texera", mistake)
    for variable, reason in texera.list_variable_mistakes(unit, cluster.texera, ca_bundle=environment.trust_paths[0]):
        yield Problem(f"kubernetes.texera.variables.{variable}", reason)
    auth, catalog_uri = environment.lakekeeper.jobs_auth, environment.lakekeeper.catalog
    if mistake := catalog_proxy.find_mistake(unit, auth, cluster.texera, catalog_uri=catalog_uri, trial=cluster.trial):
        yield Problem(*mistake)
    elif (
        cluster.texera.proxy_image
        and catalog_proxy.is_used(unit, auth, cluster.texera)
        and (image_mistake := find_image_mistake(cluster.texera.proxy_image, trial=cluster.trial))
    ):
        yield Problem("kubernetes.texera.proxy_image", image_mistake)
    for path, url in texera.list_services(unit, cluster.texera):
        if mistake := network.find_mistake(url):
            yield Problem(f"kubernetes.texera.{path}", mistake)


def _standby_problems(spec: TenantSpec, environment: Environment) -> Iterator[Problem]:
    """Yield variables of standbys that pods have already, with the credential for the catalog."""
    if spec.maintenance is None:
        return
    identity = find_identity(spec, environment, MAINTENANCE)
    auth = identity.auth
    reference = auth.client_secret if isinstance(auth, ClientCredentialsAuth) else getattr(auth, "token", None)
    for warehouse, standby in spec.maintenance.standby.items():
        for variable in standby.secret.variables:
            if identity.pod.secret and reference == f"env:{variable}":
                yield Problem(
                    f"maintenance.standby.{warehouse}.secret.variables.{variable}",
                    "expected another variable: `lakekeeper.jobs_auth` of the environment sets this variable",
                )


def _addresses(environment: Environment) -> Iterator[tuple[str, str]]:
    yield "lakekeeper.catalog_uri", environment.lakekeeper.catalog
    auth = environment.lakekeeper.jobs_auth
    if isinstance(auth, ClientCredentialsAuth):
        yield "lakekeeper.jobs_auth.token_url", auth.token_url
