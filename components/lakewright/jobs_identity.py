"""How pods get what proves to the catalog who they are: a token of their own, or a key of a Kubernetes Secret."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog_auth import CatalogAuth, ClientCredentialsAuth, TokenAuth, TokenFileAuth
from pydantic import Field

from lakewright.runtimes import CONFIG_DIR, SCRATCH_DIR, environment
from lakewright.spec.computing_unit import Runtime
from lakewright.spec.part import Part

AUDIENCE = "lakekeeper"
_TAKEN = ("/", CONFIG_DIR, SCRATCH_DIR, "/tmp", "/dev/shm")  # noqa: S108 - in the pod


class JobsSecret(Part):
    """A key of a Kubernetes Secret, which somebody else puts into the namespace of each tenant."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]{1,253}$")]


def mistake(auth: CatalogAuth, secret: JobsSecret) -> str | None:
    """Why a Secret cannot be given to jobs that prove themselves in this way, as a sentence; None if it can."""
    reference = _reference(auth)
    if reference is None:
        return f"expected `lakekeeper.jobs_auth` of kind client-credentials or token, which need one; it is {auth.kind}"
    scheme, _, place = reference.partition(":")
    path = PurePosixPath(place)
    if scheme == "env" or (scheme == "file" and path.is_absolute() and str(path.parent) not in _TAKEN):
        return None
    return (
        f"expected `lakekeeper.jobs_auth` to say env:NAME, or file:PATH in a folder of its own in the pod "
        f"(not {', '.join(_TAKEN)}); found {reference!r}; key {secret.key} is put there"
    )


def variables(runtime: Runtime, catalog: CatalogConfig, secret: JobsSecret | None) -> list[dict[str, Any]]:
    """A container's variables. The value of the one that the credential is read from is the cluster's to fill in."""
    plain: list[dict[str, Any]] = [
        {"name": name, "value": value} for name, value in environment(runtime, catalog).items()
    ]
    scheme, place = _place(catalog, secret)
    if secret is None or scheme != "env":
        return plain
    return [*plain, {"name": place, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}}]


def mounts(catalog: CatalogConfig, secret: JobsSecret | None) -> list[dict[str, Any]]:
    """Where the catalog's token or credential is, if the pod has it in a file."""
    if isinstance(catalog.auth, TokenFileAuth):
        return [{"name": "token", "mountPath": str(PurePosixPath(catalog.auth.path).parent), "readOnly": True}]
    scheme, place = _place(catalog, secret)
    if scheme != "file":
        return []
    return [{"name": "credential", "mountPath": str(PurePosixPath(place).parent), "readOnly": True}]


def volumes(catalog: CatalogConfig, secret: JobsSecret | None, seconds: int) -> list[dict[str, Any]]:
    """A token for the catalog alone, of that life: the cluster's API does not accept one of another audience.

    Or the one key of the Secret; Kubernetes renews the file when the Secret changes.
    """
    if isinstance(catalog.auth, TokenFileAuth):
        token = {"audience": AUDIENCE, "expirationSeconds": seconds, "path": PurePosixPath(catalog.auth.path).name}
        return [{"name": "token", "projected": {"sources": [{"serviceAccountToken": token}]}}]
    scheme, place = _place(catalog, secret)
    if secret is None or scheme != "file":
        return []
    items = [{"key": secret.key, "path": PurePosixPath(place).name}]
    return [{"name": "credential", "secret": {"secretName": secret.name, "items": items}}]


def _place(catalog: CatalogConfig, secret: JobsSecret | None) -> tuple[str, str]:
    scheme, _, place = ((_reference(catalog.auth) if secret else None) or "").partition(":")
    return scheme, place


def _reference(auth: CatalogAuth) -> str | None:
    """Where jobs read the secret that their proof needs."""
    if isinstance(auth, ClientCredentialsAuth):
        return auth.client_secret
    return auth.token if isinstance(auth, TokenAuth) else None
