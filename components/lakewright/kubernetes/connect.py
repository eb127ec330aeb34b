"""Access to Spark Connect of computing units: the token of clients and the certificate, both from mounted Secrets."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from lakewright.kubernetes.jobs_identity import JobsSecret
from lakewright.names.object_names import namespace_name
from lakewright.spec.computing_unit import ComputingUnitSpec
from lakewright.validation.strict_model import StrictModel

TOKEN_DIR = "/var/run/secrets/lakewright/connect"  # noqa: S105
"""Folder of the pod with the token of clients, in the file `token`."""
TLS_DIR = "/var/run/secrets/lakewright/tls"
"""Folder of the pod with `tls.crt` and `tls.key`."""

_TOKEN = "token"  # noqa: S105
_READABLE_BY_GROUP = 0o440
"""The pod's `fsGroup` is the group of its Secrets' files."""
_SUBDOMAIN = "computing-units"
"""Headless Service by which pods have names of their own."""
_DAYS_90, _DAYS_30 = "2160h", "720h"

ObjectName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]


class CertificateIssuer(StrictModel):
    """An issuer of cert-manager."""

    name: ObjectName
    kind: Literal["Issuer", "ClusterIssuer"] = "ClusterIssuer"


class ConnectAccess(StrictModel):
    """How clients reach Spark Connect in computing units with runtime `spark`.

    Outside trials, TLS is required: Spark's clients in other pods send their token with TLS only. Without TLS, clients
    connect through `kubectl port-forward`.
    """

    token_secret: JobsSecret | None = None
    """Secret in each tenant's namespace with the token of clients. Default: the stack makes a random token for each
    unit, which is encrypted in its state, and puts it under `token` into the Secret UNIT-connect."""
    tls_secret: ObjectName | None = None
    """Secret in each tenant's namespace with `tls.crt` and `tls.key` (PKCS #8) for the names of its units."""
    issuer: CertificateIssuer | None = None
    """Issuer of cert-manager that makes a certificate for each unit, in the Secret UNIT-tls."""

    @model_validator(mode="after")
    def _one_certificate(self) -> ConnectAccess:
        if self.tls_secret and self.issuer:
            raise ValueError("expected either `tls_secret` or `issuer`, found both")
        return self

    @property
    def has_tls(self) -> bool:
        """Return whether units serve with TLS."""
        return self.tls_secret is not None or self.issuer is not None


NO_TLS = ConnectAccess()
"""A token of the stack, and no certificate."""


def find_mistake(unit_runtime: object, access: ConnectAccess, *, trial: bool) -> str | None:
    """Return why clients could not reach a unit; None if they can."""
    if unit_runtime != "spark" or trial or access.has_tls:
        return None
    return (
        "expected `tls_secret` or `issuer`: clients in other pods send the token of Spark Connect with TLS only. Name a"
        " Secret with tls.crt and tls.key or an issuer of cert-manager, or set `kubernetes.trial: true` in the"
        " environment of a trial, where clients connect through `kubectl port-forward`"
    )


def command(unit: ComputingUnitSpec, access: ConnectAccess = NO_TLS) -> list[str]:
    """Return the command of a unit's container; empty for the image's own command. It has no secret."""
    if unit.runtime != "spark":
        return []
    arguments = ["lakewright-spark", "connect-server", "--token-file", f"{TOKEN_DIR}/{_TOKEN}"]
    return [*arguments, *(["--tls", TLS_DIR] if access.has_tls else [])]


def mounts(unit: ComputingUnitSpec, access: ConnectAccess = NO_TLS) -> list[dict[str, Any]]:
    """Return the mounts of a unit's container."""
    if unit.runtime != "spark":
        return []
    token = {"name": "connect-token", "mountPath": TOKEN_DIR, "readOnly": True}
    return [token, *([{"name": "connect-tls", "mountPath": TLS_DIR, "readOnly": True}] if access.has_tls else [])]


def volumes(unit: ComputingUnitSpec, access: ConnectAccess = NO_TLS) -> list[dict[str, Any]]:
    """Return the volumes of a unit's pod. Kubernetes renews the files when the Secrets change."""
    if unit.runtime != "spark":
        return []
    token = access.token_secret or JobsSecret(name=format_token_secret_name(unit), key=_TOKEN)
    sources = {"connect-token": {"secretName": token.name, "items": [{"key": token.key, "path": _TOKEN}]}}
    if name := _tls_name(unit, access):
        sources["connect-tls"] = {"secretName": name}
    return [
        {"name": volume, "secret": {**source, "defaultMode": _READABLE_BY_GROUP}} for volume, source in sources.items()
    ]


def secret_names(unit: ComputingUnitSpec, access: ConnectAccess = NO_TLS) -> frozenset[str]:
    """Return the names of the Secrets that a unit's pod mounts for Spark Connect."""
    return frozenset(volume["secret"]["secretName"] for volume in volumes(unit, access))


def format_token_secret_name(unit: ComputingUnitSpec) -> str:
    """Return the name of the Secret with the token that the stack makes."""
    return f"{unit.name}-connect"


def encode_token_data(token: str) -> dict[str, str]:
    """Return the data of the Secret with a token."""
    return {_TOKEN: base64.b64encode(token.encode()).decode()}


def certificate_spec(tenant: str, unit: ComputingUnitSpec, issuer: CertificateIssuer) -> dict[str, Any]:
    """Return the spec of cert-manager's Certificate of a unit, for the names of its Services."""
    namespace = namespace_name(tenant)
    hosts = [f"{unit.name}.{namespace}", f"{unit.name}.{_SUBDOMAIN}.{namespace}"]
    names = [unit.name, *hosts, *(f"{host}.svc{domain}" for host in hosts for domain in ("", ".cluster.local"))]
    return {
        "secretName": f"{unit.name}-tls",
        "dnsNames": names,
        "duration": _DAYS_90,
        "renewBefore": _DAYS_30,
        "usages": ["digital signature", "key encipherment", "server auth"],
        # Java reads no other encoding.
        "privateKey": {"algorithm": "ECDSA", "size": 256, "encoding": "PKCS8", "rotationPolicy": "Always"},
        "issuerRef": {"group": "cert-manager.io", "kind": issuer.kind, "name": issuer.name},
    }


def _tls_name(unit: ComputingUnitSpec, access: ConnectAccess) -> str | None:
    return f"{unit.name}-tls" if access.issuer else access.tls_secret
