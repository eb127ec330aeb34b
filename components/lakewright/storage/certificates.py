"""Certificates of a custom certificate authority, as PEM text in a spec."""

from __future__ import annotations

import re
import ssl
from typing import Annotated

from pydantic import AfterValidator

_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----", re.DOTALL)


def _certificates(value: str) -> str:
    """Return the certificates of a PEM text without anything else."""
    blocks = list(_BLOCK.finditer(value))
    if any(block[1] != "CERTIFICATE" for block in blocks):
        # The message must not repeat the value, which may be a private key.
        raise ValueError("expected certificates only; found another kind of PEM block, which may be a secret")
    if not blocks:
        raise ValueError("expected the certificates of an authority in PEM (`-----BEGIN CERTIFICATE-----`)")
    text = "\n".join(block[0] for block in blocks) + "\n"
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("expected certificates in PEM; at least one of them cannot be read") from None
    return text


Certificates = Annotated[str, AfterValidator(_certificates)]
"""Certificates in PEM, without private keys."""
