"""Start no computing unit of a tenant while its limit of compute is reached: a quota in the tenant's namespace."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.drift.objects.kubernetes.cluster import ClusterUnreachableError, LiveCluster, open_cluster
from lakewright.drift.objects.provider_reads import provider_settings
from lakewright.drift.session import StackResource
from lakewright.kubernetes import compute_limit
from lakewright.names.object_names import COMPUTE_LIMIT
from lakewright.validation.documents import as_mapping, as_text

if TYPE_CHECKING:
    from lakewright.drift.session import ScanSession
    from lakewright.fleet.states import StackState

_NAMESPACE = "kubernetes:core/v1:Namespace"
_RENDERS = "renderYamlToDirectory"


@dataclass(frozen=True)
class UnitNamespace:
    """The namespace of a tenant's computing units in its cluster."""

    name: str
    tenant: str
    is_limited: bool
    """Whether the tenant's limit of compute is enforced when it is reached."""
    is_rendered: bool
    """Whether the manifests are written to a folder, so that the cluster is not known."""
    kubeconfig: str | None
    """Text or path of the kubeconfig; None if the settings of its provider cannot be read."""
    context: str

    @property
    def is_enforceable(self) -> bool:
        """Whether the tenant's limit of compute is enforced, and the stack names the cluster."""
        return self.is_limited and not self.is_rendered

    def describe_gap(self) -> str:
        """Return why a limit that was reached cannot be enforced; empty if it can be enforced, or is not limited."""
        if not (self.is_limited and self.is_rendered):
            return ""
        return f"the limit of compute is reached, but is not enforced: {self._describe_folder()}"

    def _describe_folder(self) -> str:
        return (
            f"manifests of namespace {self.name} are in a folder (`kubernetes.render_to`), so its cluster is not known"
        )

    def connect(self, session: ScanSession) -> LiveCluster:
        """Return the client of the cluster.

        Raises:
            ClusterUnreachableError: The kubeconfig cannot be used, or the cluster is not known.
        """
        if self.is_rendered:
            raise ClusterUnreachableError(self._describe_folder())
        if self.kubeconfig is None:
            raise ClusterUnreachableError(
                f"the provider of namespace {self.name} cannot be read from the state, so its cluster is not known."
                " Provide the passphrase of the stack, or run `lakewright up`"
            )
        return open_cluster(self.kubeconfig, self.context, session)

    def set_limit(self, session: ScanSession, *, is_reached: bool) -> bool:
        """Create or delete the quota. Return whether that changed something. Rendered manifests have no quota.

        Raises:
            LakewrightError: The cluster does not respond, or refused a call.
        """
        if self.is_rendered and not is_reached:
            return False
        cluster = self.connect(session)
        quotas = cluster.collection("v1", "ResourceQuota")
        if quotas is None:
            raise ClusterUnreachableError("the cluster serves no kind ResourceQuota")
        if is_reached:
            return cluster.create(quotas, compute_limit.build_quota(self.name, {"lakewright/tenant": self.tenant}))
        return cluster.delete(quotas, self.name, COMPUTE_LIMIT)


def find_namespace(state: StackState) -> UnitNamespace | None:
    """Return the namespace of the computing units of a stack; None if the stack has none."""
    providers: dict[str, Any] = {f"{resource.urn}::{resource.id}": resource for resource in state.resources}
    for resource in state.resources:
        if resource.type != _NAMESPACE or resource.delete:
            continue
        provider = providers.get(resource.provider)
        settings = provider_settings(StackResource(state.stack, "", "", resource, provider))
        metadata = as_mapping(resource.inputs.get("metadata"))
        return UnitNamespace(
            name=str(metadata.get("name")),
            tenant=as_text(as_mapping(metadata.get("labels")).get("lakewright/tenant")) or "",
            is_limited=compute_limit.is_enforced(metadata),
            is_rendered=settings is not None and bool(settings.get(_RENDERS)),
            kubeconfig=None if settings is None else _find_kubeconfig(settings),
            context="" if settings is None else str(settings.get("context") or ""),
        )
    return None


def _find_kubeconfig(settings: Mapping[str, Any]) -> str:
    return str(settings.get("kubeconfig") or os.environ.get("KUBECONFIG") or "")
