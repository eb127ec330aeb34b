"""Script of `command_server`: the warm process of the product, whose commands derive each key of secrets once.

A command derives the key of its stack's secrets from the passphrase for a quarter of a second of processor time. Here a
key is in a file of the worker from then on. `make test-all` derives the key in each command.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from lakewright.warm import process
from lakewright_engine.state import secrets

derive = secrets._derive


def derive_once(phrase: str, salt: bytes) -> bytes:
    """Return the key of a passphrase and a salt."""
    file = FOLDER / f"{hashlib.sha256(salt + phrase.encode()).hexdigest()}.key"
    try:
        return file.read_bytes()
    except FileNotFoundError:
        key = derive(phrase, salt)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_bytes(key)
    new.replace(file)
    return key


if __name__ == "__main__":
    FOLDER = Path(sys.argv[1]).parent
    secrets._derive = derive_once
    process.main()
