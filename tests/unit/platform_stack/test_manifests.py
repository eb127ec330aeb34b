"""Manifests of the platform stack: who reaches what, what a migration depends on, and refused certificates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from lakewright.platform_stack.certificates import find_server_certificate_problems, read_pem
from lakewright.platform_stack.lakekeeper_server import build_platform_outputs
from lakewright.platform_stack.manifests import gateway, lakekeeper, openfga
from lakewright.platform_stack.manifests.network_policies import list_network_policies
from lakewright.platform_stack.settings.checks import parse_platform_spec
from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.platform_stack.settings.server_environment import build_server_environment

from tests.certificates import write_server_certificate
from tests.platform_documents import production, replace_value


@pytest.fixture
def spec() -> PlatformSpec:
    return parse_platform_spec(production(), "stack test")


def secret_keys(spec: PlatformSpec) -> dict[str, tuple[str, str]]:
    return {name: ("lakekeeper-server", name) for name in build_server_environment(spec).secrets}


def deployment(spec: PlatformSpec) -> dict[str, Any]:
    return lakekeeper.server_deployment(spec, build_server_environment(spec), secret_keys(spec), {}, "hash")


def migration(spec: PlatformSpec) -> dict[str, Any]:
    return lakekeeper.migration_job(spec, build_server_environment(spec), secret_keys(spec), {})


def test_only_the_gateway_reaches_the_server(spec: PlatformSpec) -> None:
    policies = {policy["metadata"]["name"]: policy["spec"] for policy in list_network_policies(spec)}

    (server,) = policies["lakekeeper"]["ingress"]
    assert server["from"] == [{"podSelector": {"matchLabels": gateway.gateway_labels(spec)}}]
    (catalog,) = policies["lakekeeper-gateway"]["ingress"]
    assert catalog["from"] == [
        {"namespaceSelector": {"matchExpressions": [{"key": "lakewright/tenant", "operator": "Exists"}]}}
    ]
    assert policies["lakekeeper-deny-all"]["podSelector"] == {}
    assert "ingress" not in policies["lakekeeper-migration"]


def test_no_selector_of_openfga_matches_its_migration(spec: PlatformSpec) -> None:
    """A disruption budget with a Job's pod allows no eviction, and a Service would send requests to that pod."""
    settings = spec.server.authorization.openfga
    assert settings
    assert settings.server
    pod = openfga.openfga_migration(spec, settings.server)["spec"]["template"]["metadata"]["labels"]
    selectors = [
        openfga.openfga_budget(spec)["spec"]["selector"]["matchLabels"],
        openfga.openfga_service(spec)["spec"]["selector"],
    ]

    assert not [selector for selector in selectors if selector.items() <= pod.items()]
    policies = [policy["spec"] for policy in list_network_policies(spec)]
    (matching_policy,) = [
        policy
        for policy in policies
        if policy["podSelector"] and policy["podSelector"]["matchLabels"].items() <= pod.items()
    ]
    assert {port["port"] for rule in matching_policy["egress"] for port in rule["ports"]} == {53, 5432}


def test_secrets_are_references_to_secret_objects(spec: PlatformSpec) -> None:
    (container,) = deployment(spec)["spec"]["template"]["spec"]["containers"]
    by_reference = {entry["name"] for entry in container["env"] if "valueFrom" in entry}

    assert by_reference == set(build_server_environment(spec).secrets)
    assert all("value" in entry for entry in container["env"] if entry["name"] not in by_reference)


def test_pods_have_lakekeepers_user_and_no_shell(spec: PlatformSpec) -> None:
    pods = [deployment(spec)["spec"]["template"]["spec"], migration(spec)["spec"]["template"]["spec"]]

    for pod in pods:
        assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == (65532, 65534)
        for container in [*pod["initContainers"], *pod["containers"]]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert container["command"][0] == "/home/nonroot/lakekeeper"


def test_a_pod_serves_only_after_the_migration_of_its_release(spec: PlatformSpec) -> None:
    (wait,) = deployment(spec)["spec"]["template"]["spec"]["initContainers"]

    assert wait["command"][1:4] == ["wait-for-db", "-d", "-m"]
    assert wait["image"] == spec.server.image


@pytest.mark.parametrize(
    ("path", "value", "is_new"),
    [
        ("server.image", f"quay.io/lakekeeper/catalog@sha256:{'f' * 64}", True),
        ("database.postgres.host_write", "other.example", True),
        ("server.pods", {"labels": {"team": "data"}}, True),
        ("server.pods", {"image_pull_secrets": ["registry"]}, True),
        ("server.pods", {"min_available": 1}, False),
        ("server.logs", {"level": "debug"}, False),
        ("server.replicas", 3, False),
    ],
)
def test_a_job_is_new_if_the_migration_differs(spec: PlatformSpec, path: str, value: Any, is_new: bool) -> None:  # noqa: FBT001
    other = migration(parse_platform_spec(replace_value(production(), path, value), "stack test"))

    assert (other["metadata"]["name"] != migration(spec)["metadata"]["name"]) is is_new
    assert is_new or other == migration(spec)


def test_a_server_ends_after_the_gateways_connections(spec: PlatformSpec) -> None:
    """A connection is used for `keepalive_time` and may then wait for one more request."""
    pod = deployment(spec)["spec"]["template"]["spec"]
    drain = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    config = gateway.gateway_config(spec)
    ages = [int(re.findall(rf"  {name} (\d+)s;", config)[-1]) for name in ("keepalive_time", "keepalive_timeout")]

    assert sum(ages) < drain < pod["terminationGracePeriodSeconds"] - 30


@pytest.mark.parametrize(
    ("max_time", "seconds"),
    [(None, 30), ("10", 10), ("45500ms", 45.5), ("300s", 300)],
    ids=["default", "10", "ms", "s"],
)
def test_a_server_ends_after_its_longest_request(max_time: str | None, seconds: float) -> None:
    """Lakekeeper ends all requests within 20 s of SIGTERM, so the time before SIGTERM must grow."""
    spec = parse_platform_spec(replace_value(production(), "server.requests.max_time", max_time), "stack test")
    pod = deployment(spec)["spec"]["template"]["spec"]
    drain = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    config = gateway.gateway_config(spec)
    ages = [int(re.findall(rf"  {name} (\d+)s;", config)[-1]) for name in ("keepalive_time", "keepalive_timeout")]

    assert sum(ages) + seconds < drain + 20
    assert drain + 20 < pod["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("timeout", [60, 3600])
def test_a_gateway_ends_after_its_longest_request(timeout: int) -> None:
    spec = parse_platform_spec(replace_value(production(), "gateway.upstream_timeout", timeout), "stack test")
    pod = gateway.gateway_deployment(spec)["spec"]["template"]["spec"]
    drain = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert drain + timeout < pod["terminationGracePeriodSeconds"]


@pytest.mark.parametrize(("max_body_size", "size"), [(None, 256), (1, 256), (200 * 1024 * 1024, 400)])
def test_files_of_the_gateway_are_in_limited_memory(max_body_size: int | None, size: int) -> None:
    """The kernel limits the files of a volume in memory, also files that nginx opened and then unlinked."""
    spec = parse_platform_spec(
        replace_value(production(), "server.requests.max_body_size", max_body_size), "stack test"
    )
    pod = gateway.gateway_deployment(spec)["spec"]["template"]["spec"]
    (scratch,) = [volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume]

    assert scratch == {"medium": "Memory", "sizeLimit": f"{size}Mi"}
    assert pod["containers"][0]["resources"]["limits"]["memory"] == f"{size + 256}Mi", "nginx itself has 256 MiB"


@pytest.mark.parametrize(
    ("servers", "ports"),
    [
        ("kafka.example", {9092}),
        ("kafka.example:9093, kafka.example:9094", {9093, 9094}),
        ("SASL_SSL://kafka.example:9093,PLAINTEXT://kafka.example", {9093, 9092}),
    ],
)
def test_server_reaches_the_brokers_of_kafka(spec: PlatformSpec, servers: str, ports: set[int]) -> None:
    """The client, librdkafka, accepts a protocol before a host, and its default port is 9092."""
    kafka = {"topic": "t", "config": {"bootstrap.servers": servers}}

    assert list_added_ports(spec, "server.events.kafka", kafka) == ports


@pytest.mark.parametrize(
    ("address", "port"),
    [("nats://nats.example", 4222), ("tls://nats.example", 4222), ("nats://nats.example:5222", 5222)],
)
def test_server_reaches_nats(spec: PlatformSpec, address: str, port: int) -> None:
    assert list_added_ports(spec, "server.events.nats", {"address": address, "topic": "t"}) == {port}


def list_added_ports(spec: PlatformSpec, path: str, value: Any) -> set[int]:
    """Return the ports that the server may reach because of a setting."""

    def list_ports(spec: PlatformSpec) -> set[int]:
        policies = {policy["metadata"]["name"]: policy["spec"] for policy in list_network_policies(spec)}
        return {port["port"] for rule in policies["lakekeeper"]["egress"] for port in rule["ports"]}

    return list_ports(parse_platform_spec(replace_value(production(), path, value), "stack test")) - list_ports(spec)


def test_a_replica_of_openfga_ends_after_it_left_its_service(spec: PlatformSpec) -> None:
    """Its connections end at SIGTERM, and OpenFGA then ends its requests within 10 s."""
    settings = spec.server.authorization.openfga
    assert settings is not None
    assert settings.server is not None
    deployment_spec = openfga.openfga_deployment(spec, settings.server, "hash")["spec"]
    pod = deployment_spec["template"]["spec"]
    drain = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert 0 < drain < pod["terminationGracePeriodSeconds"] - 10
    assert deployment_spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert deployment_spec["minReadySeconds"] > 0


def test_an_autoscaled_deployment_declares_no_replicas(spec: PlatformSpec) -> None:
    scaled = parse_platform_spec(replace_value(production(), "server.autoscaling", {"min": 2, "max": 4}), "stack test")

    assert deployment(spec)["spec"]["replicas"] == 2
    assert "replicas" not in deployment(scaled)["spec"]
    assert lakekeeper.autoscaler(spec) is None


def test_autoscaler_scales_the_deployment() -> None:
    scaled = parse_platform_spec(replace_value(production(), "server.autoscaling", {"min": 2, "max": 4}), "stack test")

    autoscaler = lakekeeper.autoscaler(scaled)

    assert autoscaler is not None
    assert autoscaler["spec"]["scaleTargetRef"]["name"] == deployment(scaled)["metadata"]["name"]
    assert (autoscaler["spec"]["minReplicas"], autoscaler["spec"]["maxReplicas"]) == (2, 4)


def test_replicas_are_probed_and_spread_over_nodes(spec: PlatformSpec) -> None:
    deployment_spec = deployment(spec)["spec"]
    pod, labels = deployment_spec["template"]["spec"], deployment_spec["selector"]["matchLabels"]
    (container,) = pod["containers"]
    (preferred,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    budget = lakekeeper.server_budget(spec)["spec"]

    assert container["readinessProbe"]["httpGet"]["path"] == "/health"
    assert {"startupProbe", "livenessProbe"} <= container.keys()
    assert preferred["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert preferred["podAffinityTerm"]["labelSelector"]["matchLabels"] == labels
    assert budget == {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
    assert labels.items() <= deployment_spec["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize(("kind", "is_annotated"), [("irsa", True), ("pod-identity", False)])
def test_irsa_annotates_the_servers_account(kind: str, is_annotated: bool) -> None:  # noqa: FBT001
    role = "arn:aws:iam::111122223333:role/lakekeeper"
    identity = {"role_arn": role, "kind": kind}
    spec = parse_platform_spec(replace_value(production(), "aws", identity), "stack test")

    annotations = lakekeeper.server_account(spec)["metadata"].get("annotations", {})

    assert (annotations.get("eks.amazonaws.com/role-arn") == role) is is_annotated


def test_http_route_leads_from_its_gateway_to_the_service() -> None:
    parent = {"name": "public", "namespace": "gateways"}
    route = {"kind": "http-route", "host": "catalog.example", "parent": parent, "controller_namespace": "gateways"}
    spec = parse_platform_spec(replace_value(production(), "gateway.route", route), "stack test")
    assert spec.gateway.route is not None

    route_manifest = gateway.route_manifest(
        spec, spec.gateway.route, name="catalog", service="lakekeeper-gateway", port=8443
    )

    assert (route_manifest["apiVersion"], route_manifest["kind"]) == ("gateway.networking.k8s.io/v1", "HTTPRoute")
    assert route_manifest["spec"] == {
        "parentRefs": [parent],
        "hostnames": ["catalog.example"],
        "rules": [{"backendRefs": [{"name": "lakekeeper-gateway", "port": 8443}]}],
    }


def test_outputs_name_the_gateways_pods(spec: PlatformSpec) -> None:
    outputs = build_platform_outputs(spec)

    assert outputs.catalog_uri == "https://lakekeeper-gateway.lakekeeper.svc:8443/catalog"
    assert outputs.catalog_pods is not None
    assert outputs.catalog_pods.port == 8443
    assert outputs.environment_document()["lakekeeper"]["jobs_token_audience"] == "lakekeeper"


def test_a_server_certificate_that_is_an_authority_is_refused(tmp_path: Path) -> None:
    write_server_certificate(tmp_path / "server.pem")
    write_server_certificate(tmp_path / "authority.pem", authority=True)
    server, server_problems = read_pem(tmp_path, "server.pem", "gateway.tls.certificate")
    authority, _ = read_pem(tmp_path, "authority.pem", "gateway.tls.certificate")

    assert server_problems == find_server_certificate_problems(server, "x") == []
    (problem,) = find_server_certificate_problems(authority, "gateway.tls.certificate")
    assert "CaUsedAsEndEntity" in str(problem)


def test_a_private_key_among_certificates_is_refused(tmp_path: Path) -> None:
    key = write_server_certificate(tmp_path / "server.pem")
    file = tmp_path / "server.pem"
    file.write_text(file.read_text() + key)

    text, (problem,) = read_pem(tmp_path, "server.pem", "server.ca_bundle")

    assert text == ""
    assert "contains a private key" in str(problem)
