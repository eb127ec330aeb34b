"""100 warehouses with 3 namespaces each, in an existing project and bucket."""

import pulumi
from lakewright.lakekeeper import Namespace, Warehouse

config = pulumi.Config()
server = {"endpoint": config.require("endpoint")}
storage = {
    "bucket": config.require("bucket"),
    "region": config.require("region"),
    "endpoint": config.require("s3"),
    "flavor": "s3-compat",
    "path_style_access": True,
    "sts_enabled": False,
}
keys = {"type": "access-key", "access_key_id": "env:BENCH_KEY_ID", "secret_access_key": "env:BENCH_KEY"}

for number in range(100):
    warehouse = Warehouse(
        f"warehouse-{number}",
        server=server,
        project_id=config.require("project"),
        name=f"warehouse-{number}",
        storage=storage | {"key_prefix": f"many/{number}"},
        credential=keys,
    )
    for name in ("results", "statistics", "logs"):
        Namespace(f"warehouse-{number}-{name}", server=server, warehouse_id=warehouse.warehouse_id, name=name)
