"""Refuse to destroy while tables exist: the guard is deleted first, and refuses."""

import pulumi
from lakewright.lakekeeper import DeletionGuard, Project

server = {"endpoint": "https://lakekeeper.example.com"}
project = Project("acme", server=server, project_id="acme", name="ACME Corporation")
DeletionGuard(
    "acme",
    server=server,
    warehouses={"executions": "01a1fcf2-b7e7-781a-879e-a45e6cb252fb"},
    deletion="protect",
    opts=pulumi.ResourceOptions(depends_on=[project]),
)
