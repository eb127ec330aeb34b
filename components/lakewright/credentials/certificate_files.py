"""Files of certificates that are given as text: clients of S3 take the path of a file."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path


def write_certificate_file(certificates: str) -> Path:
    """Write certificates in PEM to a file of the user's cache, and return its path. The content decides its name."""
    # In a folder that other users may write to, they could change the authorities that the stack trusts.
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakewright"
    file = folder / f"ca-{hashlib.sha256(certificates.encode()).hexdigest()[:32]}.pem"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, new = tempfile.mkstemp(dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(certificates)
        Path(new).replace(file)
    return file
