"""Names of a tenant's objects on Kubernetes and AWS. Units cannot have those that are not their own."""

from __future__ import annotations

DENY_ALL = "deny-all"
"""NetworkPolicy that closes the namespace."""

MAINTENANCE = "maintenance"
"""CronJob of the maintenance jobs, its ServiceAccount and its NetworkPolicy."""

DEFAULT_SERVICE_ACCOUNT = "default"
"""ServiceAccount that Kubernetes makes in each namespace, and other pods there run as."""


LONGEST_ROLE_NAME = 64
"""Characters that IAM allows in the name of a role."""


def role_name(tenant: str, warehouse: str) -> str:
    """Return the name of a warehouse's role. Neither part may have a dot, so that no two pairs have the same name."""
    return f"lakewright.{tenant}.{warehouse}"


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
