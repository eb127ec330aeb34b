"""ConfigFormat: how a format renders the catalog configuration of jobs, and which engine reads the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from lakewright_spark.catalog import CatalogConfig, Delegation
from lakewright_spark.catalog.warehouse import StorageKind

AuthKind = Literal["none", "client-credentials", "token"]

ALL_AUTH: frozenset[AuthKind] = frozenset({"none", "client-credentials", "token"})


@dataclass(frozen=True)
class EngineFacts:
    """Facts about an engine that reads a format. `docs/reference/engines.md` lists them."""

    title: str
    version: str
    """Version without `--engine-version`."""
    secrets: str
    """How a configuration refers to a secret, for the documentation."""
    refreshes_since: str | None
    """First version that requests new vended credentials during a job; empty: all versions; None: no version."""
    refresh: str
    """Refresh of vended credentials, for the documentation."""
    tested: str
    """How the format is tested, for the documentation."""
    oldest: str = ""
    """Oldest supported version; empty: all versions."""
    oldest_reason: str = ""
    delegations: frozenset[Delegation] = frozenset({"vended"})
    storages: frozenset[StorageKind] = frozenset({"s3"})
    """Storages whose vended credentials the engine can use."""
    auth_kinds: frozenset[AuthKind] = ALL_AUTH
    has_audience: bool = False
    """Whether the engine sends an audience with its request for a token."""
    default_scope: str = ""
    """Scope that the engine requests unless the configuration has a scope, even an empty scope."""
    refreshing: str = ""
    """Classes of this project that `--refreshing` uses; empty: the engine cannot load classes."""
    advice: tuple[str, ...] = ()
    """Advice for users, in sentences without a full stop."""


@dataclass(frozen=True)
class ConfigRequest:
    """The configuration of jobs, and the options of `lakewright config`."""

    config: CatalogConfig
    version: str = ""
    refreshing: bool = False
    """Whether the configuration may load classes of this project."""
    job_seconds: int | None = None
    """Duration of the longest job."""


def _list_nothing(_request: ConfigRequest) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class ConfigFormat:
    """A format that engines read."""

    render: Callable[[ConfigRequest], Mapping[str, str]]
    """Returns text by file name. It has references to credentials, never the credentials."""
    describe_omissions: Callable[[ConfigRequest], tuple[str, ...]] = _list_nothing
    """Returns what the format cannot express, and which variables it needs, for notes on standard error."""
    engine: EngineFacts | None = None
    """The engine. None: the format is for jobs of this project."""
    comment: str = "#"
    """Beginning of a comment; empty if the format has no comments."""
    list_problems: Callable[[ConfigRequest], tuple[str, ...]] = _list_nothing
    """Returns why the reader cannot use the configuration, each with a way out, beside what `engine` excludes."""
