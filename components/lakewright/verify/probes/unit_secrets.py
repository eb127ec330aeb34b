"""Probe: neither the environment nor the mounts of the tenant's pods have a secret that is not their own credential."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.credentials import references
from lakewright.verify.attempts.check import Attempt, Note, expect_denied
from lakewright.verify.attempts.errors import ProbeFailedError
from lakewright.verify.manifests.secrets import secrets_in_config_map, secrets_in_pod
from lakewright.verify.manifests.workloads import workloads
from lakewright.verify.session.sessions import TenantSession


def probe_unit_secrets(session: TenantSession) -> Iterator[Attempt | Note]:
    """Search the pods and the ConfigMaps of the tenant's namespace."""
    if not session.has_units:
        yield Note("secrets of units: the tenant has no pods")
        return
    own = session.settings.cluster.own_secrets
    known, unread = _known_secrets(session)
    if unread:
        yield Note(
            f"secrets of units: {unread} references to secrets cannot be resolved here; pods may have their values"
        )
    pods = [*workloads(session.manifests)]
    if not pods:
        raise ProbeFailedError("there are no workloads in the cluster or the rendered manifests; run `lakewright up`")
    for pod in pods:
        yield _attempt(f"{pod.title}'s environment and mounts", secrets_in_pod(pod, own, known))
    for manifest in session.manifests:
        if manifest.get("kind") == "ConfigMap":
            title = f"ConfigMap {manifest['metadata'].get('name')}"
            yield _attempt(title, secrets_in_config_map(manifest, known))


def _attempt(title: str, found: list[str]) -> Attempt:
    evidence = "; ".join(found) if found else "no secret found"
    return expect_denied(f"find a secret in {title}", "allowed" if found else "denied", evidence)


def _known_secrets(session: TenantSession) -> tuple[set[str], set[str]]:
    """Return the secrets of environment and spec that this machine can read, and the references to the others."""
    known: set[str] = set()
    unread: set[str] = set()
    for reference in session.settings.references:
        try:
            known.add(session.settings.resolve(reference))
        except references.UnresolvedCredentialError:
            # A file that is not here may be one of the pods.
            unread |= set[str]() if reference.startswith("file:") else {reference}
    return known, unread
