"""Lakekeeper's default project, which other programs use, too."""

from lakewright.lakekeeper import SharedProject

server = {"endpoint": "https://lakekeeper.example.com", "auth": {"kind": "token", "token": "env:LAKEKEEPER_TOKEN"}}
SharedProject("default", server=server, project_id="00000000-0000-0000-0000-000000000000")
