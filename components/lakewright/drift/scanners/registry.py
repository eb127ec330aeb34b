"""The scanners by the prefix of resource types. A module is loaded when a state has such a resource."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from lakewright.drift.scanners.scanner import Scanner

SCANNERS: dict[str, str] = {
    "pulumi-python:dynamic/credentials:": "lakewright.drift.scanners.lakekeeper:LakekeeperScanner",
    "pulumi-python:dynamic/lakekeeper:": "lakewright.drift.scanners.lakekeeper:LakekeeperScanner",
    "aws:": "lakewright.drift.scanners.aws:AwsScanner",
    "kubernetes:": "lakewright.drift.scanners.kubernetes:KubernetesScanner",
    # The last prefix matches every type.
    "": "lakewright.drift.scanners.other_types:OtherTypesScanner",
}
"""Prefix of a type token -> `module:class` of its scanner."""


@cache
def find_scanner(resource_type: str) -> str | None:
    """Return `module:class` of the scanner of a resource type; None if there is none."""
    return next((scanner for prefix, scanner in SCANNERS.items() if resource_type.startswith(prefix)), None)


def load_scanner(scanner: str) -> Scanner:
    """Return a new scanner by `module:class`."""
    module, _, name = scanner.partition(":")
    return getattr(import_module(module), name)()
