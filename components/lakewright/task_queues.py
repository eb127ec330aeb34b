"""Settings of Lakekeeper's task queues for a tenant's warehouses."""

from __future__ import annotations

import pulumi

from lakewright.environment.platform import Platform
from lakewright.lakekeeper import TaskQueueConfig
from lakewright.spec import TenantSpec
from lakewright.warehouse import TenantWarehouse


def task_queues_for(
    tenant: TenantSpec, platform: Platform, warehouses: dict[str, TenantWarehouse], opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Configure the task queues that the spec names. Lakekeeper keeps its own settings for the others."""
    sides = tenant.maintenance.server if tenant.maintenance else {}
    retained = {warehouse.name for warehouse in tenant.warehouses if warehouse.deletion == "retain"}
    return [
        TaskQueueConfig(
            f"{tenant.name}-{name}-{queue}",
            server=platform.server,
            warehouse_id=warehouses[name].warehouse_id,
            queue=queue,
            config=config,
            # The warehouse belongs to the tenant, so no other settings need to be kept.
            adopt=True,
            opts=pulumi.ResourceOptions.merge(
                opts,
                pulumi.ResourceOptions(
                    retain_on_delete=name in retained,
                    aliases=[pulumi.Alias(name=f"{tenant.name}-{earlier}-{queue}")]
                    if (earlier := tenant.renamed(name))
                    else None,
                ),
            ),
        )
        for name, side in sides.items()
        for queue, config in side.queues.items()
    ]
