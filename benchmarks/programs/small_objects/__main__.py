"""100 projects, and 200 namespaces in an existing warehouse."""

import pulumi
from lakewright.lakekeeper import Namespace, Project

config = pulumi.Config()
server = {"endpoint": config.require("endpoint"), "auth": {"kind": "none"}}

for number in range(100):
    Project(f"project-{number}", server=server, project_id=f"bench-{number}", name=f"bench {number}")

for number in range(200):
    Namespace(f"namespace-{number}", server=server, warehouse_id=config.require("warehouse"), name=f"bench-{number}")
