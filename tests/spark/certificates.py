"""A certificate authority for one test, and a server certificate for 127.0.0.1."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def create_certificates(folder: Path) -> tuple[Path, Path]:
    """Return the paths of two PEM files: the authority's certificate, and the server's certificate with its key."""
    now = datetime.now(UTC)
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])

    def certificate(subject: str, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType) -> bytes:
        name = issuer if key is authority_key else x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        builder = x509.CertificateBuilder(issuer, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
        signed = builder.add_extension(extension, critical=key is authority_key).sign(authority_key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)

    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    private = server_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    authority, server = folder / "authority.pem", folder / "server.pem"
    authority.write_bytes(certificate("", authority_key, x509.BasicConstraints(ca=True, path_length=0)))
    server.write_bytes(certificate("127.0.0.1", server_key, address) + private)
    return authority, server
