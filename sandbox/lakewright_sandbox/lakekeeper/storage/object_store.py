"""Interface of object stores: objects by their URI, and what the server needs to vend access to a location."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError


class StorageError(ApiError):
    """A store refused a call or could not be reached. The error's type is the kind of failure."""

    def __init__(self, kind: str, message: str) -> None:
        """Set the kind of failure and the message."""
        super().__init__({"NotFound": 400, "Unexpected": 500}.get(kind, 412), kind, message)


class ObjectStore(Protocol):
    """Objects by their URI. Methods raise `StorageError`."""

    def write(self, uri: str, body: bytes) -> None:
        """Write an object."""
        ...

    def read(self, uri: str) -> bytes:
        """Return the content of an object."""
        ...

    def delete(self, uri: str) -> None:
        """Delete an object."""
        ...

    def list(self, uri: str) -> Iterator[str]:
        """Yield the URIs under a location, which is taken as a directory."""
        ...

    def is_empty(self, uri: str) -> bool:
        """Return whether there is no object under a location."""
        ...

    def delete_under(self, uri: str) -> int:
        """Delete all objects under a location. Return their number."""
        ...


@dataclass(frozen=True)
class VendedAccess:
    """Access to one location."""

    objects: ObjectStore
    """The location with the vended credential."""
    config: dict[str, str] = field(repr=False)
    """Properties for clients, without the endpoint that renews them."""
    refresh_key: str
    """Property for the endpoint that renews them."""


KIND_OF_STATUS = {
    401: "PermissionDenied",
    403: "PermissionDenied",
    404: "NotFound",
    408: "RequestTimeout",
    504: "RequestTimeout",
    409: "ConditionNotMatch",
    412: "ConditionNotMatch",
    429: "RateLimited",
    503: "ServiceUnavailable",
}
"""Kinds of failures by HTTP status. Sources: `adls_error.rs` and `gcs_error.rs` of Lakekeeper 0.13.3."""


def build_storage_error(service: str, status: int, uri: str, detail: str) -> StorageError:
    """Return the error for a response of ADLS or GCS."""
    kind = KIND_OF_STATUS.get(status, "Unexpected")
    return StorageError(kind, f"IO error at `{uri}`: {service} HTTP {status} - {detail}")
