"""Probe: the pods may not reach the cloud's metadata addresses, which hand out the node's identity."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.client_access.check import Attempt, Note, expect_denied
from lakewright.client_access.errors import ProbeFailedError
from lakewright.verify.manifests.egress import allows_egress
from lakewright.verify.manifests.workloads import list_workloads
from lakewright.verify.session.sessions import TenantSession

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
        egress_by_address = {address: allows_egress(pod.labels, policies, address) for address in ADDRESSES}
        open_addresses = [address for address, (is_open, _) in egress_by_address.items() if is_open]
        evidence = egress_by_address[open_addresses[0] if open_addresses else ADDRESSES[0]][1]
        title = f"reach {open_addresses[0] if open_addresses else 'the metadata addresses'} from {pod.title}"
        yield expect_denied(title, "allowed" if open_addresses else "denied", evidence)
    yield Note("metadata address: read from the manifests; whether the cluster's network enforces them is not tested")
