"""Objects of Kubernetes as resources, declared by their manifests."""

from __future__ import annotations

import pulumi
from pulumi_kubernetes import _utilities as kubernetes_package

from lakewright.kubernetes.manifests import Manifest


class KubernetesObject(pulumi.CustomResource):
    """An object declared by its manifest, whose values may be outputs.

    The classes of `pulumi_kubernetes` make the same resources, but take a second to import.
    """

    def __init__(self, name: str, manifest: Manifest, opts: pulumi.ResourceOptions) -> None:
        """Declare the object of a manifest."""
        group = manifest["apiVersion"] if "/" in manifest["apiVersion"] else f"core/{manifest['apiVersion']}"
        version = pulumi.ResourceOptions(version=str(kubernetes_package.get_version()))
        super().__init__(
            f"kubernetes:{group}:{manifest['kind']}", name, manifest, pulumi.ResourceOptions.merge(version, opts)
        )


def uid_of(made: KubernetesObject) -> pulumi.Output[str | None]:
    """Return the uid that the cluster gave an object; None if the object was rendered only."""
    # The id is unknown in a preview that would create the object, in which the uid is not the final one.
    return pulumi.Output.all(made.id, vars(made)["metadata"]).apply(lambda values: values[1].get("uid"))
