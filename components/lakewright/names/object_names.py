"""Names of a tenant's objects on Kubernetes and AWS, names that computing units must not use, and `{tenant}`."""

from __future__ import annotations

DENY_ALL = "deny-all"
"""NetworkPolicy that closes the namespace."""

MAINTENANCE = "maintenance"
"""CronJob of the maintenance jobs, with its ServiceAccount and NetworkPolicy."""

EXECUTORS = "maintenance-executors"
"""Spark executors of the maintenance jobs, with their ServiceAccount, NetworkPolicy and pod template."""

STANDBY = "maintenance-standby"
"""NetworkPolicy of the CronJobs that copy warehouses to their standbys, and beginning of the names of ConfigMaps."""

COMPUTING_UNITS = "computing-units"
"""Headless Service that gives each unit's pod its own host name."""

ACTIVATOR = "activator"
"""Deployment that starts and stops idle units, with its ServiceAccount and NetworkPolicy."""

TRUST = "trusted-authorities"
"""ConfigMap of the platform's certificate authorities. Units have no ConfigMap of their plain names."""

COMPUTE_LIMIT = "lakewright-compute-limit"
"""ResourceQuota that starts no computing unit. `lakewright enforce-limits` makes and deletes it."""

DEFAULT_SERVICE_ACCOUNT = "default"
"""ServiceAccount that Kubernetes makes in each namespace; pods without another ServiceAccount run as it."""


LONGEST_ROLE_NAME = 64
"""Characters that IAM allows in the name of a role."""

ROLE_PATH = "/lakewright/"
"""IAM path of the roles of tenants. The catalog's identity may assume roles of this path only."""

FORMER_ROLE_PATH = "/"
"""IAM path of roles that earlier versions made. A path cannot change, so those roles keep it."""


def role_name(tenant: str, warehouse: str, purpose: str | None = None) -> str:
    """Return the name of a warehouse's role, or of a further role for a purpose such as `vending`.

    It is unique, as no part contains a dot.
    """
    name = f"lakewright.{tenant}.{warehouse}"
    return f"{name}.{purpose}" if purpose else name


def default_key_prefix(tenant: str, first_name: str) -> str:
    """Return the key prefix of a warehouse without `key_prefix`. A renamed warehouse keeps that of its first name."""
    return f"{tenant}/{first_name}"


def share_purpose(share: str) -> str:
    """Return the purpose in the name of the role of a share."""
    return f"share-{share}"


def namespace_name(tenant: str) -> str:
    """Return the name of the namespace that holds a tenant's objects."""
    return f"tenant-{tenant}"


def catalog_name(owner: str) -> str:
    """Return the name of the ConfigMap with the catalog configuration of a unit or of the maintenance jobs."""
    return f"{owner}-catalog"


def format_standby(warehouse: str) -> str:
    """Return the name of the CronJob that copies a warehouse to its standby."""
    return f"standby-{to_object_name(warehouse)}"


def format_lag_check(warehouse: str) -> str:
    """Return the name of the CronJob that checks the lag of a standby."""
    return f"lag-{format_standby(warehouse)}"


def format_standby_config(warehouse: str) -> str:
    """Return the name of the ConfigMap with the configuration of the source of a standby."""
    return f"{STANDBY}-{to_object_name(warehouse)}"


def to_object_name(warehouse: str) -> str:
    """Return the name of a warehouse as a part of names of Kubernetes objects. It has up to 40 characters."""
    return warehouse.casefold().replace("_", "-").rstrip("-")


def names_of_tenant(tenant: str) -> frozenset[str]:
    """Return the names of a tenant's objects, without its units' objects."""
    return frozenset({namespace_name(tenant), DENY_ALL, COMPUTING_UNITS, MAINTENANCE, catalog_name(MAINTENANCE)})


def list_reserved_names(tenant: str) -> frozenset[str]:
    """Return the names that no unit may have: the unit's object would replace another object of that name."""
    return names_of_tenant(tenant) | {DEFAULT_SERVICE_ACCOUNT}


TENANT = "{tenant}"
"""Placeholder of the tenant's name."""


def fill_placeholders(text: str, tenant: str) -> str:
    """Return a setting for a tenant."""
    return text.replace(TENANT, tenant)
