"""Errors of discovery.

DiscoveryError   something that exists cannot be read or declared
"""

from __future__ import annotations


class DiscoveryError(Exception):
    """Something that exists cannot be read or declared. The message names it and what to do."""

    exit_code = 1
