"""The `kubernetes` provider package: what it is called, its configuration, and the instance that it makes."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from lakewright_sandbox.providers.errors import UnsupportedError
from lakewright_sandbox.providers.kubernetes.rendering import Rendering
from lakewright_sandbox.providers.properties import UNKNOWN, Properties
from lakewright_sandbox.providers.servicer import Failure

# The real provider's version whose rendering this one follows.
_VERSION = "4.34.2"
_SUPPORTED = {
    "alwaysRender",
    "enableConfigMapMutable",
    "enableSecretMutable",
    "enableServerSideApply",
    # The SDK fills it in from the program's KUBECONFIG; rendering reaches no cluster, so it means nothing here.
    "kubeconfig",
    "namespace",
    "renderYamlToDirectory",
    "suppressDeprecationWarnings",
    "suppressHelmHookWarnings",
    "version",
}
_INSTALL = "run `pulumi plugin install resource kubernetes` and use the real one"


class KubernetesPackage:
    """The sandbox's `kubernetes` provider."""

    name = "kubernetes"
    version = _VERSION
    replacing_config = frozenset({"renderYamlToDirectory"})

    def check_config(self, config: Properties) -> list[Failure]:
        """Refuse what only the real provider can do."""
        failures = [
            Failure(key, f"the sandbox's kubernetes provider has no `{key}`; leave it out, or {_INSTALL}")
            for key in sorted(config.keys() - _SUPPORTED)
            if not key.startswith("__")
        ]
        if not config.get("renderYamlToDirectory"):
            failures.append(Failure("renderYamlToDirectory", _needs_directory()))
        return failures

    def configure(self, config: Properties) -> Rendering:
        """An instance that renders into the configured directory."""
        directory = config.get("renderYamlToDirectory")
        if not directory:
            raise UnsupportedError(_needs_directory())
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
            if str(config.get(key, os.environ.get(variable, "false"))).lower() == "true"
        }
        return Rendering(
            # A directory that another resource will name is unknown in a preview, where nothing is written.
            directory=Path(directory) if directory != UNKNOWN else None,
            namespace=config.get("namespace") or None,
            always=str(config.get("alwaysRender", "false")).lower() == "true",
            mutable=frozenset(mutable),
            field_manager=lambda: f"pulumi-kubernetes-{secrets.token_hex(4)}",
        )


def _needs_directory() -> str:
    return (
        "the sandbox's kubernetes provider only renders manifests: set `renderYamlToDirectory`, or, for a cluster, "
        + _INSTALL
    )
