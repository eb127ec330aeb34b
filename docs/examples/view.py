"""A view with a query for Spark and a query for Trino."""

import pulumi
from lakewright.lakekeeper import View

server = {"endpoint": "https://lakekeeper.example.com"}
warehouse_id = "01a1fcf2-b7e7-781a-879e-a45e6cb252fb"
large_orders = View(
    "large-orders",
    server=server,
    warehouse_id=warehouse_id,
    namespace="sales",
    name="large_orders",
    columns=[{"name": "id", "type": "long"}, {"name": "amount", "type": "decimal(12,2)"}],
    sql={
        "spark": "SELECT id, amount FROM orders WHERE amount > 1000",
        "trino": "SELECT id, amount FROM orders WHERE amount > 1000",
    },
    default_namespace="sales",
)
pulumi.export("large_orders", large_orders.view_id)
