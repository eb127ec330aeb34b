"""ServiceAccounts of pods at a real API server: their rendered manifests, and the tokens that pods get."""

from __future__ import annotations

import base64
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import httpx

from tests.control_plane import ControlPlane

APPLIED_KINDS = frozenset({"ClusterRole", "ClusterRoleBinding", "Namespace", "ServiceAccount"})
"""Kinds of the platform that the API server needs to review tokens."""
_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME = "kube-api-access"

Manifest = dict[str, Any]


@dataclass(frozen=True)
class ServiceAccounts:
    """The accounts of a namespace at an API server."""

    plane: ControlPlane
    namespace: str

    def apply(self, manifest: Manifest) -> None:
        """Apply a manifest, which must be accepted."""
        response = self.plane.apply(manifest, fieldValidation="Strict")
        assert response.is_success, f"{manifest['kind']} {manifest['metadata']['name']}: {response.text}"

    def request_secret(self, template: Manifest) -> Manifest | None:
        """Return a Secret with the files that a pod of a template gets; None if it gets no token."""
        if not template["spec"].get("automountServiceAccountToken"):
            return None
        account = template["spec"]["serviceAccountName"]
        files = {
            "token": self.plane.request_token(self.namespace, account),
            "ca.crt": self.plane.ca.read_text(),
            "namespace": self.namespace,
        }
        return {"data": {file: base64.b64encode(text.encode()).decode() for file, text in files.items()}}

    def mount_secret(self, template: Manifest, secret_name: str) -> Manifest:
        """Return a template whose containers have the files and the API server's address, as a cluster adds them."""
        template = deepcopy(template)
        spec, endpoint = template["spec"], httpx.URL(self.plane.endpoint)
        spec["volumes"] = [*spec.get("volumes", []), {"name": _VOLUME, "secret": {"secretName": secret_name}}]
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            mount = {"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}
            container["volumeMounts"] = [*container.get("volumeMounts", []), mount]
            container["env"] = [
                *container.get("env", []),
                {"name": "KUBERNETES_SERVICE_HOST", "value": endpoint.host},
                {"name": "KUBERNETES_SERVICE_PORT", "value": str(endpoint.port)},
            ]
        return template
