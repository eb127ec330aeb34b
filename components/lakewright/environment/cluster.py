"""Settings of the cluster that runs computing units and maintenance jobs."""

from __future__ import annotations

from pathlib import Path

from lakewright.kubernetes.connect import ConnectAccess
from lakewright.kubernetes.images import TRIAL_IMAGES
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.spec.computing_unit import Runtime
from lakewright.spec.identity import JobsSecret


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
