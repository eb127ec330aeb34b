"""100 projects with 2 roles each."""

import pulumi
from lakewright.lakekeeper import Project, Role

server = {"endpoint": pulumi.Config().require("endpoint")}

for number in range(100):
    project = Project(f"p-{number}", server=server, project_id=f"roles-{number}", name=f"roles {number}")
    for name in ("readers", "writers"):
        Role(f"p-{number}-{name}", server=server, project_id=project.project_id, name=name, description="Bench.")
