"""Names of the Kubernetes objects of a tenant. Those that are not a unit's own are reserved: no unit may have them."""

from __future__ import annotations

DENY_ALL = "deny-all"
"""NetworkPolicy that closes the namespace."""

MAINTENANCE = "maintenance"
"""CronJob of the maintenance jobs, its ServiceAccount and its NetworkPolicy."""

DEFAULT_SERVICE_ACCOUNT = "default"
"""ServiceAccount that Kubernetes makes in each namespace, and other pods there run as."""


def namespace_name(tenant: str) -> str:
    """Return the name of the namespace that holds a tenant's objects."""
    return f"tenant-{tenant}"


def catalog_name(owner: str) -> str:
    """Return the name of the ConfigMap with the catalog configuration of a unit or of the maintenance jobs."""
    return f"{owner}-catalog"


def names_of_tenant(tenant: str) -> frozenset[str]:
    """Return the names of the objects that a tenant has beside those of its units."""
    return frozenset({namespace_name(tenant), DENY_ALL, MAINTENANCE, catalog_name(MAINTENANCE)})


def reserved_names(tenant: str) -> frozenset[str]:
    """Return the names that no unit of a tenant may have: an object of that name would be replaced by the unit's."""
    return names_of_tenant(tenant) | {DEFAULT_SERVICE_ACCOUNT}
