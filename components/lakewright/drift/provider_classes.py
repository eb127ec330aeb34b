"""Provider classes of dynamic resources by type. A provider that a state has pickled is never loaded."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulumi.dynamic import ResourceProvider

PREFIX = "pulumi-python:dynamic/"

PROVIDERS: dict[str, str] = {
    "credentials:RandomSecret": "credentials.random_secret:RandomSecretProvider",
    "lakekeeper:Bootstrap": "lakekeeper.server.bootstrap:BootstrapProvider",
    "lakekeeper:BucketRemoval": "lakekeeper.buckets.bucket_removal:BucketRemovalProvider",
    "lakekeeper:DeletionGuard": "lakekeeper.tenant.deletion_guard:DeletionGuardProvider",
    "lakekeeper:ExternalId": "lakekeeper.storage.external_id:ExternalIdProvider",
    "lakekeeper:Grant": "lakekeeper.grants.grant:GrantProvider",
    "lakekeeper:Grants": "lakekeeper.grants.grants:GrantsProvider",
    "lakekeeper:KeyRemoval": "lakekeeper.buckets.bucket_removal:KeyRemovalProvider",
    "lakekeeper:Namespace": "lakekeeper.warehouse.namespace:NamespaceProvider",
    "lakekeeper:Project": "lakekeeper.server.project:ProjectProvider",
    "lakekeeper:Role": "lakekeeper.identity.role:RoleProvider",
    "lakekeeper:RoleMembers": "lakekeeper.identity.role_members:RoleMembersProvider",
    "lakekeeper:RoleProof": "lakekeeper.warehouse.role_proof:RoleProofProvider",
    "lakekeeper:SharedProject": "lakekeeper.server.shared_project:SharedProjectProvider",
    "lakekeeper:StoreBucket": "lakekeeper.buckets.store_bucket:StoreBucketProvider",
    "lakekeeper:Table": "lakekeeper.table.resource:TableProvider",
    "lakekeeper:View": "lakekeeper.view.resource:ViewProvider",
    "lakekeeper:TaskQueueConfig": "lakekeeper.warehouse.task_queue_config:TaskQueueConfigProvider",
    "lakekeeper:TenantRecord": "lakekeeper.tenant.tenant_record:TenantRecordProvider",
    "lakekeeper:User": "lakekeeper.identity.user:UserProvider",
    "lakekeeper:Warehouse": "lakekeeper.warehouse.resource:WarehouseProvider",
}
"""Type without its prefix -> `module:class` below `lakewright`."""


@cache
def provider_class(resource_type: str) -> type[ResourceProvider] | None:
    """Return the provider class of a resource type; None for a type that this version does not have."""
    class_path = PROVIDERS.get(resource_type.removeprefix(PREFIX))
    if class_path is None:
        return None
    module, _, name = class_path.partition(":")
    return getattr(import_module(f"lakewright.{module}"), name)
