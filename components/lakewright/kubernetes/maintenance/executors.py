"""Spark executors of maintenance runs: pods that the run's own pod makes, as Spark's driver in client mode.

Settings follow "Running Spark on Kubernetes" of Spark 4.1. The executors' pods come from a template that meets the
restricted standard, and they have the identity of the run for the catalog. Pure functions.
"""

from __future__ import annotations

from typing import Any

import yaml
from lakewright_spark.catalog import CatalogConfig

from lakewright.kubernetes import compute_limit, jobs_identity, manifests, network, trust
from lakewright.kubernetes.jobs_identity import PodIdentity
from lakewright.kubernetes.manifests import Manifest
from lakewright.kubernetes.runtimes import RUNTIMES
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.names.object_names import EXECUTORS, MAINTENANCE, namespace_name
from lakewright.spec import TenantSpec
from lakewright.spec.maintenance import ExecutorsSpec
from lakewright.validation.quantity import canonical_memory, cpu_text, parse_bytes, parse_millicores

_TEMPLATE_DIR, _TEMPLATE = "/etc/lakewright-executors", "pod.yaml"
_API = "k8s://https://kubernetes.default.svc"
_DRIVER_PORT, _BLOCKS_PORT = 7078, 7079
_CONTAINER = "executor"
DRIVER_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_DRAIN_SECONDS = 150
"""Seconds in which an executor hands over its files. Spark overwrites the pod template's value, by default with 30."""
_DECOMMISSION_SCRIPT = "/opt/decommission.sh"
"""In the image: Kubernetes runs it before it stops an executor."""
_DRIVER = {"app.kubernetes.io/name": MAINTENANCE}
_EXECUTORS = {"app.kubernetes.io/name": EXECUTORS}


def role(tenant: TenantSpec) -> Manifest:
    """Return the rights of the run's ServiceAccount in the namespace: to make, watch and delete pods and ConfigMaps."""
    every = ["create", "get", "list", "watch", "delete", "deletecollection"]
    rules = [{"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": every}]
    return _object("rbac.authorization.k8s.io/v1", "Role", MAINTENANCE, tenant) | {"rules": rules}


def role_binding(tenant: TenantSpec) -> Manifest:
    """Return the binding of the role to the run's ServiceAccount."""
    subject = {"kind": "ServiceAccount", "name": MAINTENANCE, "namespace": namespace_name(tenant.name)}
    return _object("rbac.authorization.k8s.io/v1", "RoleBinding", MAINTENANCE, tenant) | {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": MAINTENANCE},
        "subjects": [subject],
    }


def template_config_map(tenant: TenantSpec, template: Any) -> Manifest:
    """Return the ConfigMap of the pod template; `template` comes from `pod_template`."""
    return _object("v1", "ConfigMap", EXECUTORS, tenant) | {"data": {_TEMPLATE: template}}


def pod_template(
    tenant: TenantSpec,
    executors: ExecutorsSpec,
    catalog: CatalogConfig,
    identity: PodIdentity,
    *,
    cluster: ClusterSettings,
    token_seconds: int,
) -> str:
    """Return the template of the executors' pods as YAML. Spark adds image, command, CPU and memory."""
    disk = canonical_memory(executors.scratch)
    secrets = [variable for variable in jobs_identity.variables("spark", catalog, identity) if "valueFrom" in variable]
    container = {
        "name": _CONTAINER,
        "env": secrets,
        "securityContext": manifests.container_security(),
        "resources": {"requests": {"ephemeral-storage": disk}, "limits": {"ephemeral-storage": disk}},
        "volumeMounts": [
            # Spark uses volumes of such names as its local folders.
            {"name": "spark-local-dir-1", "mountPath": "/scratch"},
            {"name": "spark-local-dir-1", "mountPath": "/tmp", "subPath": "tmp"},  # noqa: S108 - in the pod
            {"name": "spark-local-dir-1", "mountPath": "/opt/spark/work-dir", "subPath": "work"},
            *jobs_identity.mounts(catalog, identity),
            *trust.mounts(catalog, cluster),
        ],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {**manifests.labels(tenant), **_EXECUTORS},
            **cluster.pods.to_metadata_fields(),
        },
        "spec": {
            "serviceAccountName": MAINTENANCE,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            **compute_limit.limit_pod_time(tenant, token_seconds),
            **cluster.pods.to_pod_fields(),
            "securityContext": manifests.pod_security(RUNTIMES["spark"].user),
            "containers": [container],
            "volumes": [
                {"name": "spark-local-dir-1", "emptyDir": {"sizeLimit": disk}},
                *jobs_identity.volumes(catalog, identity, token_seconds),
                *trust.volumes(cluster),
            ],
        },
    }
    return yaml.safe_dump(pod, sort_keys=False)


def network_policy(tenant: TenantSpec, urls: list[str], cluster: ClusterSettings) -> Manifest:
    """Return the policy of the executors: DNS, catalog, storages, the driver and other executors."""
    return _object("networking.k8s.io/v1", "NetworkPolicy", EXECUTORS, tenant) | {
        "spec": {
            "podSelector": {"matchLabels": _EXECUTORS},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [network.allow_ingress_from_pods(labels, [_BLOCKS_PORT]) for labels in (_DRIVER, _EXECUTORS)],
            "egress": [
                *network.list_egress_rules(urls, cluster),
                network.allow_egress_to_pods(_DRIVER, [_DRIVER_PORT, _BLOCKS_PORT]),
                network.allow_egress_to_pods(_EXECUTORS, [_BLOCKS_PORT]),
            ],
        }
    }


def list_driver_ingress() -> list[network.Rule]:
    """Allow connections of executors to the run's pod."""
    return [network.allow_ingress_from_pods(_EXECUTORS, [_DRIVER_PORT, _BLOCKS_PORT])]


def list_driver_egress(cluster: ClusterSettings) -> list[network.Rule]:
    """Allow requests of the run's pod to the API server and to executors."""
    return [network.allow_api_server(cluster), network.allow_egress_to_pods(_EXECUTORS, [_BLOCKS_PORT])]


def arguments(tenant: TenantSpec, executors: ExecutorsSpec, image: str, java_options: str = "") -> list[str]:
    """Return the arguments of `lakewright-spark maintain` that make executors.

    `java_options` are the spec's options of the driver's JVM.
    """
    cpu = cpu_text(parse_millicores(executors.cpu))
    heap = int(executors.heap.removesuffix("m"))
    properties = {
        "spark.kubernetes.namespace": namespace_name(tenant.name),
        "spark.kubernetes.container.image": image,
        "spark.kubernetes.executor.podTemplateFile": f"{_TEMPLATE_DIR}/{_TEMPLATE}",
        "spark.kubernetes.executor.podTemplateContainerName": _CONTAINER,
        "spark.kubernetes.authenticate.serviceAccountName": MAINTENANCE,
        "spark.kubernetes.authenticate.executor.serviceAccountName": MAINTENANCE,
        "spark.executor.instances": str(executors.count),
        "spark.executor.cores": str(max(1, parse_millicores(executors.cpu) // 1000)),
        "spark.kubernetes.executor.request.cores": cpu,
        "spark.kubernetes.executor.limit.cores": cpu,
        "spark.executor.memory": f"{heap}m",
        "spark.executor.memoryOverhead": f"{parse_bytes(executors.memory) // 2**20 - heap}m",
        # A driver that is out of memory ends, and the run starts another.
        DRIVER_JVM_OPTIONS: f"{java_options} -XX:+ExitOnOutOfMemoryError".strip(),
        "spark.driver.host": "$(POD_IP)",
        "spark.driver.bindAddress": "$(POD_IP)",
        "spark.driver.port": str(_DRIVER_PORT),
        "spark.driver.blockManager.port": str(_BLOCKS_PORT),
        "spark.blockManager.port": str(_BLOCKS_PORT),
        # Tasks carry credentials of the storage to executors.
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        # The run has no volumes or Services of its own, and no right to list them.
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        # An executor whose node is drained hands its shuffle files to other executors first.
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.kubernetes.decommission.script": _DECOMMISSION_SCRIPT,
        "spark.kubernetes.executor.terminationGracePeriodSeconds": f"{_DRAIN_SECONDS}s",
        **(_build_allocation_properties(executors) if executors.max_count else {}),
    }
    return ["--master", _API, *(word for key, value in properties.items() for word in ("--conf", f"{key}={value}"))]


def _build_allocation_properties(executors: ExecutorsSpec) -> dict[str, str]:
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(executors.count),
        "spark.dynamicAllocation.maxExecutors": str(executors.limit),
        # There is no shuffle service on Kubernetes: executors with shuffle files of a running query remain.
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    }


def driver_variables() -> list[dict[str, Any]]:
    """Return the variables of the run's container: the address at which executors reach it, and its pod's name."""
    fields = {"POD_IP": "status.podIP", "POD_NAME": "metadata.name"}
    return [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]


def driver_mounts() -> list[dict[str, Any]]:
    """Return the mount of the pod template."""
    return [{"name": "executors", "mountPath": _TEMPLATE_DIR, "readOnly": True}]


def driver_volumes() -> list[dict[str, Any]]:
    """Return the volume of the pod template."""
    return [{"name": "executors", "configMap": {"name": EXECUTORS}}]


def _object(api_version: str, kind: str, name: str, tenant: TenantSpec) -> Manifest:
    labels = {**manifests.labels(tenant), **(_DRIVER if name == MAINTENANCE else _EXECUTORS)}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace_name(tenant.name), "labels": labels},
    }
