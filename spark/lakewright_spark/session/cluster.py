"""Spark settings that depend on the cluster, `spark-defaults.conf` and the machine's memory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from lakewright_spark.errors import ConfigMissingError

IMAGE = "spark.kubernetes.container.image"
NAMESPACE = "spark.kubernetes.namespace"
DRIVER_POD = "spark.kubernetes.driver.pod.name"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder in which Kubernetes describes a pod's service account."""

_MASTERS = re.compile(r"local(\[[^\]]+\])?|spark://[^/\s]+:\d+(,[^/\s]+:\d+)*|k8s://\S+")


def cluster_properties(
    master: str,
    properties: Mapping[str, str],
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> dict[str, str]:
    """Return properties for this master in addition to `properties` and `spark-defaults.conf`, without secrets.

    Raises ConfigMissingError for an invalid master, and on Kubernetes if no setting names the executors' image.
    """
    if not _MASTERS.fullmatch(master):
        raise ConfigMissingError(
            f"master {master!r}: expected local[N], spark://HOST:PORT or k8s://URL of a Kubernetes API server"
        )
    if not master.startswith("k8s://"):
        return {}
    settings = {**spark_defaults(environ), **properties}
    if not (settings.get(IMAGE) or settings.get("spark.kubernetes.executor.container.image")):
        raise ConfigMissingError(
            f"master {master}: expected an image for executors, with Spark 4.1 in it: give {IMAGE}=IMAGE with --conf "
            "or in spark-defaults.conf"
        )
    try:
        namespace = (service_account / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return {}  # not in a pod: Spark uses the user's own context
    pod_properties = {NAMESPACE: namespace}
    # The host name of a pod of an indexed Job is not the pod's name.
    pod = environ.get("POD_NAME") or environ.get("HOSTNAME")
    if pod and settings.get(NAMESPACE, namespace) == namespace:
        # Executors belong to the driver's pod, so that they end with it, however that ends.
        pod_properties[DRIVER_POD] = pod
    return {name: value for name, value in pod_properties.items() if name not in settings}


_ENTRY = re.compile(r"([^\s=:]+)(?:\s*[=:]\s*|\s+)(.*)")


def spark_defaults(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what `spark-defaults.conf` in $SPARK_CONF_DIR, else in $SPARK_HOME/conf, sets; none without a file."""
    if folder := environ.get("SPARK_CONF_DIR"):
        path = Path(folder)
    elif home := environ.get("SPARK_HOME"):
        path = Path(home) / "conf"
    else:
        return {}
    try:
        lines = (path / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    entries = (_ENTRY.fullmatch(line.strip()) for line in lines if line.strip() and line.strip()[0] not in "#!")
    return {entry[1]: entry[2].strip() for entry in entries if entry}


_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_MIN_MEMORY_MIB = 1024
"""MiB: Spark's own default."""


def driver_memory(defaults: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> str | None:
    """Return `spark.driver.memory` for a script on this machine; None where the user has set it already.

    Args:
        defaults: Properties of `spark-defaults.conf`.
        environ: May have Spark's own SPARK_DRIVER_MEMORY.
    """
    if "spark.driver.memory" in defaults or environ.get("SPARK_DRIVER_MEMORY"):
        return None
    return f"{max(_usable_bytes() // 2**21, _MIN_MEMORY_MIB)}m"


def _usable_bytes() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for path in _LIMITS if (limit := _limit(path)) is not None)])


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
