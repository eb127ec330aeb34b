"""Errors of discovery. `lakewright.errors` draws the tree."""

from __future__ import annotations

from lakewright.errors import LakewrightError


class DiscoveryError(LakewrightError):
    """Something that exists cannot be read or declared. The message names it and what to do."""


class EmptyProjectError(DiscoveryError):
    """A project has no warehouse, so there is nothing to declare."""
