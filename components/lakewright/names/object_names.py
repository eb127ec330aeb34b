"""Names of a tenant's objects on Kubernetes and AWS, and names that computing units must not use."""

from __future__ import annotations

DENY_ALL = "deny-all"
"""NetworkPolicy that closes the namespace."""

MAINTENANCE = "maintenance"
"""CronJob of the maintenance jobs, with its ServiceAccount and NetworkPolicy."""

DEFAULT_SERVICE_ACCOUNT = "default"
"""ServiceAccount that Kubernetes makes in each namespace; pods without another one run as it."""


LONGEST_ROLE_NAME = 64
"""Characters that IAM allows in the name of a role."""


def role_name(tenant: str, warehouse: str) -> str:
    """Return the name of a warehouse's role. It is unique, as neither part contains a dot."""
    return f"lakewright.{tenant}.{warehouse}"


def namespace_name(tenant: str) -> str:
    """Return the name of the namespace that holds a tenant's objects."""
    return f"tenant-{tenant}"


def catalog_name(owner: str) -> str:
    """Return the name of the ConfigMap with the catalog configuration of a unit or of the maintenance jobs."""
    return f"{owner}-catalog"


def names_of_tenant(tenant: str) -> frozenset[str]:
    """Return the names of a tenant's objects other than those of its units."""
    return frozenset({namespace_name(tenant), DENY_ALL, MAINTENANCE, catalog_name(MAINTENANCE)})


def reserved_names(tenant: str) -> frozenset[str]:
    """Return the names that no unit may have: the unit's object would replace another one of that name."""
    return names_of_tenant(tenant) | {DEFAULT_SERVICE_ACCOUNT}
