"""Objects of Kubernetes as resources, declared by their manifests."""

from __future__ import annotations

import pulumi

from lakewright.kubernetes.manifests import Manifest


class KubernetesObject(pulumi.CustomResource):
    """An object declared by its manifest, whose values may be outputs.

    The classes of `pulumi_kubernetes` make equal resources, but take a second to import.
    """

    def __init__(self, name: str, manifest: Manifest, opts: pulumi.ResourceOptions) -> None:
        """Declare the object of a manifest."""
        from pulumi_kubernetes import _utilities as kubernetes_package  # noqa: PLC0415 - only stacks with a cluster

        group = manifest["apiVersion"] if "/" in manifest["apiVersion"] else f"core/{manifest['apiVersion']}"
        version = pulumi.ResourceOptions(version=str(kubernetes_package.get_version()))
        super().__init__(
            f"kubernetes:{group}:{manifest['kind']}", name, manifest, pulumi.ResourceOptions.merge(version, opts)
        )


def read_uid(kubernetes_object: KubernetesObject) -> pulumi.Output[str | None]:
    """Return the uid that the cluster gave an object; None if the object was rendered only."""
    # The id is unknown in a preview that would create the object, whose uid is not final in that preview.
    return pulumi.Output.all(kubernetes_object.id, vars(kubernetes_object)["metadata"]).apply(
        lambda values: values[1].get("uid")
    )
