"""A role that receives grants."""

from lakewright.lakekeeper import Role

server = {"endpoint": "https://lakekeeper.example.com"}
Role("analysts", server=server, project_id="acme", name="analysts", description="May read everything.")
