"""Read PEM files of the platform, and refuse a server certificate that is a certificate authority."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509

from lakewright.validation.problems import Problem

_PRIVATE = "PRIVATE KEY"


def read_pem(root: Path, path: str, setting: str) -> tuple[str, list[Problem]]:
    """Return the text of a file of certificates, and its problems. Relative paths are relative to `root`."""
    try:
        text = (root / Path(path).expanduser()).read_text(encoding="utf-8")
        certificates = x509.load_pem_x509_certificates(text.encode())
    except OSError as error:
        return "", [Problem(setting, f"cannot be read: {type(error).__name__}", repr(path))]
    except (ValueError, UnicodeDecodeError):
        return "", [Problem(setting, "expected a PEM file of certificates", repr(path))]
    if _PRIVATE in text:
        return "", [
            Problem(setting, "contains a private key, which must not be in a ConfigMap or Secret of certificates")
        ]
    return text, [] if certificates else [Problem(setting, "expected a PEM file of certificates", repr(path))]


def find_server_certificate_problems(pem: str, setting: str) -> list[Problem]:
    """Refuse a certificate that is a certificate authority. Clients based on rustls refuse it (CaUsedAsEndEntity)."""
    leaf = x509.load_pem_x509_certificates(pem.encode())[0]
    try:
        is_authority = leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return []
    if not is_authority:
        return []
    reason = (
        "expected the certificate of a server; the first certificate is a certificate authority, which Lakekeeper's"
        " clients refuse (CaUsedAsEndEntity). Issue a server certificate with it"
    )
    return [Problem(setting, reason)]
