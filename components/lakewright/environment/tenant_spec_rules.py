"""Rules of an environment on what specs may name and take over: deployers apply specs that tenants write."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator

from lakewright.credentials.references import FORMS, SCHEMES, check_reference
from lakewright.names.host_kinds import HostKind, kind_of_host
from lakewright.names.object_names import fill_placeholders
from lakewright.names.types import normalize_endpoint
from lakewright.storage.registry import CONFIG_KEY_PATHS, ENDPOINT_PATHS, REFERENCE_PATHS, find_backend
from lakewright.validation.documents import as_mapping, list_items
from lakewright.validation.problems import Problem
from lakewright.validation.strict_model import StrictModel

_PATTERN = re.compile(r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9.*-]+)(?::(?P<port>\d{1,5}|\*))?/?")
_PLAIN_VAULT_REFERENCE = re.compile(r"vault:[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*#\S+")
"""Matches references with one spelling: Vault paths become part of a URL, which has queries and escapes."""
_LOCATION_PATTERN = re.compile(r"adls:[a-z0-9{}]+/[a-z0-9{}-]*\*?|gcs:[a-z0-9{}._-]*\*?")
_PORTS = {"http": "80", "https": "443"}


def _prefix(value: str) -> str:
    scheme, colon, pattern = value.partition(":")
    if not colon or scheme not in SCHEMES:
        raise ValueError(
            f"expected the beginning of a reference with its colon, such as `config:` or `env:STORE_` ({FORMS})"
        )
    if ".." in re.split(r"[/#]", pattern):
        raise ValueError("expected a prefix without `..`")
    return value


def _endpoint_pattern(value: str) -> str:
    value = value.lower()
    match = _PATTERN.fullmatch(value)
    if match is None:
        raise ValueError("expected `https://HOST:PORT`; the host may be `*` or begin with `*.`, the port may be `*`")
    host = match["host"]
    if "*" in host and (host.count("*") > 1 or not (host == "*" or host.startswith("*."))):
        raise ValueError("expected a `*` in place of the whole host or of its first labels only")
    if "*" not in host and kind_of_host(host) is HostKind.METADATA:
        raise ValueError(f"expected the address of a storage service; {host} is {HostKind.METADATA.value}")
    return value.rstrip("/")


def _location_pattern(value: str) -> str:
    if not _LOCATION_PATTERN.fullmatch(value):
        raise ValueError("expected `adls:ACCOUNT/CONTAINER` or `gcs:BUCKET`; the last character may be `*`")
    return value


ReferencePrefix = Annotated[str, AfterValidator(_prefix)]
EndpointPattern = Annotated[str, AfterValidator(_endpoint_pattern)]
LocationPattern = Annotated[str, AfterValidator(_location_pattern)]


class ForbiddenField(StrEnum):
    """Fields of specs that an environment can forbid: they reach objects that the stack did not create."""

    ADOPT = "adopt"
    """`adopt: true` of the tenant, a warehouse or a table."""
    PROJECT_ID = "project.id"
    """The id of a project that is not named like the tenant."""
    SHARED_PROJECT = "project.shared"
    """`shared: true` of the project, which may contain warehouses of other tenants."""


class TenantSpecRules(StrictModel):
    """The names that specs may use. Everything else is refused before any call."""

    forbid: list[ForbiddenField] = []
    """Fields that no spec may have: `adopt`, which takes over existing objects, `project.id`, which names a project
    that may be another tenant's, and `project.shared`, which puts warehouses beside warehouses of others."""

    references: list[ReferencePrefix] = ["config:"]
    """Prefixes of the references to secrets that a spec may name, such as `env:STORE_` or `vault:secret/{tenant}/`.
    `{tenant}` is the tenant's name. `config:` covers keys of the project; keys of another namespace need
    `config:NAMESPACE:`. No spec may name a reference that the environment itself uses."""
    endpoints: list[EndpointPattern] = []
    """Addresses of S3-compatible stores that a spec may name: `https://store.example:9000`, `https://*.store.example`
    or `https://*`. A bare `*` matches names of three labels or more outside the cluster. Names of two labels, such as
    `store.example`, have to be listed in full or by `*.example`; IP addresses, names of the cluster and this machine
    in full. The port `*` matches any port. Metadata services are always refused. A listed name may resolve to any
    address: names are compared as text."""

    identity_locations: list[LocationPattern] = []
    """Storage on Azure and Google that a spec may name without a credential, for Lakekeeper's own identity:
    `adls:ACCOUNT/CONTAINER` or `gcs:BUCKET`, where `{tenant}` is the tenant's name and a `*` at the end matches any
    text. That identity reaches the data of all tenants, so each tenant needs locations of its own."""


@dataclass(frozen=True)
class RuleCheck:
    """Finds what a spec must not name. Other checks report values of a wrong type."""

    rules: TenantSpecRules
    environment: str
    """Name of the environment."""
    own_references: Iterable[str] = ()
    """References of the environment itself."""

    def problems(self, document: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield each field, reference and endpoint of a spec, as written, that the environment does not allow."""
        tenant = str(document.get("name"))
        yield from self._find_forbidden_fields(document)
        for name, storage in as_mapping(document.get("storage")).items():
            store = as_mapping(storage)
            references = {path: read_value(store, path) for path in REFERENCE_PATHS}
            references |= {
                path: value
                for path in CONFIG_KEY_PATHS
                if isinstance(value := read_value(store, path), str) and value.startswith("config:")
            }
            for path, value in sorted(references.items()):
                if reason := self._reason_against_reference(value, tenant):
                    yield Problem(f"storage.{name}.{path}", reason)
            for path in sorted(ENDPOINT_PATHS):
                if reason := self._reason_against_endpoint(read_value(store, path)):
                    yield Problem(f"storage.{name}.{path}", reason)
            if reason := self._reason_against_identity(store, tenant):
                yield Problem(f"storage.{name}.credential", reason)

        for path, reference in client_secrets(document):
            if reason := self._reason_against_reference(reference, tenant):
                yield Problem(path, reason)

    def _find_forbidden_fields(self, document: Mapping[str, Any]) -> Iterator[Problem]:
        if ForbiddenField.ADOPT in self.rules.forbid:
            parts = {"": document}
            for key in ("warehouses", "tables", "views"):
                parts |= {f"{key}.{index}.": item for index, item in list_items(document, key)}
            for path, part in parts.items():
                # `false` is the default. A value of another type is a mistake that other checks report.
                if part.get("adopt"):
                    yield Problem(f"{path}adopt", self._reason_against_field("taking over existing objects"))
        if ForbiddenField.PROJECT_ID in self.rules.forbid and read_value(document, "project.id") is not None:
            yield Problem("project.id", self._reason_against_field("naming the id of a project"))
        if ForbiddenField.SHARED_PROJECT in self.rules.forbid and read_value(document, "project.shared"):
            yield Problem("project.shared", self._reason_against_field("sharing a project with other tenants"))

    def _reason_against_field(self, action: str) -> str:
        return (
            f"expected no such field: environment {self.environment} forbids {action} in specs"
            " (`tenant_specs.forbid` of the environment). Remove the field"
        )

    def _reason_against_identity(self, storage: Mapping[str, Any], tenant: str) -> str | None:
        backend = find_backend(storage)
        location = backend.name_identity_location(storage) if backend else None
        patterns = [fill_placeholders(pattern, tenant) for pattern in self.rules.identity_locations]
        if location is None or any(_matches_location(pattern, location) for pattern in patterns):
            return None
        allowed = ", ".join(self.rules.identity_locations) or "none"
        return (
            f"required: without it, Lakekeeper uses its own identity, and environment {self.environment} does not allow"
            f" that for `{location}` (allowed: {allowed}). Name a credential, or list the location in"
            " `tenant_specs.identity_locations` of the environment"
        )

    def _reason_against_reference(self, value: object, tenant: str) -> str | None:
        try:
            reference = check_reference(value) if isinstance(value, str) else None
        except ValueError:
            return None  # the value may be the secret itself
        if reference is None:
            return None
        if any(
            _is_same_secret(reference, fill_placeholders(own_reference, tenant))
            for own_reference in self.own_references
        ):
            return f"expected a secret of the tenant; environment {self.environment} itself uses `{reference}`"
        if reference.startswith("vault:") and not _PLAIN_VAULT_REFERENCE.fullmatch(reference):
            return (
                "expected a reference into Vault whose path has letters, digits, `_`, `.` and `-` between its slashes,"
                f" found `{reference}`"
            )
        if any(_covers(fill_placeholders(prefix, tenant), reference) for prefix in self.rules.references):
            return None
        allowed = ", ".join(f"`{prefix}`" for prefix in self.rules.references) or "none"
        return (
            f"expected a reference that environment {self.environment} allows ({allowed}), found `{reference}`. Run"
            " `lakewright config set --secret KEY` and name `config:KEY`, or list the reference in"
            " `tenant_specs.references` of the environment"
        )

    def _reason_against_endpoint(self, value: object) -> str | None:
        try:
            endpoint = normalize_endpoint(value, keep_path=True) if isinstance(value, str) else None
        except ValueError:
            return None
        if endpoint is None or any(_matches(pattern, endpoint) for pattern in self.rules.endpoints):
            return None
        allowed = ", ".join(self.rules.endpoints) or "none"
        kind = kind_of_host(urlsplit(endpoint).hostname or "")
        if kind is HostKind.METADATA:
            return None  # the spec refuses it
        description = f", which is {kind.value}" if kind in {HostKind.INTERNAL, HostKind.SHORT_NAME} else ""
        return (
            f"expected a store that environment {self.environment} allows ({allowed}), found {endpoint}{description}."
            " List it in `tenant_specs.endpoints` of the environment"
        )


def client_secrets(document: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield path and value of each reference to the secret of an OAuth2 client, as written."""
    owners = {"": document, "maintenance.": as_mapping(document.get("maintenance"))}
    owners |= {f"computing_units.{at}.": unit for at, unit in list_items(document, "computing_units")}
    for prefix, owner in owners.items():
        yield f"{prefix}identity.client_secret", as_mapping(owner.get("identity")).get("client_secret")


def read_value(document: Mapping[str, Any], path: str) -> object:
    """Return the value at a dotted path; None if there is none."""
    value: object = document
    for key in path.split("."):
        value = as_mapping(value).get(key)
    return value


def _covers(prefix: str, reference: str) -> bool:
    if reference.startswith("file:") and _file_path(reference.removeprefix("file:")).startswith("/proc/"):
        return False  # includes the environment of this process, and other files under other names
    prefix, reference = _with_home(prefix), _with_home(reference)
    if not reference.startswith(prefix) or ".." in re.split(r"[/#]", reference.partition(":")[2]):
        return False
    # `config:aws:secretKey` is a setting of the deployer, which the prefix `config:` does not cover.
    scheme, _, key = reference.partition(":")
    return scheme != "config" or ":" not in key.removeprefix(prefix.partition(":")[2])


def _matches(pattern: str, endpoint: str) -> bool:
    allowed, url = _PATTERN.fullmatch(pattern), urlsplit(endpoint)
    if allowed is None or allowed["scheme"] != url.scheme:
        return False
    port = allowed["port"] or _PORTS[url.scheme]
    if port not in {"*", str(url.port or _PORTS[url.scheme])}:
        return False
    host, kind = allowed["host"].strip("[]"), kind_of_host(url.hostname or "")
    if kind is HostKind.METADATA:
        return False
    if "*" not in host:
        return host == url.hostname
    # A short name may be in the cluster, so a bare `*` does not match it.
    kinds = {HostKind.NAME} if host == "*" else {HostKind.NAME, HostKind.SHORT_NAME}
    return kind in kinds and (url.hostname or "").endswith(host.removeprefix("*"))


def _matches_location(pattern: str, location: str) -> bool:
    return location.startswith(pattern[:-1]) if pattern.endswith("*") else location == pattern


def _is_same_secret(reference: str, own_reference: str) -> bool:
    """Return whether two references name the same place, with any key."""
    (scheme, location), (own_scheme, own_location) = _place(reference), _place(own_reference)
    if scheme != own_scheme:
        return False
    # Secrets Manager accepts an ARN with or without the random suffix.
    longer, shorter = sorted((location, own_location), key=len, reverse=True)
    return location == own_location or (scheme == "aws-secretsmanager" and longer.startswith(shorter))


def _place(reference: str) -> tuple[str, str]:
    scheme, _, location = reference.partition(":")
    if scheme == "config":
        return scheme, location.removeprefix("lakewright:")
    if scheme == "env":
        return scheme, location
    if scheme == "file":
        return scheme, _file_path(location)
    path = location.partition("#")[0]
    if scheme == "vault":
        path = unquote(path.partition("?")[0])
    return scheme, posixpath.normpath(path.lstrip("/"))


def _with_home(reference: str) -> str:
    scheme, colon, location = reference.partition(":")
    return scheme + colon + (_expand_home(location) if scheme == "file" else location)


def _file_path(path: str) -> str:
    return os.path.realpath(_expand_home(path))


def _expand_home(path: str) -> str:
    # Path.expanduser would take the last slash from a prefix, and raises for a user that does not exist.
    return os.path.expanduser(path)  # noqa: PTH111
