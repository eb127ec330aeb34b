"""Calls about managed access: only who may grant there grants, owners of what is within do not. Under OpenFGA alone."""

from lakewright.lakekeeper.api.connection.client import Client

ROOT = "/management/v1/permissions"


def of_warehouse(client: Client, warehouse_id: str) -> bool:
    """Whether a warehouse's access is managed."""
    return bool(client.json("GET", f"{ROOT}/warehouse/{warehouse_id}")["managed-access"])


def of_namespace(client: Client, namespace_id: str) -> bool:
    """Whether a namespace's own access is managed, whatever it inherits."""
    return bool(client.json("GET", f"{ROOT}/namespace/{namespace_id}")["managed-access"])


def set_of_warehouse(client: Client, warehouse_id: str, *, managed: bool) -> None:
    """Manage a warehouse's access, or no longer."""
    client.call("POST", f"{ROOT}/warehouse/{warehouse_id}/managed-access", body={"managed-access": managed})


def set_of_namespace(client: Client, namespace_id: str, *, managed: bool) -> None:
    """Manage a namespace's access, or no longer."""
    client.call("POST", f"{ROOT}/namespace/{namespace_id}/managed-access", body={"managed-access": managed})
