"""A project for a tenant."""

from lakewright.lakekeeper import Project

server = {"endpoint": "https://lakekeeper.example.com", "auth": {"kind": "token", "token": "env:LAKEKEEPER_TOKEN"}}
Project("acme", server=server, project_id="acme", name="ACME Corporation")
