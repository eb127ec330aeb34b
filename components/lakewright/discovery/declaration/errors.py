"""Errors of discovery.

DiscoveryError        something that exists cannot be read or declared
  EmptyProjectError   a project has no warehouse
"""

from __future__ import annotations


class DiscoveryError(Exception):
    """Something that exists cannot be read or declared. The message names it and what to do."""

    exit_code = 1


class EmptyProjectError(DiscoveryError):
    """A project has no warehouse, so there is nothing to declare."""
