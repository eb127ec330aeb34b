"""Calls about managed access, which reserves grants to users with `manage_grants`. Requires OpenFGA."""

from lakewright.lakekeeper.api.connection.client import Client

ROOT = "/management/v1/permissions"


def read_of_warehouse_access(client: Client, warehouse_id: str) -> bool:
    """Return whether a warehouse has managed access."""
    return bool(client.json("GET", f"{ROOT}/warehouse/{warehouse_id}")["managed-access"])


def read_namespace_access(client: Client, namespace_id: str) -> bool:
    """Return whether a namespace itself has managed access, regardless of inherited settings."""
    return bool(client.json("GET", f"{ROOT}/namespace/{namespace_id}")["managed-access"])


def set_of_warehouse(client: Client, warehouse_id: str, *, managed: bool) -> None:
    """Set or unset managed access of a warehouse."""
    client.call("POST", f"{ROOT}/warehouse/{warehouse_id}/managed-access", body={"managed-access": managed})


def set_of_namespace(client: Client, namespace_id: str, *, managed: bool) -> None:
    """Set or unset managed access of a namespace."""
    client.call("POST", f"{ROOT}/namespace/{namespace_id}/managed-access", body={"managed-access": managed})
