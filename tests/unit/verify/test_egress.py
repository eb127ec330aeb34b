"""Which addresses pods may reach by their NetworkPolicies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from lakewright.client_access.check import Attempt
from lakewright.kubernetes.network import list_egress_rules
from lakewright.verify.manifests.egress import allows_egress
from lakewright.verify.probes.pods import probe_metadata_address

METADATA = "169.254.169.254"
LABELS = {"app.kubernetes.io/name": "unit"}
OTHER_NAMES = {"key": "app.kubernetes.io/name", "operator": "NotIn", "values": ["unit"]}  # codespell:ignore


def policy(*rules: dict[str, Any], selector: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    selected = {"podSelector": {"matchLabels": selector} if selector else {}}
    return {"metadata": {"name": "p"}, "spec": selected | {"policyTypes": ["Egress"], "egress": [*rules]} | spec}


def to_block(cidr: str, *excepted: str, **rule: Any) -> dict[str, Any]:
    return {"to": [{"ipBlock": {"cidr": cidr, "except": [*excepted]}}], **rule}


@pytest.mark.parametrize(
    "policies",
    [
        [],
        [policy(selector={"app.kubernetes.io/name": "other"})],
        [policy(policyTypes=["Ingress"])],
        [policy(podSelector={"matchExpressions": [OTHER_NAMES]})],
        [policy({})],
        [policy(to_block("0.0.0.0/0"))],
        [policy(to_block("169.254.0.0/16", ports=[{"port": 80}]))],
        [policy(to_block("0.0.0.0/0", ports=[{"port": 1, "endPort": 1000}]))],
        [policy(to_block("0.0.0.0/0", ports=[{"port": "http"}]))],
        [policy(), policy(to_block(f"{METADATA}/32"), selector=LABELS)],
    ],
)
def test_open_policies(policies: list[dict[str, Any]]) -> None:
    assert allows_egress(LABELS, policies, METADATA)[0]


@pytest.mark.parametrize(
    "policies",
    [
        [policy()],
        [policy(podSelector={"matchExpressions": [{**OTHER_NAMES, "operator": "In"}]})],
        [policy(to_block("0.0.0.0/0", "169.254.0.0/16"))],
        [policy(to_block("10.0.0.0/8"), {"to": [{"namespaceSelector": {}}]})],
        [policy(to_block("0.0.0.0/0", ports=[{"port": 443}]))],
        [policy(to_block("0.0.0.0/0", ports=[{"protocol": "UDP", "port": 80}]))],
        [policy(), policy(to_block("0.0.0.0/0"), selector={"app.kubernetes.io/name": "other"})],
        [policy(to_block("::/0"))],
    ],
)
def test_closed_policies(policies: list[dict[str, Any]]) -> None:
    assert not allows_egress(LABELS, policies, METADATA)[0]


def test_units_policies_are_closed() -> None:
    rules = list_egress_rules(["https://catalog.example/catalog", "http://s3.example:80"])

    assert not allows_egress(LABELS, [policy(*rules)], METADATA)[0]
    assert not allows_egress(LABELS, [policy(*rules)], "fd00:ec2::254")[0]


@pytest.mark.parametrize(("host_network", "result"), [(True, "allowed"), (False, "denied")])
def test_no_policy_limits_a_pod_in_its_nodes_network(*, host_network: bool, result: str) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "unit", "labels": LABELS}, "spec": {"hostNetwork": host_network}}
    session = SimpleNamespace(has_units=True, manifests=[pod, {"kind": "NetworkPolicy", **policy()}])

    [attempt] = [part for part in probe_metadata_address(cast(Any, session)) if isinstance(part, Attempt)]

    assert attempt.result == result
    assert ("hostNetwork" in attempt.evidence) is host_network
