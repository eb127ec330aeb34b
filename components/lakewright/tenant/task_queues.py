"""Settings of Lakekeeper's task queues for a tenant's warehouses."""

from __future__ import annotations

from collections.abc import Iterator

import pulumi

from lakewright.environment.platform import Platform
from lakewright.lakekeeper import TaskQueueConfig
from lakewright.spec import TenantSpec
from lakewright.spec.warehouse import QueueSettings
from lakewright.tenant.warehouse import TenantWarehouse


def configure_task_queues(
    tenant: TenantSpec, platform: Platform, warehouses: dict[str, TenantWarehouse], opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Configure the task queues that the spec names. Lakekeeper keeps its own settings for other queues."""
    retained = {warehouse.name for warehouse in tenant.warehouses if warehouse.data_deletion == "retain"}
    return [
        TaskQueueConfig(
            f"{tenant.name}-{name}-{queue}",
            server=platform.server,
            warehouse_id=warehouses[name].warehouse_id,
            queue=queue,
            config=settings.config,
            max_seconds_since_last_heartbeat=settings.max_seconds_since_last_heartbeat,
            # The warehouse belongs to the tenant, so no other settings need to be kept.
            adopt=True,
            opts=pulumi.ResourceOptions.merge(
                opts,
                pulumi.ResourceOptions(
                    retain_on_delete=name in retained,
                    aliases=[pulumi.Alias(name=f"{tenant.name}-{earlier}-{queue}")]
                    if (earlier := tenant.find_earlier_name(name))
                    else None,
                ),
            ),
        )
        for name, queue, settings in _list_declared_queues(tenant)
    ]


def _list_declared_queues(tenant: TenantSpec) -> Iterator[tuple[str, str, QueueSettings]]:
    """Yield warehouse, queue and settings: of `maintenance.server`, then of the warehouses."""
    for name, server_queues in (tenant.maintenance.server if tenant.maintenance else {}).items():
        for queue, config in server_queues.queues.items():
            yield name, queue, QueueSettings(config=config)
    for warehouse in tenant.warehouses:
        for queue, settings in warehouse.task_queues.items():
            yield warehouse.name, queue, settings
