"""A nested namespace."""

import pulumi
from lakewright.lakekeeper import Namespace

server = {"endpoint": "https://lakekeeper.example.com"}
warehouse_id = "01a1fcf2-b7e7-781a-879e-a45e6cb252fb"
sales = Namespace("sales", server=server, warehouse_id=warehouse_id, name="sales", properties={"owner": "finance"})
daily = pulumi.ResourceOptions(depends_on=[sales])
Namespace("daily", server=server, warehouse_id=warehouse_id, name="sales.daily", protected=True, opts=daily)
