"""Explain errors of Pulumi's plugins that advise something else than a tenant's stack needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakewright_engine import Operation, Result
    from pulumi.automation.events import EngineEvent

    from lakewright.cli.engines.choice import Engine

_UNREAD_CLUSTER = "failed to read resource state due to unreachable cluster"
"""The error of Pulumi's Kubernetes plugin, which needs a cluster even to refresh manifests in a folder."""
_NOTE = (
    "note: with `kubernetes.render_to`, manifests in a folder are never drift, but Pulumi's Kubernetes plugin "
    "refreshes them only while the kubeconfig names any cluster that responds. Run without --refresh; `lakewright "
    "drift` compares all other objects and needs no cluster. PULUMI_K8S_DELETE_UNREACHABLE would remove the manifests "
    "from the state."
)


@dataclass(frozen=True)
class PluginErrorExplainingEngine:
    """Runs another engine, and adds a note to the result if a plugin reported such an error."""

    engine: Engine

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report each event."""
        result = self.engine.run(operation, on_event)
        if any(_UNREAD_CLUSTER in message for message in result.messages):
            result.messages.append(_NOTE)
        return result
