"""NetworkPolicies with the settings of a cluster, and mistakes in them."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.kubernetes import network
from lakewright.kubernetes.settings import ClusterSettings
from pydantic import ValidationError

OUTSIDE = "https://s3.us-west-2.amazonaws.com"


def settings(**values: Any) -> ClusterSettings:
    return ClusterSettings.model_validate(values)


@pytest.mark.parametrize("cidr", ["0.0.0.0/0", "::/0"])
def test_no_block_has_a_metadata_service(cidr: str) -> None:
    (block,) = network.allow_egress(OUTSIDE, settings(outside_cidrs=[cidr]))["to"]

    metadata_block = "169.254.0.0/16" if "." in cidr else "fd00:ec2::/32"
    assert metadata_block in block["ipBlock"]["except"]
    (api, *_) = network.allow_api_server(settings(api_server_cidrs=[cidr]))["to"]
    assert metadata_block in api["ipBlock"]["except"]


def test_narrow_networks_need_no_exceptions() -> None:
    (block,) = network.allow_egress(OUTSIDE, settings(outside_cidrs=["52.218.0.0/17"]))["to"]

    assert block == {"ipBlock": {"cidr": "52.218.0.0/17"}}


def test_pods_reach_no_other_pods_by_outside_networks() -> None:
    (block,) = network.allow_egress(OUTSIDE, settings(cluster_cidrs=["10.0.0.0/8", "fd12::/48"]))["to"]

    assert "10.0.0.0/8" in block["ipBlock"]["except"]
    assert "fd12::/48" not in block["ipBlock"]["except"], "a block is IPv4 or IPv6"


def test_gateway_is_all_of_the_catalog_that_pods_reach() -> None:
    labels = {"app.kubernetes.io/name": "gateway"}
    gateway = {"namespace": "platform", "labels": labels, "port": 8080}

    _, catalog, storage = network.list_egress_rules([OUTSIDE], settings(catalog_pods=gateway))

    (target,) = catalog["to"]
    assert target["podSelector"] == {"matchLabels": labels}
    assert target["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "platform"}}
    assert catalog["ports"] == [{"protocol": "TCP", "port": 8080}]
    assert storage["ports"] == [{"protocol": "TCP", "port": 443}]


@pytest.mark.parametrize(
    "host",
    [
        "texera-db.texera.svc",
        "texera-db.texera.svc.",
        "texera-db.texera.svc.cluster.local",
        "texera-db-0.texera-db.texera.svc",
        "texera-db-0.texera-db.texera.svc.cluster.local",
    ],
)
def test_services_and_their_pods_are_in_their_namespace(host: str) -> None:
    """A pod of a StatefulSet has a name of its own below the name of its headless Service."""
    rule = network.allow_egress(f"postgresql://{host}:5432")

    assert rule["to"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "texera"}}}]


def test_service_of_another_cluster_domain_may_be_outside() -> None:
    """The name may also belong to a domain of the company."""
    selector, block = network.allow_egress("https://minio.prod.svc.corp.example:9000")["to"]

    assert selector == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "prod"}}}
    assert block["ipBlock"]["cidr"] == "0.0.0.0/0"


@pytest.mark.parametrize("host", ["idp.example", "svc.example", "a.svc.example", "svc", "a.b.c.d.svc.example"])
def test_other_names_are_outside_the_cluster(host: str) -> None:
    (block,) = network.allow_egress(f"https://{host}")["to"]

    assert block["ipBlock"]["cidr"] == "0.0.0.0/0"


@pytest.mark.parametrize("host", ["169.254.169.254", "2852039166", "[fd00:ec2::254]", "metadata.google.internal"])
def test_metadata_service_is_no_address_for_pods(host: str) -> None:
    with pytest.raises(ValueError, match="metadata service"):
        network.allow_egress(f"http://{host}/latest")


@pytest.mark.parametrize(
    ("values", "path", "expected"),
    [
        ({"outside_cidrs": ["10.0.0.0/33"]}, "outside_cidrs.0", "expected a network such as"),
        ({"outside_cidrs": ["10.0.0.1/8"]}, "outside_cidrs.0", "has host bits set"),
        ({"outside_cidrs": ["10.0.0.1"]}, "outside_cidrs.0", "with its prefix length, `10.0.0.1/32`"),
        ({"outside_cidrs": ["169.254.169.254/32"]}, "outside_cidrs.0", "metadata service"),
        ({"outside_cidrs": []}, "outside_cidrs", "at least 1 item"),
        ({"cluster_cidrs": ["0.0.0.0/0"]}, "", "has all of 0.0.0.0/0"),
        ({"gpu": {"resource": "gpu"}}, "gpu.resource", "match pattern"),
        ({"quota": {"cpu": "many"}}, "quota.cpu", "expected cores"),
        ({"ca_bundle": {}}, "ca_bundle", "expected one of file, config_map and secret; found none"),
        ({"ca_bundle": {"secret": "trust"}}, "ca_bundle", "expected `truststore_key` with `secret`"),
        ({"clients_namespace": "Not_A_Name"}, "clients_namespace", "match pattern"),
        ({"texera": {"variables": {"AUTH_JWT_SECRET": "x"}}}, "texera.variables", "expected no secret"),
        ({"texera": {"variables": {"STORAGE_JDBC_URL": "x"}}}, "texera.variables", "expected no secret"),
        ({"texera": {"postgres": {"address": "u:p@db:5432/x", "username": "u"}}}, "texera.postgres.address", "pattern"),
        *(
            (
                {"texera": {"postgres": {"address": f"db:{port}/x", "username": "u"}}},
                "texera.postgres.address",
                "1 to 65535",
            )
            for port in (0, 65536, 99999)
        ),
    ],
)
def test_mistakes_of_clusters_are_refused(values: dict[str, Any], path: str, expected: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        settings(**values)

    (error,) = refusal.value.errors()
    assert ".".join(str(part) for part in error["loc"]).startswith(path)
    assert expected in error["msg"]
