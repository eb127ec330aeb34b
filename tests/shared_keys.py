"""Share keys of secrets among the forks of a process: each key is derived once and then read from a file.

A command derives the key of its stack's secrets from the passphrase for a quarter of a second of processor time.
`make test-all` derives the key in each command.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

from lakewright_engine.state import secrets

derive = secrets._derive


def share_keys(folder: Path) -> None:
    """Keep the derived keys of this process and its forks in a folder from now on."""
    secrets._derive = functools.partial(derive_once, folder)


def derive_once(folder: Path, phrase: str, salt: bytes) -> bytes:
    """Return the key of a passphrase and a salt."""
    file = folder / f"{hashlib.sha256(salt + phrase.encode()).hexdigest()}.key"
    try:
        return file.read_bytes()
    except FileNotFoundError:
        key = derive(phrase, salt)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_bytes(key)
    new.replace(file)
    return key
