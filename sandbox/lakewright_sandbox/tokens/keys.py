"""The key that signs tokens, kept in a file, and its public half as a JWK set."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from jwt.algorithms import ECAlgorithm

from lakewright_sandbox.errors import CredentialsFileError
from lakewright_sandbox.runtime.credentials import write_private

ALGORITHM = "ES256"


class SigningKey:
    """An elliptic-curve key (P-256). Its id is a digest of its public half."""

    def __init__(self, private: ec.EllipticCurvePrivateKey | None = None) -> None:
        """Use a private key, by default a new key."""
        self._private = private or ec.generate_private_key(ec.SECP256R1())
        public = self._private.public_key()
        self.id = hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()[:16]
        self._jwk = ECAlgorithm(ECAlgorithm.SHA256).to_jwk(public, as_dict=True)

    @classmethod
    def load_or_create(cls, file: Path) -> SigningKey:
        """Return the key in a file; create it if it is missing. Raises CredentialsFileError for any other content."""
        try:
            private_key = load_pem_private_key(file.read_bytes(), password=None)
        except FileNotFoundError:
            key = cls()
            key.write(file)
            return key
        except (ValueError, TypeError) as error:
            raise _unusable(file, type(error).__name__) from None
        if not isinstance(private_key, ec.EllipticCurvePrivateKey):
            raise _unusable(file, "another type of key")
        return cls(private_key)

    def write(self, file: Path) -> None:
        """Write the private key to a file, readable by its owner alone."""
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_private(file, text)

    def sign(self, claims: dict[str, Any]) -> str:
        """Return a signed JWT with these claims."""
        return jwt.encode(claims, self._private, algorithm=ALGORITHM, headers={"kid": self.id})

    def public_set(self) -> dict[str, Any]:
        """Return the public key as a JWK set."""
        return {"keys": [self._jwk | {"kid": self.id, "use": "sig", "alg": ALGORITHM}]}


def _unusable(file: Path, actual: str) -> CredentialsFileError:
    return CredentialsFileError(
        f"{file}: expected an EC private key in PEM, found {actual}. Delete it to get a new key."
    )
