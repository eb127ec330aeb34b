"""The tenant whose checks are evaluated: its spec, its servers, and the secrets that they refer to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakewright.client_access.role_documents import AwsSettings
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.spec import TenantSpec


@dataclass(frozen=True)
class CheckTarget:
    """One tenant."""

    stack: str
    spec: TenantSpec
    server: ServerRef
    """The Lakekeeper server, with the identity of the stack."""
    aws: AwsSettings
    """The AWS identity of the stack."""
    resolve: Callable[[str], str]
    """Returns the secret of a reference."""
