"""Objects of a tenant in the state of a stack, to compare states of several stacks. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.validation.documents import as_list, as_mapping, as_text

_PROJECT = "lakekeeper:Project"
_WAREHOUSE = "lakekeeper:Warehouse"
_RECORD = "lakekeeper:TenantRecord"
_REMOVED_BUCKETS = ("lakekeeper:BucketRemoval", "lakekeeper:StoreBucket")
"""Resources whose deletion deletes a bucket."""
_AWS_BUCKET = "aws:s3/bucket:Bucket"


@dataclass(frozen=True)
class StateProject:
    """A Lakekeeper project in a state."""

    project_id: str
    endpoint: str
    """Address of the server, as the state has it."""
    server_id: str | None = None
    """Id of the server; None in states of earlier versions."""
    is_marked: bool = False
    """Whether the stack marked the project as its own. Stacks of earlier versions did not."""


@dataclass(frozen=True)
class StateBucket:
    """A bucket that a stack made."""

    bucket: str
    endpoint: str | None = None
    """Address of the store; None for AWS."""


@dataclass(frozen=True)
class StateWarehouse:
    """A warehouse of a shared project, with a mark of its own."""

    project_id: str
    name: str
    endpoint: str
    """Address of the server, as the state has it."""


@dataclass
class StateObjects:
    """The objects of tenants that a state contains."""

    projects: set[StateProject] = field(default_factory=set[StateProject])
    shared_warehouses: set[StateWarehouse] = field(default_factory=set[StateWarehouse])
    buckets: set[StateBucket] = field(default_factory=set[StateBucket])
    record_id: str | None = None
    """Id of the tenant's record, which marks of the stack's objects have."""
    server_ids: dict[str, str] = field(default_factory=dict[str, str])
    """Ids of servers by the addresses that the state has for them."""


def read_state_objects(exported: Mapping[str, Any]) -> StateObjects:
    """Return the projects and buckets in an exported state, and the objects that an interrupted run began to create.

    Args:
        exported: The state, as `lakewright stack export` prints it.
    """
    resources = list(_list_resources(as_mapping(exported.get("deployment"))))
    store_endpoints: dict[str, str | None] = {}
    objects = StateObjects()
    for kind, inputs, _ in resources:
        if kind.endswith(_RECORD):
            objects.record_id = as_text(inputs.get("bucket_tag"))
            buckets = map(as_mapping, as_mapping(inputs.get("buckets")).values())
            store_endpoints |= {str(bucket.get("bucket")): as_text(bucket.get("endpoint")) for bucket in buckets}
    for kind, inputs, outputs in resources:
        endpoint = as_text(as_mapping(inputs.get("server")).get("endpoint"))
        server_id = as_text(outputs.get("server_id"))
        if endpoint and server_id:
            objects.server_ids[endpoint] = server_id
        if kind.endswith(_PROJECT) and endpoint:
            is_marked = as_text(inputs.get("stack")) is not None
            objects.projects.add(StateProject(str(inputs.get("project_id")), endpoint, server_id, is_marked=is_marked))
        elif kind.endswith(_WAREHOUSE) and endpoint and as_text(inputs.get("record")):
            warehouse = StateWarehouse(str(inputs.get("project_id")), str(inputs.get("name")), endpoint)
            objects.shared_warehouses.add(warehouse)
        elif bucket := as_text(inputs.get("bucket")):
            if kind.endswith(_REMOVED_BUCKETS):
                objects.buckets.add(StateBucket(bucket, as_text(inputs.get("endpoint"))))
            elif kind == _AWS_BUCKET and bucket in store_endpoints:
                objects.buckets.add(StateBucket(bucket, store_endpoints[bucket]))
    return objects


def _list_resources(deployment: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield type, inputs and outputs of each resource, also in pending operations."""
    pending = [as_mapping(operation).get("resource") for operation in as_list(deployment.get("pending_operations"))]
    for resource in map(as_mapping, [*as_list(deployment.get("resources")), *pending]):
        yield str(resource.get("type")), as_mapping(resource.get("inputs")), as_mapping(resource.get("outputs"))
