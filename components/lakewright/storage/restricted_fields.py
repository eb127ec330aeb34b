"""Fields of storages whose values the environment must allow: endpoints and references to secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel

from lakewright.credentials.references import check_reference
from lakewright.names.host_kinds import HostKind, kind_of_host
from lakewright.names.types import StorageEndpoint, StsEndpoint


def _reachable(value: str) -> str:
    host = urlsplit(value).hostname or ""
    if not re.fullmatch(r"[a-z0-9.:-]+", host):
        # Clients decode `%31` and full-width digits to characters other than those written.
        raise ValueError("expected a host of letters, digits, `.` and `-`, or an IP address")
    kind = kind_of_host(host)
    if kind is HostKind.METADATA:
        raise ValueError(f"expected the address of a storage service; this is {kind.value}")
    return value


class NamesEndpoint:
    """Marks fields whose values `tenant_specs.endpoints` of the environment must allow."""


TenantEndpoint = Annotated[StorageEndpoint, AfterValidator(_reachable), NamesEndpoint()]
"""Endpoint of a storage service. The environment's `tenant_specs` decides which endpoints a spec may name."""
TenantStsEndpoint = Annotated[StsEndpoint, AfterValidator(_reachable), NamesEndpoint()]


class ConfigKeyOrText:
    """Marks fields that hold plain text, or a reference `config:KEY`."""


def endpoint_paths(model: type[BaseModel]) -> Iterator[str]:
    """Yield the dotted paths of the fields of a model that name endpoints."""
    return (path for path, marks in _marks(model) if any(isinstance(mark, NamesEndpoint) for mark in marks))


def reference_paths(model: type[BaseModel]) -> Iterator[str]:
    """Yield the dotted paths of the fields of a model that always name a secret by reference."""
    return (
        path
        for path, marks in _marks(model)
        if any(isinstance(mark, AfterValidator) and mark.func is check_reference for mark in marks)
    )


def config_key_paths(model: type[BaseModel]) -> Iterator[str]:
    """Yield the dotted paths of the fields of a model that hold text or `config:KEY`."""
    return (path for path, marks in _marks(model) if any(isinstance(mark, ConfigKeyOrText) for mark in marks))


def _marks(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the path of each field, including fields of nested models, with all metadata of its annotation."""
    for name, info in model.model_fields.items():
        path = f"{above}{name}"
        yield path, [*info.metadata, *_metadata(info.annotation)]
        for part in [info.annotation, *get_args(info.annotation)]:
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _marks(part, f"{path}.")


def _metadata(annotation: Any) -> Iterator[Any]:
    yield from getattr(annotation, "__metadata__", ())
    for part in get_args(annotation):
        yield from _metadata(part)
