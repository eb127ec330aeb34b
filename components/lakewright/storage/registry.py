"""The storage backends. A new backend is a module beside this module and a member of `StorageSpec`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast, get_args

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from lakewright.storage.adls import AdlsStorage
from lakewright.storage.aws import AwsStorage
from lakewright.storage.backend import StorageBackend
from lakewright.storage.existing import ExistingStorage
from lakewright.storage.gcs import GcsStorage
from lakewright.storage.restricted_fields import config_key_paths, endpoint_paths, reference_paths
from lakewright.storage.s3 import S3Storage

_Models = AwsStorage | S3Storage | ExistingStorage | AdlsStorage | GcsStorage

BACKENDS: Mapping[str, type[StorageBackend]] = {
    get_args(model.model_fields["backend"].annotation)[0]: model for model in get_args(_Models)
}
"""Backends by the name that a spec gives them."""

ENDPOINT_PATHS = frozenset(path for model in BACKENDS.values() for path in endpoint_paths(model))
"""Fields of a storage, dotted, that name endpoints."""
REFERENCE_PATHS = frozenset(path for model in BACKENDS.values() for path in reference_paths(model))
"""Fields of a storage, dotted, that name secrets by reference."""
CONFIG_KEY_PATHS = frozenset(path for model in BACKENDS.values() for path in config_key_paths(model))
"""Fields of a storage, dotted, that hold text or `config:KEY`."""


def find_backend(storage: Mapping[str, Any]) -> type[StorageBackend] | None:
    """Return the backend that a storage, as written, names; None if there is none of that name."""
    name = storage.get("backend")
    return BACKENDS.get(name) if isinstance(name, str) else None


def creates_bucket(storage: Mapping[str, Any]) -> bool:
    """Return whether the stack makes the bucket of a storage, as written. An unknown backend says so by `create`."""
    backend = find_backend(storage)
    return backend.is_made(storage) if backend else bool(storage.get("create"))


def _check_backend(value: Any) -> Any:
    if isinstance(value, Mapping) and find_backend(cast(Mapping[str, Any], value)) is None:
        *first, last = [f"'{name}'" for name in BACKENDS]
        names = f"{', '.join(first)} or {last}"
        raise PydanticCustomError("unknown_backend", "expected {names}", {"names": names})
    return cast(Any, value)


StorageSpec = Annotated[_Models, Field(discriminator="backend"), BeforeValidator(_check_backend)]
"""A storage of a spec. An unknown backend is refused by name."""
