"""The time until finished purges of a warehouse may be started again."""

from lakewright.lakekeeper import TaskQueueConfig

TaskQueueConfig(
    "purge",
    server={"endpoint": "https://lakekeeper.example.com"},
    warehouse_id="01a1fcf2-b7e7-781a-879e-a45e6cb252fb",
    queue="tabular_purge",
)
