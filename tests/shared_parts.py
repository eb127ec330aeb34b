"""Share within a worker what libraries load at each use: certificate authorities and descriptions of AWS services.

Tests create thousands of clients. Each client of httpx loads the certificate authorities for 25 ms of processor time,
and each session of boto3 the descriptions of services for 80 ms.
"""

from __future__ import annotations

import functools
import os
import ssl
from typing import Any

import botocore.session
import httpx
from botocore.loaders import create_loader
from httpx._transports import default as httpx_transport

_TRUST_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def share_parts() -> None:
    """Share them from now on."""
    httpx_transport.create_ssl_context = create_ssl_context
    botocore.session.create_loader = functools.cache(create_loader)


def create_ssl_context(verify: Any, cert: Any = None, *, trust_env: bool = True) -> ssl.SSLContext:
    """Return what the function of httpx returns. Contexts with the default authorities are shared."""
    if verify is not True or cert is not None:
        return httpx.create_ssl_context(verify=verify, cert=cert, trust_env=trust_env)
    return _get_ssl_context(tuple(os.environ.get(name) for name in _TRUST_VARIABLES) if trust_env else None)


@functools.cache
def _get_ssl_context(variables: tuple[str | None, ...] | None) -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=variables is not None)
