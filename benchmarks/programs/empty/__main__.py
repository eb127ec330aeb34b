"""Imports what the tenants' program imports, and declares nothing."""

import lakewright.tenant  # noqa: F401
