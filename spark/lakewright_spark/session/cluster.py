"""What Spark has to be told beside its master's address: nothing on a standalone cluster, more on Kubernetes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from lakewright_spark.errors import ConfigMissingError

IMAGE = "spark.kubernetes.container.image"
NAMESPACE = "spark.kubernetes.namespace"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes tells a pod of itself."""

_MASTERS = re.compile(r"local(\[[^\]]+\])?|spark://[^/\s]+:\d+(,[^/\s]+:\d+)*|k8s://\S+")


def cluster_properties(
    master: str,
    given: Mapping[str, str],
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> dict[str, str]:
    """Properties for this master beside those that are given. No secrets.

    ConfigMissingError for a master that is none of Spark's, and on Kubernetes if nothing says which image executors
    have.
    """
    if not _MASTERS.fullmatch(master):
        raise ConfigMissingError(
            f"master {master!r}: expected local[N], spark://HOST:PORT or k8s://URL of a Kubernetes API server"
        )
    if not master.startswith("k8s://"):
        return {}
    if not (given.get(IMAGE) or given.get("spark.kubernetes.executor.container.image")):
        raise ConfigMissingError(
            f"master {master}: expected an image for executors, with Spark 4.1 in it: give {IMAGE}=IMAGE"
        )
    try:
        namespace = (service_account / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return {}  # not in a pod: Spark takes what the user's own context says
    # Executors belong to the driver's pod, so that they end with it, however that ends.
    pod = environ.get("HOSTNAME") if given.get(NAMESPACE, namespace) == namespace else None
    return {NAMESPACE: namespace, **({"spark.kubernetes.driver.pod.name": pod} if pod else {})}
