"""The number of a Deployment's pods, read and changed at the Kubernetes API."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from lakewright_spark.errors import LakewrightSparkError

FIELD_MANAGER = "lakewright-activator"
"""Owner of `spec.replicas`, which stacks do not set for idle units."""


class ScalingError(LakewrightSparkError):
    """The Kubernetes API refused a call or did not respond."""


class DeploymentScale:
    """The number of pods of one unit: the scale subresource of its Deployment."""

    def __init__(self, apps: Any, namespace: str, deployment: str) -> None:
        """Use an `AppsV1Api` of the official client."""
        self._apps, self._namespace, self._deployment = apps, namespace, deployment

    async def read(self) -> int:
        """Return the requested number of pods. Raises ScalingError."""
        scale = await self._call(self._apps.read_namespaced_deployment_scale)
        return cast(int, scale.spec.replicas or 0)

    async def write(self, replicas: int) -> None:
        """Set the requested number of pods, with an own field manager. Raises ScalingError."""
        body = {"spec": {"replicas": replicas}}
        await self._call(self._apps.patch_namespaced_deployment_scale, body=body, field_manager=FIELD_MANAGER)

    async def _call(self, method: Any, **arguments: Any) -> Any:
        from kubernetes.client import ApiException  # noqa: PLC0415 - slow to load
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            return await asyncio.to_thread(method, self._deployment, self._namespace, _request_timeout=10, **arguments)
        except ApiException as error:
            response = cast(Any, error)
            raise ScalingError(f"the Kubernetes API responded {response.status} {response.reason}") from error
        except (HTTPError, OSError) as error:
            raise ScalingError(f"the Kubernetes API did not respond ({type(error).__name__})") from error


def connect_to_cluster() -> Any:
    """Return an `AppsV1Api` with the pod's own ServiceAccount, or with the kubeconfig of $KUBECONFIG."""
    from kubernetes import client, config  # noqa: PLC0415 - slow to load

    cast(Any, config).load_config()
    return client.AppsV1Api()
