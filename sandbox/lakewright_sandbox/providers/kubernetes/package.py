"""The `kubernetes` provider package: its name, its configuration, and how instances are created."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from lakewright_sandbox.providers.kubernetes.applying import Applying, Upserting
from lakewright_sandbox.providers.kubernetes.connection import ClusterConnection
from lakewright_sandbox.providers.kubernetes.rendering import Rendering
from lakewright_sandbox.providers.protocol.errors import SandboxProviderError, UnsupportedError
from lakewright_sandbox.providers.protocol.properties import UNKNOWN, Properties, contains_unknown
from lakewright_sandbox.providers.protocol.servicer import PropertyFailure

# The real provider's version whose rendering this provider follows.
_VERSION = "4.34.2"
_SUPPORTED = {
    "alwaysRender",
    # A context of the kubeconfig: the sandbox's cluster.
    "context",
    "enableConfigMapMutable",
    "enablePatchForce",
    "enableSecretMutable",
    "enableServerSideApply",
    # The SDK sets it from the program's KUBECONFIG. It is unused where manifests are rendered.
    "kubeconfig",
    "namespace",
    "renderYamlToDirectory",
    "suppressDeprecationWarnings",
    "suppressHelmHookWarnings",
    "upsertExistingObjects",
    "version",
}
_INSTALL = "run `pulumi plugin install resource kubernetes` and use the real provider"


class KubernetesPackage:
    """The sandbox's `kubernetes` provider."""

    name = "kubernetes"
    version = _VERSION
    replacing_config = frozenset({"renderYamlToDirectory"})

    def check_config(self, config: Properties) -> list[PropertyFailure]:
        """Refuse configuration that only the real provider supports."""
        failures = [
            PropertyFailure(key, f"the sandbox's kubernetes provider has no `{key}`; leave it out, or {_INSTALL}")
            for key in sorted(config.keys() - _SUPPORTED)
            if not key.startswith("__")
        ]
        if not config.get("renderYamlToDirectory") and not contains_unknown(config):
            try:
                ClusterConnection.open(config)
            except SandboxProviderError as error:
                failures.append(PropertyFailure("renderYamlToDirectory", _needs_directory(error)))
        return failures

    def configure(self, config: Properties) -> Rendering:
        """Return an instance that renders into the configured directory, or applies to the sandbox's cluster."""
        directory = config.get("renderYamlToDirectory")
        if config.get("enableServerSideApply") == "false":
            raise UnsupportedError(
                "the sandbox's kubernetes provider renders for server-side apply only; leave "
                f"`enableServerSideApply` out, or {_INSTALL}"
            )
        mutable = {
            kind
            for kind, key, variable in (
                ("ConfigMap", "enableConfigMapMutable", "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE"),
                ("Secret", "enableSecretMutable", "PULUMI_K8S_ENABLE_SECRET_MUTABLE"),
            )
            if _is_enabled(config, key, variable)
        }
        if not directory:
            return self._create_applying(config, frozenset(mutable))
        return Rendering(
            # A directory that is another resource's output is unknown in a preview, where nothing is written.
            directory=Path(directory) if directory != UNKNOWN else None,
            namespace=config.get("namespace") or None,
            always=str(config.get("alwaysRender", "false")).lower() == "true",
            mutable=frozenset(mutable),
            field_manager=_field_manager,
        )

    def _create_applying(self, config: Properties, mutable: frozenset[str]) -> Applying:
        try:
            connection = None if contains_unknown(config) else ClusterConnection.open(config)
        except SandboxProviderError as error:
            raise UnsupportedError(_needs_directory(error)) from error
        is_upserting = _is_enabled(config, "upsertExistingObjects", "PULUMI_K8S_UPSERT_EXISTING_OBJECTS")
        create_instance = Upserting if is_upserting else Applying
        return create_instance(
            directory=None,
            namespace=config.get("namespace") or None,
            always=False,
            mutable=mutable,
            field_manager=_field_manager,
            connection=connection,
            force=str(config.get("enablePatchForce", "false")).lower() == "true",
        )


def _is_enabled(config: Properties, key: str, variable: str) -> bool:
    return str(config.get(key, os.environ.get(variable, "false"))).lower() == "true"


def _field_manager() -> str:
    return f"pulumi-kubernetes-{secrets.token_hex(4)}"


def _needs_directory(error: SandboxProviderError) -> str:
    return (
        "the sandbox's kubernetes provider renders manifests, or applies them to the sandbox's own cluster: set "
        f"`renderYamlToDirectory`, or, for a cluster, {_INSTALL} ({error})"
    )
