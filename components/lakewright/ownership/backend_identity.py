"""Identity of the backend that has the states of a project, as archives record it.

A destroyed stack leaves no record id, and a stack of the same name may exist in another backend.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

VARIABLE = "LAKEWRIGHT_STATE_BACKEND"
"""Environment variable of a run's providers: the identity of the backend, which `lakewright` sets."""
_URL = "PULUMI_BACKEND_URL"
"""Variable with the backend's URL. Pulumi reads it, and a plain `pulumi destroy` may have it."""


def compute_identity(url: str) -> str:
    """Return the identity of a backend: a digest, as every user of the server can read the record of an archive.

    Options that do not choose the store, such as the region, do not count.

    >>> compute_identity("s3://states/acme/?region=eu-west-1") == compute_identity("s3://states/acme")
    True
    >>> compute_identity("s3://states?endpoint=minio:9000") == compute_identity("s3://states")
    False
    """
    parts = urlsplit(url.strip())
    path = parts.path
    if parts.scheme == "file":
        path = str(Path(f"{parts.netloc}{path}").expanduser().absolute())
    location = f"{parts.scheme}://{'' if parts.scheme == 'file' else parts.netloc}{path.rstrip('/')}"
    endpoint = parse_qs(parts.query).get("endpoint", [""])[0]
    return hashlib.sha256(f"{location} {endpoint}".encode()).hexdigest()[:32]


def find_running_backend() -> str | None:
    """Return the identity of the backend of the run that this provider serves; None if it is not known."""
    if identity := os.environ.get(VARIABLE):
        return identity
    url = os.environ.get(_URL)
    return compute_identity(url) if url else None
