"""The complete list of members of a role."""

from lakewright.lakekeeper import Role, RoleMembers

server = {"endpoint": "https://lakekeeper.example.com"}
analysts = Role("analysts", server=server, project_id="acme", name="analysts")
RoleMembers("analysts", server=server, project_id="acme", role_id=analysts.role_id, users=["oidc~ann", "oidc~bob"])
