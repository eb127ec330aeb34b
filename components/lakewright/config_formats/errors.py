"""Exceptions of configuration formats. `lakewright.errors` draws the tree."""

from __future__ import annotations

from lakewright.errors import LakewrightError


class RefusedFormatError(LakewrightError):
    """An engine cannot use the catalog configuration. The message lists the reasons, and the way out of each."""

    exit_code = 2
