"""Settings of the cluster that runs computing units and maintenance jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lakewright.kubernetes.connect import ConnectAccess
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.spec.computing_unit import Runtime
from lakewright.spec.identity import JobsSecret

NOT_PULLABLE = "images.invalid/"
"""Registry that cannot exist (RFC 6761)."""

TRIAL_IMAGES: Mapping[Runtime, str] = {
    "spark": f"{NOT_PULLABLE}lakewright-spark:build-it-with-make-images",
    # Texera publishes no suitable image: a platform builds its own. Manifests of a trial are complete with this name.
    "texera": f"{NOT_PULLABLE}texera-workflow-execution-coordinator:unset",
}
"""Names in the manifests of trials that name no image. No such image exists, so their pods do not start."""

_BY_DIGEST = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")


def find_mistake(image: str | None, *, trial: bool) -> str | None:
    """Return why an image cannot be used; None if it can."""
    if image is None:
        return "required: neither the spec nor `kubernetes.images` of the environment names an image"
    if trial or _BY_DIGEST.fullmatch(image):
        return None
    return (
        f"expected an image by digest, `NAME@sha256:...`, found `{image}`, whose content may change. Name the digest,"
        " or set `kubernetes.trial: true` in the environment of a trial"
    )


class Cluster(ClusterSettings):
    """The cluster of computing units and maintenance jobs."""

    context: str | None = None
    """Context of the kubeconfig. Default: its current context."""
    render_to: Path | None = None
    """Folder to write manifests to, one folder per tenant, instead of applying them."""
    images: dict[Runtime, str] = {}
    """Default images by runtime. By digest, `NAME@sha256:...`, unless `trial` is set."""
    trial: bool = False
    """Whether images may be named by tag, and have defaults. For trials: the image of a tag may change."""
    maintenance_image: str | None = None
    """Image of maintenance jobs, with `lakewright-spark` and its jars. Default: that for `spark`, which has both."""
    connect: ConnectAccess = ConnectAccess()
    """Token and certificate of Spark Connect in computing units with runtime `spark`."""
    jobs_secret: JobsSecret | None = None
    """The Kubernetes Secret in each tenant's namespace that provides the variable or file of `lakekeeper.jobs_auth`
    (env:NAME or file:PATH) to pods."""

    def image(self, runtime: Runtime) -> str | None:
        """Return the default image of a runtime; None if there is none."""
        return self.images.get(runtime) or (TRIAL_IMAGES[runtime] if self.trial else None)
