"""Credentials of pods for the catalog: a service account token, or a key of a Kubernetes Secret."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, TokenAuth, TokenFileAuth

from lakewright.kubernetes.runtimes import CONFIG_DIR, SCRATCH_DIR, environment
from lakewright.spec.computing_unit import Runtime
from lakewright.spec.identity import JobsSecret

AUDIENCE = "lakekeeper"
"""Default audience of the pods' tokens for Lakekeeper."""
_RESERVED_FOLDERS = ("/", CONFIG_DIR, SCRATCH_DIR, "/tmp", "/dev/shm")  # noqa: S108 - in the pod


@dataclass(frozen=True)
class PodIdentity:
    """Settings of an environment for the authentication of pods."""

    secret: JobsSecret | None = None
    """Secret with the credential of `jobs_auth`, if it needs a credential."""
    audience: str | None = AUDIENCE
    """Audience of projected service account tokens. None: the cluster's own, which its API accepts, too."""


DEFAULT_IDENTITY = PodIdentity()


def find_mistake(auth: CatalogAuth, secret: JobsSecret) -> str | None:
    """Return why jobs with this authentication cannot use a Secret; None if they can."""
    reference = _find_reference(auth)
    if reference is None:
        return f"expected `lakekeeper.jobs_auth` of kind client-credentials or token, which use it; found {auth.kind}"
    scheme, _, target = reference.partition(":")
    if scheme == "env" or (scheme == "file" and _has_own_folder(target)):
        return None
    return (
        f"expected env:NAME, or file:PATH in a separate folder of the pod, in `lakekeeper.jobs_auth` "
        f"(not {', '.join(_RESERVED_FOLDERS)}); found {reference!r}; key {secret.key} is put there"
    )


def find_token_mistake(auth: CatalogAuth) -> str | None:
    """Return why pods cannot have their token at the path of `jobs_auth`; None if they can."""
    if not isinstance(auth, TokenFileAuth) or _has_own_folder(auth.path):
        return None
    return (
        f"expected an absolute path in a separate folder of the pod (not {', '.join(_RESERVED_FOLDERS)}), as the token"
        f" is mounted there; found {auth.path!r}"
    )


def _has_own_folder(file: str) -> bool:
    path = PurePosixPath(file)
    # The volume of the configuration is read-only, so nothing can be mounted below it either.
    return path.is_absolute() and str(path.parent) not in _RESERVED_FOLDERS and not path.is_relative_to(CONFIG_DIR)


def variables(runtime: Runtime, catalog: CatalogConfig, identity: PodIdentity) -> list[dict[str, Any]]:
    """Return the environment variables of a container. Kubernetes fills in the variable with the credential."""
    plain: list[dict[str, Any]] = [
        {"name": name, "value": value} for name, value in environment(runtime, catalog).items()
    ]
    scheme, target = _parse_secret_reference(catalog, identity)
    if (secret := identity.secret) is None or scheme != "env":
        return plain
    return [*plain, {"name": target, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}}]


def mounts(catalog: CatalogConfig, identity: PodIdentity) -> list[dict[str, Any]]:
    """Return the mount of the token or credential, if the pod has it in a file."""
    if isinstance(catalog.auth, TokenFileAuth):
        return [{"name": "token", "mountPath": str(PurePosixPath(catalog.auth.path).parent), "readOnly": True}]
    scheme, target = _parse_secret_reference(catalog, identity)
    if scheme != "file":
        return []
    return [{"name": "credential", "mountPath": str(PurePosixPath(target).parent), "readOnly": True}]


def volumes(catalog: CatalogConfig, identity: PodIdentity, seconds: int) -> list[dict[str, Any]]:
    """Return the volume with the pod's token, valid for `seconds`, or with the key of the Secret.

    The cluster's API refuses tokens of another audience, so the token is valid for the catalog only. Kubernetes renews
    both files.
    """
    if isinstance(catalog.auth, TokenFileAuth):
        return [build_token_volume("token", PurePosixPath(catalog.auth.path).name, identity.audience, seconds)]
    scheme, target = _parse_secret_reference(catalog, identity)
    if (secret := identity.secret) is None or scheme != "file":
        return []
    items = [{"key": secret.key, "path": PurePosixPath(target).name}]
    return [{"name": "credential", "secret": {"secretName": secret.name, "items": items}}]


def build_token_volume(name: str, file: str, audience: str | None, seconds: int) -> dict[str, Any]:
    """Return a volume with the token of the pod's ServiceAccount, valid for `seconds`; without an audience, the API's.

    Args:
        name: Name of the volume.
        file: Name of the file.
        audience: Audience of the token.
        seconds: Seconds for which the token is valid. Kubernetes renews it before.
    """
    token = {**({"audience": audience} if audience else {}), "expirationSeconds": seconds, "path": file}
    return {"name": name, "projected": {"sources": [{"serviceAccountToken": token}]}}


def _parse_secret_reference(catalog: CatalogConfig, identity: PodIdentity) -> tuple[str, str]:
    scheme, _, target = ((_find_reference(catalog.auth) if identity.secret else None) or "").partition(":")
    return scheme, target


def _find_reference(auth: CatalogAuth) -> str | None:
    """Return the reference to the secret that the authentication needs."""
    if isinstance(auth, ClientCredentialsAuth):
        return auth.client_secret
    return auth.token if isinstance(auth, TokenAuth) else None
