"""Placeholders in settings that tenants share."""

from __future__ import annotations

TENANT = "{tenant}"
"""Placeholder of the tenant's name."""


def fill_placeholders(text: str, tenant: str) -> str:
    """Return a setting for a tenant."""
    return text.replace(TENANT, tenant)
