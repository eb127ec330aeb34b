"""Probes: pods have no secret that is not their own credential, and do not reach the cloud's metadata addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lakewright.client_access.check import Attempt, Note, ProbeFailedError, expect_denied
from lakewright.credentials import references
from lakewright.verify.manifests.egress import allows_egress
from lakewright.verify.manifests.secrets import find_config_map_secrets, find_pod_secrets
from lakewright.verify.manifests.workloads import PodWorkload, list_workloads
from lakewright.verify.session.sessions import TenantSession


def probe_unit_secrets(session: TenantSession) -> Iterator[Attempt | Note]:
    """Search the pods and the ConfigMaps of the tenant's namespace."""
    if not session.has_units:
        yield Note("secrets of units: the tenant has no pods")
        return
    own_secrets = session.settings.cluster.own_secrets
    known_secrets, unresolved_references = _resolve_secrets(session)
    if unresolved_references:
        yield Note(
            f"secrets of units: {unresolved_references} references to secrets cannot be resolved here;"
            " pods may have their values"
        )
    pods = [*list_workloads(session.manifests)]
    if not pods:
        raise ProbeFailedError("there are no workloads in the cluster or the rendered manifests; run `lakewright up`")
    for pod in pods:
        yield _make_attempt(f"{pod.title}'s environment and mounts", find_pod_secrets(pod, own_secrets, known_secrets))
    for manifest in session.manifests:
        if manifest.get("kind") == "ConfigMap":
            title = f"ConfigMap {manifest['metadata'].get('name')}"
            yield _make_attempt(title, find_config_map_secrets(manifest, known_secrets))


def _make_attempt(title: str, findings: list[str]) -> Attempt:
    evidence = "; ".join(findings) if findings else "no secret found"
    return expect_denied(f"find a secret in {title}", "allowed" if findings else "denied", evidence)


def _resolve_secrets(session: TenantSession) -> tuple[set[str], set[str]]:
    """Return the secrets of environment and spec, and the references that this machine cannot resolve."""
    known_secrets: set[str] = set()
    unresolved_references: set[str] = set()
    for reference in session.settings.references:
        try:
            known_secrets.add(session.settings.resolve(reference))
        except references.UnresolvedCredentialError:
            # A file that is missing here may exist in the pods.
            unresolved_references |= set[str]() if reference.startswith("file:") else {reference}
    return known_secrets, unresolved_references


ADDRESSES = ("169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254", "fd00:ec2::23")
"""Instance metadata, and the credential endpoints of ECS and of EKS Pod Identity."""


def probe_metadata_address(session: TenantSession) -> Iterator[Attempt | Note]:
    """Evaluate the NetworkPolicies of each pod. Nothing is sent from a pod."""
    if not session.has_units:
        yield Note("metadata address: the tenant has no pods")
        return
    policies = [manifest for manifest in session.manifests if manifest.get("kind") == "NetworkPolicy"]
    pods = [*list_workloads(session.manifests)]
    if not pods:
        raise ProbeFailedError("there are no workloads in the cluster or the rendered manifests; run `lakewright up`")
    for pod in pods:
        egress_by_address = {address: _find_egress(pod, policies, address) for address in ADDRESSES}
        open_addresses = [address for address, (is_open, _) in egress_by_address.items() if is_open]
        evidence = egress_by_address[open_addresses[0] if open_addresses else ADDRESSES[0]][1]
        title = f"reach {open_addresses[0] if open_addresses else 'the metadata addresses'} from {pod.title}"
        yield expect_denied(title, "allowed" if open_addresses else "denied", evidence)
    yield Note("metadata address: read from the manifests; whether the cluster's network enforces them is not tested")


def _find_egress(pod: PodWorkload, policies: Sequence[Mapping[str, Any]], address: str) -> tuple[bool, str]:
    """Return whether pods may reach an address, and the evidence."""
    if pod.spec.get("hostNetwork"):
        return True, "`hostNetwork: true`: no NetworkPolicy applies to a pod in its node's network"
    return allows_egress(pod.labels, policies, address)
