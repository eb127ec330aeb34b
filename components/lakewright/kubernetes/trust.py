"""Certificate authorities of the platform in pods: as PEM file, and as truststore for Java."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from lakewright_spark.catalog import CatalogConfig

from lakewright.kubernetes.settings import CaBundle, ClusterSettings
from lakewright.names.object_names import TRUST

if TYPE_CHECKING:
    from cryptography import x509

BUNDLE = "/etc/lakewright-trust/ca.pem"
"""Default path of the PEM file in pods."""
TRUSTSTORE = "/etc/lakewright-trust/truststore.p12"
"""Default path of the truststore in pods."""

_PEM_KEY, _TRUSTSTORE_KEY = "ca.pem", "truststore.p12"
_VOLUME = "trust"


def find_mistake(bundle: CaBundle) -> str | None:
    """Return why the file of a bundle cannot be used; None if it can, or if there is no file."""
    if bundle.file is None:
        return None
    try:
        _load_certificates(bundle.file.read_bytes())
    except (OSError, ValueError) as error:
        reason = type(error).__name__ if isinstance(error, OSError) else str(error)
        return f"expected a PEM file with certificates at {bundle.file}; it cannot be used ({reason})"
    return None


def config_map_content(cluster: ClusterSettings) -> dict[str, Any] | None:
    """Return data of the ConfigMap of the environment's PEM file; None without a file."""
    if cluster.ca_bundle is None or cluster.ca_bundle.file is None:
        return None
    pem = cluster.ca_bundle.file.read_bytes()
    return {
        "data": {_PEM_KEY: pem.decode("ascii", errors="replace")},
        "binaryData": {_TRUSTSTORE_KEY: base64.b64encode(encode_truststore(pem)).decode()},
    }


def encode_truststore(pem: bytes) -> bytes:
    """Return a PKCS 12 truststore of the certificates in a PEM file.

    It has no checksum, so that it is equal at each run: the checksum has a random salt. Java opens it with any
    password, and with none.
    """
    from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12  # noqa: PLC0415 - few have a bundle

    authorities = [
        pkcs12.PKCS12Certificate(certificate, f"authority-{number}".encode())
        for number, certificate in enumerate(_load_certificates(pem))
    ]
    return _strip_checksum(pkcs12.serialize_java_truststore(authorities, NoEncryption()))


def volumes(cluster: ClusterSettings) -> list[dict[str, Any]]:
    """Return the volume of the authorities, if the environment has any."""
    bundle = cluster.ca_bundle
    if bundle is None:
        return []
    if bundle.secret:
        return [{"name": _VOLUME, "secret": {"secretName": bundle.secret}}]
    return [{"name": _VOLUME, "configMap": {"name": bundle.config_map or TRUST}}]


def mounts(catalog: CatalogConfig, cluster: ClusterSettings) -> list[dict[str, Any]]:
    """Return the mounts of PEM file and truststore at the paths that the catalog configuration names."""
    bundle = cluster.ca_bundle
    if bundle is None:
        return []
    keys = (_PEM_KEY, _TRUSTSTORE_KEY) if bundle.file else (bundle.key, bundle.truststore_key)
    paths = (catalog.ca_bundle, catalog.truststore)
    # Single files, so that a folder such as /etc/ssl/certs keeps its other files.
    return [
        {"name": _VOLUME, "mountPath": path, "subPath": key, "readOnly": True}
        for key, path in zip(keys, paths, strict=True)
        if key and path
    ]


def pod_annotations(cluster: ClusterSettings) -> dict[str, str]:
    """Return the annotation that restarts pods when the environment's PEM file changes."""
    if cluster.ca_bundle is None or cluster.ca_bundle.file is None:
        return {}
    return {"lakewright/trust-sha256": hashlib.sha256(cluster.ca_bundle.file.read_bytes()).hexdigest()}


def _load_certificates(pem: bytes) -> list[x509.Certificate]:
    from cryptography import x509  # noqa: PLC0415 - few environments have a bundle

    certificates = x509.load_pem_x509_certificates(pem)
    if not certificates:
        raise ValueError("it has no certificate")
    return certificates


def _strip_checksum(store: bytes) -> bytes:
    """Return a PKCS 12 file (RFC 7292: version, authSafe, macData) without its third part."""
    start, _ = _find_content(store, 0)
    _, version_end = _find_content(store, start)
    _, safe_end = _find_content(store, version_end)
    body = store[start:safe_end]
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return b"\x30" + (bytes([len(body)]) if len(body) < 0x80 else bytes([0x80 | len(size)]) + size) + body


def _find_content(data: bytes, start: int) -> tuple[int, int]:
    """Return begin and end of the content of the DER element at `start`."""
    length, begin = data[start + 1], start + 2
    if length & 0x80:
        octets = length & 0x7F
        length, begin = int.from_bytes(data[begin : begin + octets], "big"), begin + octets
    return begin, begin + length
