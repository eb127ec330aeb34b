"""The interface of a scanner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
