"""The proxy between a unit of Texera and the catalog: a container of the unit's pod that has the unit's token.

Texera sends no credential to its REST catalog (texera#6040), so the proxy adds it. The unit's container has no token.
"""

from __future__ import annotations

from typing import Any

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import CatalogAuth, NoAuth, TokenAuth, TokenFileAuth

from lakewright.kubernetes import trust
from lakewright.kubernetes.catalog_proxy_config import (
    CONFIG_FILE,
    LIVENESS_PATH,
    READINESS_PATH,
    SCRIPT_FILE,
    SYSTEM_AUTHORITIES,
    ProxyConfig,
    find_address_mistake,
    format_uri,
    nginx_config,
)
from lakewright.kubernetes.catalog_proxy_script import nginx_script
from lakewright.kubernetes.runtimes import CONFIG_DIR
from lakewright.kubernetes.settings import ClusterSettings, TexeraSettings
from lakewright.kubernetes.texera import catalog_kind
from lakewright.spec.computing_unit import ComputingUnitSpec

PORT = 8181
"""Port on the pod's loopback address: Lakekeeper's own."""
TRIAL_IMAGE = "images.invalid/nginx-unprivileged:unset"
"""Image in the manifests of trials that name no image. It does not exist (RFC 6761), so their pods do not start."""
_PROBE_PORT = 8182
_SCRATCH = "proxy-scratch"


def is_used(unit: ComputingUnitSpec, auth: CatalogAuth, settings: TexeraSettings) -> bool:
    """Return whether a unit's pod has the proxy: a REST catalog that asks for a token, which the pod has in a file."""
    if unit.runtime != "texera" or catalog_kind(unit, settings) != "rest":
        return False
    return _find_token_file(auth) is not None


def find_mistake(
    unit: ComputingUnitSpec, auth: CatalogAuth, settings: TexeraSettings, *, catalog_uri: str, trial: bool
) -> tuple[str, str] | None:
    """Return the setting of the environment and why a unit cannot use the catalog; None if it can.

    Args:
        unit: The unit.
        auth: How the unit authenticates.
        settings: Settings of the environment.
        catalog_uri: Address of the catalog.
        trial: Whether manifests may lack what a running unit needs.
    """
    if unit.runtime != "texera" or catalog_kind(unit, settings) != "rest" or isinstance(auth, NoAuth):
        return None
    if not is_used(unit, auth, settings):
        if trial:
            return None
        return (
            "lakekeeper.jobs_auth",
            "expected kind token-file (the unit's ServiceAccount), or token with a file, for units of Texera with a"
            f" REST catalog: Texera sends no credential, and the proxy in its pod reads tokens from a file; found"
            f" {auth.kind}",
        )
    if address_mistake := find_address_mistake(catalog_uri):
        return "lakekeeper.catalog_uri", address_mistake
    if settings.proxy_image is None and not trial:
        return (
            "kubernetes.texera.proxy_image",
            f"required for unit `{unit.name}`: the image of nginx that adds its token to requests to the catalog",
        )
    return None


def derive_unit_catalog(catalog: CatalogConfig) -> CatalogConfig:
    """Return the configuration for programs in the unit's container, which use the proxy and need no credential."""
    return catalog.model_copy(update={"uri": format_uri(PORT), "auth": NoAuth()})


def list_files(catalog: CatalogConfig, settings: TexeraSettings) -> dict[str, str]:
    """Return the proxy's files in the unit's ConfigMap."""
    config = _make_config(catalog, settings)
    return {CONFIG_FILE: nginx_config(config), SCRIPT_FILE: nginx_script(config)}


def make_container(
    catalog: CatalogConfig, cluster: ClusterSettings, common: dict[str, Any], token_mounts: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the container.

    Args:
        catalog: The unit's catalog, with its address and the authentication of the unit.
        cluster: Settings of the cluster.
        common: Restart policy, resources and security context.
        token_mounts: Mounts of the token.
    """
    return {
        "name": "catalog-proxy",
        "image": cluster.texera.proxy_image or TRIAL_IMAGE,
        "command": ["nginx", "-e", "/dev/stderr", "-c", f"{CONFIG_DIR}/{CONFIG_FILE}"],
        "ports": [{"name": "proxy-health", "containerPort": _PROBE_PORT, "protocol": "TCP"}],
        **common,
        "startupProbe": {"httpGet": _request(READINESS_PATH), "periodSeconds": 1, "failureThreshold": 60},
        "readinessProbe": {"httpGet": _request(READINESS_PATH), "periodSeconds": 10},
        # A catalog that has moved to other addresses is found again after three minutes.
        "livenessProbe": {
            "httpGet": _request(LIVENESS_PATH),
            "periodSeconds": 30,
            "timeoutSeconds": 10,
            "failureThreshold": 6,
        },
        "volumeMounts": [
            {"name": "catalog", "mountPath": CONFIG_DIR, "readOnly": True},
            {"name": _SCRATCH, "mountPath": "/tmp"},  # noqa: S108 - in the pod
            *token_mounts,
            *trust.mounts(catalog, cluster),
        ],
    }


def list_volumes() -> list[dict[str, Any]]:
    """Return the volume that the proxy writes to."""
    return [{"name": _SCRATCH, "emptyDir": {"sizeLimit": "64Mi"}}]


def _request(path: str) -> dict[str, Any]:
    return {"path": path, "port": _PROBE_PORT}


def _make_config(catalog: CatalogConfig, settings: TexeraSettings) -> ProxyConfig:
    token_file = _find_token_file(catalog.auth)
    assert token_file is not None, "the proxy is used with a token file only"
    return ProxyConfig(
        catalog_uri=catalog.uri,
        project_id=catalog.project_id,
        token_file=token_file,
        folder=CONFIG_DIR,
        port=PORT,
        probe_port=_PROBE_PORT,
        ca_bundle=catalog.ca_bundle or SYSTEM_AUTHORITIES,
        timeout=settings.proxy_timeout,
        max_body_size=settings.proxy_max_body_size,
    )


def _find_token_file(auth: CatalogAuth) -> str | None:
    if isinstance(auth, TokenFileAuth):
        return auth.path
    scheme, _, path = auth.token.partition(":") if isinstance(auth, TokenAuth) else ("", "", "")
    return path if scheme == "file" else None
