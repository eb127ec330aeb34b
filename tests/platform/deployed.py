"""A platform stack and the cluster of processes that its manifests are applied to."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from tests.platform.cluster import Manifest, ProcessCluster
from tests.platform_documents import replace_value
from tests.platform_project import PlatformStack

SERVER, GATEWAY, OPENFGA = "lakekeeper", "lakekeeper-gateway", "lakekeeper-openfga"


class DeployedPlatform:
    """One platform. The product renders it, and its manifests are applied in the order of their dependencies."""

    def __init__(self, stack: PlatformStack, cluster: ProcessCluster) -> None:
        """Use a stack that is not deployed yet."""
        self.stack, self.cluster = stack, cluster
        self._is_bootstrapped = False

    def render(self, **changes: Any) -> list[Manifest]:
        """Run `up` after changes of the spec (`server__image`), and return the manifests.

        The first runs leave out the bootstrap, for which the server must run.
        """
        self.change(**changes)
        complete = self.stack.spec
        if not self._is_bootstrapped:
            self.stack.spec = {key: value for key, value in complete.items() if key != "bootstrap"}
        self.stack.write()
        self.stack.up()
        self.stack.spec = complete
        return self._order_manifests()

    def change(self, **changes: Any) -> None:
        """Change the spec without deploying it."""
        for path, value in changes.items():
            self.stack.spec = replace_value(self.stack.spec, path.replace("__", "."), value)

    def deploy(self, **changes: Any) -> None:
        """Render and apply changes of the spec."""
        self.cluster.apply(self.render(**changes))

    def ensure_bootstrapped(self) -> None:
        """Deploy the platform and bootstrap its server, if this has not happened."""
        if not self._is_bootstrapped:
            self.deploy()
            self.bootstrap()

    def bootstrap(self) -> dict[str, Any]:
        """Run `up` with the bootstrap, which needs the running server."""
        self._is_bootstrapped = True
        self.stack.write()
        return self.stack.up()

    def _order_manifests(self) -> list[Manifest]:
        """Return the rendered manifests so that each follows what its resource depends on in the stack's state."""
        state = json.loads(self.stack.output("stack", "export"))
        resources = {
            resource["urn"]: resource
            for resource in state["deployment"]["resources"]
            if resource["type"].startswith("kubernetes:") and resource.get("custom")
        }
        rendered, ordered = self.stack.manifests(), dict[str, Manifest]()

        def add(urn: str) -> None:
            if urn not in resources or urn in ordered:
                return
            for dependency in resources[urn].get("dependencies") or []:
                add(dependency)
            inputs = resources[urn]["outputs"]["__inputs"]
            ordered[urn] = rendered[inputs["kind"], inputs["metadata"]["name"]]

        for urn in resources:
            add(urn)
        return [deepcopy(manifest) for manifest in ordered.values()]
