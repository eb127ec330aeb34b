"""The passphrase secrets manager: AES-256-GCM with a key that PBKDF2 derives from the stack's passphrase."""

from __future__ import annotations

import base64
import hmac
import os
import threading
from binascii import Error as Base64Error
from functools import cache
from pathlib import Path

from lakewright_engine.model.errors import SecretsError, UnsupportedStateError

ROUNDS = 1_000_000
SALT_BYTES = 8
NONCE_BYTES = 12
KEY_BYTES = 32
PROOF = "pulumi"
"""The plaintext at the end of every salt, with which the passphrase is checked."""

VARIABLES = "PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE"


def passphrase() -> str | None:
    """Return the passphrase in the environment, or None. An empty passphrase is valid, as for the Pulumi CLI."""
    phrase = os.environ.get("PULUMI_CONFIG_PASSPHRASE")
    if phrase is not None:
        return phrase
    file = os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE")
    if not file:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        message = f"PULUMI_CONFIG_PASSPHRASE_FILE is {file}, which cannot be read: {error}"
        raise SecretsError(message) from error


def refuse_other_providers(provider: str, stack: str) -> None:
    """Raise UnsupportedStateError for a secrets provider other than the passphrase."""
    if provider not in ("", "default", "passphrase"):
        message = (
            f"stack '{stack}' uses the secrets provider '{provider.partition('?')[0]}'; the embedded engine supports "
            "only the passphrase provider. Use --engine pulumi, or change the provider with "
            "`pulumi stack change-secrets-provider passphrase`"
        )
        raise UnsupportedStateError(message)


class PassphraseManager:
    """Encrypts and decrypts a stack's secrets. The key is derived at its first use, once per process and salt."""

    kind = "passphrase"

    def __init__(self, salt: str, stack: str, key: _Key) -> None:
        """Use the key of a salt."""
        self.salt = salt
        """`v1:<salt>:v1:<nonce>:<proof>`, as in `encryptionsalt` of Pulumi.<stack>.yaml and in the checkpoint."""
        self._stack = stack
        self._key = key

    @classmethod
    def from_salt(cls, salt: str, stack: str) -> PassphraseManager:
        """Return the manager of a stack with a salt. The passphrase is not needed until a secret is used."""
        return cls(salt, stack, _get_key(salt, passphrase()))

    @classmethod
    def create(cls, stack: str) -> PassphraseManager:
        """Return a manager with a new salt, for a stack that has none. The passphrase is needed."""
        phrase = passphrase()
        if phrase is None:
            raise SecretsError(
                f"stack '{stack}' needs a passphrase that encrypts its secrets: choose one and set {VARIABLES} "
                "(for example `export PULUMI_CONFIG_PASSPHRASE_FILE=FILE`)"
            )
        salt = os.urandom(SALT_BYTES)
        raw = _derive(phrase, salt)
        text = f"v1:{base64.b64encode(salt).decode()}:{_encrypt(raw, PROOF)}"
        key = _get_key(text, phrase)
        key.preset(raw)
        return cls(text, stack, key)

    def prepare(self) -> None:
        """Start to derive the key in the background, which takes a fifth of a second."""
        self._key.start()

    def unlock(self) -> None:
        """Raise SecretsError if the passphrase is missing or wrong."""
        self._key.get(self._stack)

    def encrypt(self, plaintext: str) -> str:
        """Return `v1:<nonce>:<ciphertext>`, different at each call."""
        return _encrypt(self._key.get(self._stack), plaintext)

    def derive_key(self, purpose: str) -> bytes:
        """Return a key for another purpose than encryption. It does not reveal the key of the secrets."""
        return hmac.digest(self._key.get(self._stack), purpose.encode(), "sha256")

    def decrypt(self, ciphertext: str) -> str:
        """Return the plaintext. Raise SecretsError if the ciphertext is not one of this key."""
        plaintext = _decrypt(self._key.get(self._stack), ciphertext)
        if plaintext is None:
            message = (
                f"a secret of stack '{self._stack}' cannot be decrypted: it is damaged or belongs to another stack"
            )
            raise SecretsError(message)
        return plaintext


class _Key:
    """The derived key of a salt, verified against the salt's proof at its first use."""

    def __init__(self, salt: str, phrase: str | None) -> None:
        self._salt = salt
        self._phrase = phrase
        self._raw: bytes | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def preset(self, raw: bytes) -> None:
        self._raw = raw

    def start(self) -> None:
        if self._raw is None and self._thread is None and self._phrase is not None and _split(self._salt):
            self._thread = threading.Thread(target=self._derive_key, name="passphrase-key", daemon=True)
            self._thread.start()

    def get(self, stack: str) -> bytes:
        if self._phrase is None:
            raise _no_passphrase(stack)
        if _split(self._salt) is None:
            message = f"the encryption salt of stack '{stack}' is invalid: expected v1:<salt>:v1:<nonce>:<ciphertext>"
            raise SecretsError(message)
        raw = self._derive_key()
        if not raw:
            message = f"incorrect passphrase for stack '{stack}'; it is taken from {VARIABLES}"
            raise SecretsError(message)
        return raw

    def _derive_key(self) -> bytes:
        """Return the key; empty if the passphrase is wrong."""
        with self._lock:
            if self._raw is None:
                salt, proof = _split(self._salt) or (b"", "")
                raw = _derive(self._phrase or "", salt)
                self._raw = raw if _decrypt(raw, proof) == PROOF else b""
            return self._raw


@cache
def _get_key(salt: str, phrase: str | None) -> _Key:
    return _Key(salt, phrase)


def _no_passphrase(stack: str) -> SecretsError:
    return SecretsError(f"stack '{stack}' has encrypted values; set its passphrase with {VARIABLES}")


def _split(salt: str) -> tuple[bytes, str] | None:
    version, _, payload = salt.partition(":")
    encoded, _, proof = payload.partition(":")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except Base64Error:
        return None
    return (raw, proof) if version == "v1" and raw and proof else None


def _derive(phrase: str, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 - needed for secrets only
    from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC  # noqa: PLC0415 - half the time of hashlib's

    return PBKDF2HMAC(SHA256(), KEY_BYTES, salt, ROUNDS).derive(phrase.encode())


def _encrypt(key: bytes, plaintext: str) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - needed for secrets only

    nonce = os.urandom(NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, plaintext.encode(), None)
    return f"v1:{base64.b64encode(nonce).decode()}:{base64.b64encode(sealed).decode()}"


def _decrypt(key: bytes, ciphertext: str) -> str | None:
    """Return the plaintext; None if the ciphertext is not one of this key."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    parts = ciphertext.split(":")
    if len(parts) != 3 or parts[0] != "v1":
        return None
    try:
        nonce, sealed = (base64.b64decode(part, validate=True) for part in parts[1:])
        return AESGCM(key).decrypt(nonce, sealed, None).decode()
    except (Base64Error, ValueError, InvalidTag):
        return None
