"""The interface of a scanner, and the scanners by the prefix of resource types.

A module is loaded when a state has such a resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Protocol

from lakewright.drift.model import Finding
from lakewright.drift.session import ScanSession, StackResource


class Scanner(Protocol):
    """Compares the states of resources with a kind of server."""

    def scan(self, resources: Sequence[StackResource], session: ScanSession) -> Iterable[Finding]:
        """Return differences and problems of the resources of all stacks.

        An error of one server or resource is a problem of the stacks concerned, and never ends the scan.
        """
        ...


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
