"""ConfigFormat: how a format renders the catalog configuration of jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakewright_spark.catalog import CatalogConfig


def _find_no_problem(_config: CatalogConfig) -> str:
    return ""


@dataclass(frozen=True)
class ConfigFormat:
    """A format that engines read."""

    render: Callable[[CatalogConfig], str]
    """Returns the text. It has references to credentials, never the credentials."""
    describe_omissions: Callable[[CatalogConfig], str] = _find_no_problem
    """Returns what the format cannot express of a configuration, for a note on standard error; empty if nothing."""
