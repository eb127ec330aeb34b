"""Settings that installations need: scheduling, registries, further parts, DNS, RDS, Entra and OpenFGA's limits."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from lakewright.kubernetes.drift_check.manifests import drift_check_manifests
from lakewright.kubernetes.network import allow_dns
from lakewright.kubernetes.settings import DnsSettings
from lakewright.platform_stack.manifests import gateway, lakekeeper, network_policies, openfga
from lakewright.platform_stack.settings.checks import parse_platform_spec
from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.platform_stack.settings.server_environment import build_server_environment
from lakewright.validation.problems import SpecError

from tests.platform_documents import DIGEST, DRIFT_CHECK, production, replace_value, trial
from tests.tenant_project import REPOSITORY

KINDS_WITH_PODS = {"CronJob", "Deployment", "Job", "StatefulSet"}
EXAMPLE = REPOSITORY / "infra" / "platform" / "stacks" / "Pulumi.example.yaml"
PLACEMENT = {
    "node_selector": {"pool": "platform"},
    "tolerations": [{"key": "dedicated", "value": "platform", "effect": "NoExecute", "seconds": 60}],
    "affinity": {"nodeAffinity": {}},
    "priority_class": "system-cluster-critical",
    "image_pull_secrets": ["registry"],
    "annotations": {"sidecar.istio.io/inject": "false"},
}
PROXY: dict[str, Any] = {"init_containers": [{"name": "proxy", "restartPolicy": "Always"}]}
"""A proxy to the database that runs until the pod's other containers have ended."""
SETUP: dict[str, Any] = {"init_containers": [{"name": "setup"}]}
"""An init container that ends before the stack's containers start."""
LOCAL_DATABASE = {"host_write": "localhost", "host_read": None, "ssl_mode": "disable", "ca_bundle": None}
PODS = PLACEMENT | {"labels": {"team": "data", "app.kubernetes.io/component": "mine"}, "min_available": 2}


def parse(**sections: dict[str, Any]) -> PlatformSpec:
    """Return the example with settings added to its sections, named by dotted paths with `__`."""
    document = yaml.safe_load(EXAMPLE.read_text())["config"]["lakewright-platform:spec"]
    for path, values in sections.items():
        section = document
        for key in path.split("__"):
            section = section.setdefault(key, {})
        section |= values
    return parse_platform_spec(document, "example")


def build_server(spec: PlatformSpec) -> dict[str, Any]:
    manifest = lakekeeper.server_deployment(spec, build_server_environment(spec), {}, {}, "hash")
    return manifest["spec"]["template"]


def build_migration(spec: PlatformSpec) -> dict[str, Any]:
    return lakekeeper.migration_job(spec, build_server_environment(spec), {}, {})["spec"]["template"]


def list_templates(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the templates of pods in manifests of any kind."""
    specs = [manifest["spec"] for manifest in manifests if manifest["kind"] in KINDS_WITH_PODS]
    return [spec["jobTemplate"]["spec"]["template"] if "jobTemplate" in spec else spec["template"] for spec in specs]


def assert_placed(template: dict[str, Any]) -> None:
    """Check that a pod has all settings of PLACEMENT."""
    pod = template["spec"]
    assert pod["nodeSelector"] == {"pool": "platform"}
    assert pod["tolerations"] == [
        {
            "key": "dedicated",
            "operator": "Equal",
            "value": "platform",
            "effect": "NoExecute",
            "tolerationSeconds": 60,
        }
    ]
    assert pod["affinity"] == {"nodeAffinity": {}}
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert template["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"


def test_pods_of_all_components_have_their_settings() -> None:
    settings = {"pods": PODS, "replicas": 3}
    spec = parse(server=settings, gateway=settings, server__authorization__openfga__server=settings)
    server = spec.server.authorization.openfga
    assert server is not None
    assert server.server is not None
    templates = [
        build_server(spec),
        build_migration(spec),
        gateway.gateway_deployment(spec)["spec"]["template"],
        openfga.openfga_deployment(spec, server.server, "hash")["spec"]["template"],
        openfga.openfga_migration(spec, server.server)["spec"]["template"],
    ]

    for template in templates:
        labels = template["metadata"]["labels"]
        assert_placed(template)
        assert labels["team"] == "data"
        assert labels["app.kubernetes.io/component"] != "mine"
    assert lakekeeper.server_budget(spec)["spec"]["minAvailable"] == 2
    assert "maxUnavailable" not in gateway.gateway_budget(spec)["spec"]


def test_cron_jobs_of_the_drift_check_have_its_settings() -> None:
    jobs = {"limits": {"image": f"a{DIGEST}"}, "compute": {"image": f"a{DIGEST}"}, "expiry": {}, "pods": PLACEMENT}
    spec = parse_platform_spec(replace_value(production(), "drift_check", DRIFT_CHECK | jobs), "stack test")
    assert spec.drift_check is not None
    templates = list_templates(drift_check_manifests(network_policies.locate_drift_check(spec), spec.drift_check))

    assert len(templates) == 4
    for template in templates:
        assert_placed(template)


def test_postgres_of_a_trial_has_its_settings() -> None:
    document = trial()
    document["database"]["trial_postgres"]["pods"] = PLACEMENT
    spec = parse_platform_spec(document, "stack test")
    assert spec.database.trial_postgres is not None

    (template,) = list_templates([openfga.postgres_set(spec, spec.database.trial_postgres)])

    assert_placed(template)


def test_defaults_keep_replicas_apart() -> None:
    pod = build_server(parse())["spec"]

    assert "podAntiAffinity" in pod["affinity"]
    assert "tolerations" not in pod
    assert lakekeeper.server_budget(parse())["spec"]["maxUnavailable"] == 1


def test_server_has_further_parts() -> None:
    """The containers that wait for the database and the migration reach it through the same proxy."""
    proxy = {"name": "database-proxy", "image": "proxy@sha256:0", "restartPolicy": "Always"}
    parts = {
        "volumes": [{"name": "certs", "secret": {"secretName": "certs"}}],
        "volume_mounts": [{"name": "certs", "mountPath": "/certs"}],
        "init_containers": [proxy],
        "containers": [{"name": "agent", "image": "agent@sha256:0"}],
        "env_from": [{"configMapRef": {"name": "more"}}],
    }
    spec = parse(server={"extra_pod_parts": parts, "service_account": "given"})
    server, migration = build_server(spec)["spec"], build_migration(spec)["spec"]

    assert [container["name"] for container in server["initContainers"]] == ["database-proxy", "wait-for-migration"]
    assert [container["name"] for container in server["containers"]] == ["lakekeeper", "agent"]
    assert [container["name"] for container in migration["initContainers"]] == ["database-proxy", "wait-for-database"]
    assert [container["name"] for container in migration["containers"]] == ["migrate"]
    for pod in (server, migration):
        assert pod["initContainers"][0] == proxy
        assert parts["volumes"][0] in pod["volumes"]
        for container in [pod["initContainers"][1], pod["containers"][0]]:
            assert {"name": "certs", "mountPath": "/certs"} in container["volumeMounts"]
            assert container["envFrom"] == [{"configMapRef": {"name": "more"}}]
    assert server["serviceAccountName"] == "given"


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"volumes": [{"name": "tmp"}]}, "tmp"),
        ({"init_containers": [{"name": "wait-for-database"}]}, "wait-for-database"),
        ({"containers": [{"name": "lakekeeper"}]}, "lakekeeper"),
        ({"init_containers": [{"name": "proxy"}], "containers": [{"name": "proxy"}]}, "proxy"),
        ({"volumes": [{"name": "certs"}, {"name": "certs"}]}, "certs"),
        ({"init_containers": [{"name": "proxy"}, {"name": "proxy"}]}, "proxy"),
        ({"containers": [{"name": "agent"}, {"name": "agent"}]}, "agent"),
    ],
)
def test_further_parts_have_names_of_their_own(parts: dict[str, Any], name: str) -> None:
    with pytest.raises(SpecError, match=f"expected names that the pods do not have yet; found {name}"):
        parse(server={"extra_pod_parts": parts})


@pytest.mark.parametrize("field", ["volumes", "init_containers", "containers"])
def test_further_parts_have_names(field: str) -> None:
    with pytest.raises(SpecError, match=f"{field}: expected a `name` of each part; found None"):
        parse(server={"extra_pod_parts": {field: [{"image": "a@sha256:0"}]}})


@pytest.mark.parametrize("field", ["init_containers", "containers"])
def test_autoscaling_needs_requests_of_all_containers(field: str) -> None:
    """The autoscaler fails for pods with a container or a sidecar that requests no CPU."""
    autoscaling = {"autoscaling": {"min": 2, "max": 3}}
    part = {"name": "part", "restartPolicy": "Always"}

    with pytest.raises(SpecError, match=f"{field}: expected `resources.requests.cpu` of `part`"):
        parse(
            server=autoscaling | {"extra_pod_parts": {field: [part | {"resources": {"requests": {"memory": "1Mi"}}}]}}
        )
    for kind in ("requests", "limits"):
        sized_part = part | {"resources": {kind: {"cpu": "100m"}}}
        assert parse(server=autoscaling | {"extra_pod_parts": {field: [sized_part]}})
    assert parse(server=autoscaling | {"extra_pod_parts": SETUP})


@pytest.mark.parametrize("path", ["server", "gateway", "server__authorization__openfga__server"])
def test_budgets_let_a_replica_end(path: str) -> None:
    field = path.replace("__", ".")
    pods = {"pods": {"min_available": 2}}

    with pytest.raises(SpecError, match=rf"{field}\.pods\.min_available: expected fewer than `{field}\.replicas`, 2: "):
        parse(**{path: pods | {"replicas": 2}})
    assert parse(**{path: pods | {"replicas": 3}})


def test_budget_of_scaled_servers_fits_the_fewest() -> None:
    pods = {"pods": {"min_available": 2}, "replicas": 5}

    with pytest.raises(SpecError, match=r"expected fewer than `server\.autoscaling\.min`, 2: "):
        parse(server=pods | {"autoscaling": {"min": 2, "max": 6}})
    assert parse(server=pods | {"autoscaling": {"min": 3, "max": 6}})


def test_migration_with_a_database_proxy_reaches_the_cloud() -> None:
    """A proxy such as Cloud SQL's asks the cloud's API by HTTPS, and the database at another port."""

    def list_ports(postgres: dict[str, Any], **server: Any) -> set[int]:
        policies = network_policies.list_network_policies(parse(database__postgres=postgres, server=server))
        (egress,) = (p["spec"]["egress"] for p in policies if p["metadata"]["name"] == "lakekeeper-migration")
        return {port["port"] for rule in egress for port in rule["ports"]}

    egress = ["https://sql.example:3307"]

    assert list_ports({}, egress=egress).isdisjoint({443, 3307})
    assert list_ports({}, egress=egress, extra_pod_parts=SETUP).isdisjoint({443, 3307})
    assert {443, 3307, 5432} <= list_ports({}, egress=egress, extra_pod_parts=PROXY)
    assert 5432 not in list_ports(LOCAL_DATABASE, egress=egress, extra_pod_parts=PROXY)


def test_documented_proxy_to_the_database_is_valid() -> None:
    """A kubelet probes the pod's address, where the proxy does not listen for the database's clients."""
    page = (REPOSITORY / "docs" / "guides" / "platform.md").read_text("utf-8")
    sections = yaml.safe_load(re.findall(r"```yaml\n(server:.*?)```", page, re.DOTALL)[0])
    database = sections["database"]["postgres"] | {"host_read": None, "ca_bundle": None}
    spec = parse(server=sections["server"], database__postgres=database)
    assert spec.database.postgres is not None
    proxy = build_migration(spec)["spec"]["initContainers"][0]
    probes = [value for name, value in proxy.items() if name.endswith("Probe")]
    probed_ports = {action["port"] for probe in probes for action in probe.values() if isinstance(action, dict)}

    assert proxy["restartPolicy"] == "Always"
    assert proxy["resources"]["requests"].keys() == {"cpu", "memory"}
    assert {f"--http-port={port}" for port in probed_ports} <= set(proxy["args"])
    assert probed_ports
    assert probed_ports.isdisjoint({spec.database.postgres.port})
    assert not any(argument.startswith("--address") for argument in proxy["args"])
    volumes = {volume["name"] for volume in build_migration(spec)["spec"]["volumes"]}
    assert {mount["name"] for mount in proxy["volumeMounts"]} <= volumes


def test_proxy_in_the_pod_needs_no_tls() -> None:
    assert parse(database__postgres=LOCAL_DATABASE, server={"extra_pod_parts": PROXY})
    assert parse(database__postgres=LOCAL_DATABASE | {"host_write": "127.0.0.2"}, server={"extra_pod_parts": PROXY})
    for host in ("replica.example", "database.localhost"):
        with pytest.raises(SpecError, match="may be in plain text"):
            parse(database__postgres=LOCAL_DATABASE | {"host_read": host}, server={"extra_pod_parts": PROXY})


@pytest.mark.parametrize("parts", [{}, SETUP, {"containers": PROXY["init_containers"]}])
@pytest.mark.parametrize("ssl_mode", ["disable", "verify-full"])
def test_database_in_the_pod_needs_a_proxy(parts: dict[str, Any], ssl_mode: str) -> None:
    with pytest.raises(SpecError, match=r"init_containers: expected a proxy with `restartPolicy: Always`"):
        parse(database__postgres=LOCAL_DATABASE | {"ssl_mode": ssl_mode}, server={"extra_pod_parts": parts})


def test_service_of_the_gateway_may_be_a_load_balancer() -> None:
    settings = {"service": {"type": "LoadBalancer", "annotations": {"a": "b"}}, "client_cidrs": ["203.0.113.0/24"]}
    service = gateway.gateway_service(parse(gateway=settings))

    assert service["spec"]["type"] == "LoadBalancer"
    assert service["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize(("section", "policy"), [("gateway", "lakekeeper-gateway"), ("management", "lakekeeper")])
def test_a_load_balancer_outside_the_cluster_may_connect(section: str, policy: str) -> None:
    """A load balancer such as an AWS ALB in IP mode has no pods, so no namespace can be allowed."""
    route = {"kind": "ingress", "host": "data.example", "class_name": "alb", "tls_secret": "tls"}
    spec = parse(**{section: {"route": route, "client_cidrs": ["10.20.0.0/16"]}})
    (ingress,) = (
        p["spec"]["ingress"] for p in network_policies.list_network_policies(spec) if p["metadata"]["name"] == policy
    )

    assert {"ipBlock": {"cidr": "10.20.0.0/16"}} in ingress[0]["from"]


def test_name_of_the_database_user_comes_from_a_secret() -> None:
    environment = build_server_environment(parse(database__postgres={"user_source": "kubernetes:db#username"}))

    assert environment.secrets["LAKEKEEPER__PG_USER"] == "kubernetes:db#username"
    assert "LAKEKEEPER__PG_USER" not in environment.plain
    with pytest.raises(SpecError, match="expected `user` or `user_source`"):
        parse(database__postgres={"user_source": "kubernetes:db#username", "user": "lakekeeper"})


def test_rds_needs_its_authorities() -> None:
    elsewhere = {"ca_bundle": None, "host_write": "db.example", "host_read": None}

    assert parse().database.postgres is not None
    assert parse(database__postgres=elsewhere)
    for host in ("host_write", "host_read"):
        rds = {host: "database.abc.us-west-2.rds.amazonaws.com"}
        with pytest.raises(SpecError, match=r"ca_bundle: required for RDS.*global-bundle\.pem"):
            parse(database__postgres=elsewhere | rds)


@pytest.mark.parametrize(
    ("uri", "claims"),
    [
        ("https://login.microsoftonline.com/tenant/v2.0", "oid"),
        ("https://sts.windows.net/tenant", "oid"),
        ("https://acme.ciamlogin.com/tenant/v2.0", "oid"),
        ("https://acme.b2clogin.com/acme.onmicrosoft.com/B2C_1_sign_in/v2.0", "sub"),
        ("https://idp.platform.example/realms/platform", "sub"),
    ],
)
def test_issuer_decides_on_the_subject(uri: str, claims: str) -> None:
    spec = parse(
        server__authentication__oidc={"provider_uri": uri},
        server__authentication__providers={"other": {"provider_uri": uri, "audience": ["a"]}},
    )
    plain = build_server_environment(spec).plain

    assert plain["LAKEKEEPER__OPENID_SUBJECT_CLAIM"] == claims
    assert plain["LAKEKEEPER__OPENID_PROVIDERS__OTHER__SUBJECT_CLAIMS"] == claims
    named_claims = parse(server__authentication__oidc={"provider_uri": uri, "subject_claims": ["email"]})
    assert build_server_environment(named_claims).plain["LAKEKEEPER__OPENID_SUBJECT_CLAIM"] == "email"


def test_openfga_has_limits_and_a_writable_folder() -> None:
    settings = {"check_cache_seconds": 10, "max_open_connections": 5, "database_port": 6432}
    spec = parse(
        server__authorization__openfga={"max_batch_check_size": 80}, server__authorization__openfga__server=settings
    )
    server = spec.server.authorization.openfga
    assert server is not None
    assert server.server is not None
    container = openfga.openfga_deployment(spec, server.server, "hash")["spec"]["template"]["spec"]["containers"][0]
    env = {entry["name"]: entry.get("value") for entry in container["env"]}

    assert env["OPENFGA_MAX_CHECKS_PER_BATCH_CHECK"] == "80"
    assert (env["OPENFGA_DATASTORE_MAX_OPEN_CONNS"], env["OPENFGA_DATASTORE_MAX_IDLE_CONNS"]) == ("5", "5")
    assert (env["OPENFGA_CHECK_QUERY_CACHE_ENABLED"], env["OPENFGA_CHECK_QUERY_CACHE_TTL"]) == ("true", "10s")
    assert container["volumeMounts"] == [
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "openfga-ca", "mountPath": "/etc/openfga/database-ca", "readOnly": True},
    ]
    policies = {policy["metadata"]["name"]: policy["spec"] for policy in network_policies.list_network_policies(spec)}
    ports = [port["port"] for rule in policies["lakekeeper-openfga"]["egress"] for port in rule["ports"]]
    assert 6432 in ports
    assert 5432 not in ports
    default = openfga.list_openfga_settings(parse(), server.server.model_copy(update={"check_cache_seconds": None}))
    assert default["OPENFGA_MAX_CHECKS_PER_BATCH_CHECK"] == "50"
    assert not any("CACHE" in name for name in default)


def test_metrics_are_scraped() -> None:
    annotations = build_server(parse())["metadata"]["annotations"]

    assert annotations["prometheus.io/scrape"] == "true"
    assert annotations["prometheus.io/port"] == "9000"


def test_dns_has_the_cluster_s_own_place() -> None:
    dns = DnsSettings.model_validate(
        {"namespace": "openshift-dns", "labels": {"dns": "default"}, "port": 5353, "node_caches": ["169.254.20.10"]}
    )
    spec = parse(kubernetes={"dns": dns.model_dump(mode="json")})
    pods, caches = allow_dns(dns)

    assert pods["to"][0]["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "openshift-dns"}}
    assert {port["port"] for port in pods["ports"]} == {5353}
    assert caches["to"] == [{"ipBlock": {"cidr": "169.254.20.10/32"}}]
    for policy in network_policies.list_network_policies(spec):
        egress = policy["spec"].get("egress")
        assert not egress or egress[:2] == [pods, caches], policy["metadata"]["name"]


def test_jobs_of_the_drift_check_reach_the_cluster_s_dns() -> None:
    dns = {"namespace": "openshift-dns", "labels": {"dns": "default"}, "port": 5353, "node_caches": ["169.254.20.10"]}
    document = replace_value(production(), "drift_check", DRIFT_CHECK | {"expiry": {}})
    spec = parse_platform_spec(replace_value(document, "kubernetes.dns", dns), "stack test")
    assert spec.drift_check is not None
    manifests = drift_check_manifests(network_policies.locate_drift_check(spec), spec.drift_check)

    (policy,) = [manifest for manifest in manifests if manifest["kind"] == "NetworkPolicy"]

    assert policy["spec"]["egress"][:2] == allow_dns(DnsSettings.model_validate(dns))
    assert "kube-system" not in str(policy)


def test_a_route_serves_below_a_path() -> None:
    """An HTTPRoute removes the path itself; for an Ingress, an annotation of its controller does."""
    parts = {"host": "data.example", "path": "/lakehouse", "controller_namespace": "ingress"}
    ingress = parse(management={"route": {"kind": "ingress", "tls_secret": "tls", **parts}})
    http_route = parse(management={"route": {"kind": "http-route", "parent": {"name": "gateway"}, **parts}})

    routes = {}
    for spec in (ingress, http_route):
        route = spec.management.route
        assert route is not None
        assert spec.management_url == "https://data.example/lakehouse"
        manifest = gateway.route_manifest(spec, route, name="management", service="lakekeeper", port=8181)
        routes[manifest["kind"]] = manifest["spec"]["rules"][0]

    (path,) = routes["Ingress"]["http"]["paths"]
    assert (path["path"], path["pathType"]) == ("/lakehouse", "ImplementationSpecific")
    assert routes["HTTPRoute"]["matches"] == [{"path": {"type": "PathPrefix", "value": "/lakehouse"}}]
    assert routes["HTTPRoute"]["filters"][0]["urlRewrite"]["path"]["replacePrefixMatch"] == "/"


def test_openfga_trusts_the_authorities_of_its_database() -> None:
    spec = parse(server__authorization__openfga__server={"database_ca_bundle": "rds-global-bundle.pem"})
    settings = spec.server.authorization.openfga
    assert settings is not None
    assert settings.server is not None
    manifests = [
        openfga.openfga_migration(spec, settings.server),
        openfga.openfga_deployment(spec, settings.server, "hash"),
    ]

    for manifest in manifests:
        pod = manifest["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == "openfga-ca")
        variables = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert variables["SSL_CERT_FILE"] == f"{mount['mountPath']}/ca.pem"
        assert {"name": "openfga-ca", "configMap": {"name": "lakekeeper-openfga-ca"}} in pod["volumes"]
