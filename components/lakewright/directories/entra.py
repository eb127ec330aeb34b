"""Groups of Microsoft Entra ID, by Microsoft Graph.

The application needs the permission `GroupMember.Read.All`. With `User.Read.All`, Graph also reports names, and which
accounts are disabled.

Source: Microsoft Graph v1.0, `groups` and `transitiveMembers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import override

from lakewright.credentials.references import Reference
from lakewright.directories.directory import (
    MOST_PAGES,
    AmbiguousGroupError,
    DirectoryConnection,
    DirectoryUnavailableError,
    GroupDirectory,
    GroupNotFoundError,
    Person,
    Resolve,
    list_records,
)
from lakewright.lakekeeper.api.connection.server import ServerClientCredentialsAuth
from lakewright.names.types import NotBlank, ServiceUrl

PAGE = 999
"""Maximum number of objects in a response."""
USER = "#microsoft.graph.user"
"""Type of people among the members. Other members are groups, devices and applications."""
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


class EntraSettings(DirectoryConnection):
    """A tenant of Microsoft Entra ID."""

    kind: Literal["entra"]
    tenant_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]+$")]
    """Id or domain of the Entra tenant."""
    client_id: NotBlank
    """Application that may read groups and users."""
    client_secret: Reference
    login_url: ServiceUrl = "https://login.microsoftonline.com"
    """Address of the token endpoints; other in national clouds."""
    graph_url: ServiceUrl = "https://graph.microsoft.com"
    """Address of Microsoft Graph; other in national clouds."""

    @override
    def connect(self, resolve: Resolve) -> GroupDirectory:
        return EntraDirectory(self, resolve)


class EntraDirectory(GroupDirectory):
    """Reads groups by display name or object id. Members of groups in the group count as members."""

    def __init__(self, settings: EntraSettings, resolve: Resolve) -> None:
        """Create the directory; it makes no call."""
        from lakewright.directories.http import DirectoryApi  # noqa: PLC0415 - models need no HTTP client

        auth = ServerClientCredentialsAuth(
            kind="client-credentials",
            token_url=f"{settings.login_url}/{settings.tenant_id}/oauth2/v2.0/token",
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            scope=f"{settings.graph_url}/.default",
        )
        self._api = DirectoryApi(f"Entra tenant `{settings.tenant_id}`", f"{settings.graph_url}/v1.0", auth, resolve)

    @override
    def list_members(self, group: str) -> list[Person]:
        group_id = self._find(group)
        select = {"$select": "id,displayName,userPrincipalName,accountEnabled", "$top": PAGE}
        people = {
            # Lakekeeper reads `oid` first, which is the user's object id.
            Person(str(user["id"]), str(user.get("displayName") or user.get("userPrincipalName") or user["id"]))
            for user in self._fetch_pages(f"/groups/{group_id}/transitiveMembers", select)
            if user.get("@odata.type") == USER and user.get("accountEnabled") is not False
        }
        return sorted(people)

    def _find(self, group: str) -> str:
        if _UUID.fullmatch(group):
            groups = list_records([self._api.get(f"/groups/{group}", {"$select": "id"})])
        else:
            quoted = group.replace("'", "''")
            groups = [
                *self._fetch_pages("/groups", {"$filter": f"displayName eq '{quoted}'", "$select": "id,displayName"})
            ]
        if not groups:
            raise GroupNotFoundError(
                f"{self._api.title} has no group `{group}`. Expected the display name or the object id of a group."
            )
        if len(groups) > 1:
            ids = ", ".join(sorted(f"`{candidate['id']}`" for candidate in groups))
            raise AmbiguousGroupError(
                f"{self._api.title} has {len(groups)} groups named `{group}`: {ids}. Name the group by its object id."
            )
        return str(groups[0]["id"])

    def _fetch_pages(self, path: str, parameters: dict[str, str | int]) -> Iterator[dict[str, Any]]:
        page = self._api.get(path, parameters)
        for _ in range(MOST_PAGES):
            bodies = list_records([page])
            if not bodies:
                raise DirectoryUnavailableError(
                    f"{self._api.title} responded with 404 to {path}. Check `graph_url` of the directory; the group may"
                    " have been deleted at this moment."
                )
            yield from list_records(bodies[0].get("value"))
            next_address = bodies[0].get("@odata.nextLink")
            if not isinstance(next_address, str):
                return
            page = self._api.get(next_address)
