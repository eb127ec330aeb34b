"""Groups of a Keycloak realm. The client's service account needs `query-groups` and `view-users` of realm-management.

Source: Keycloak's admin REST API, versions 23 to 26 (`/admin/realms/REALM/groups`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal
from urllib.parse import quote

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

PAGE = 100
"""Maximum number of objects in a response; Keycloak's default for users."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class KeycloakSettings(DirectoryConnection):
    """A Keycloak realm."""

    kind: Literal["keycloak"]
    url: ServiceUrl
    """Address of Keycloak without the realm, with `/auth` where it is served there."""
    realm: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
    client_id: NotBlank
    """Client with a service account that may read groups and users."""
    client_secret: Reference

    @override
    def connect(self, resolve: Resolve) -> GroupDirectory:
        return KeycloakDirectory(self, resolve)


class KeycloakDirectory(GroupDirectory):
    """Reads groups by name, or by path (`/teams/analysts`). Members of subgroups are not members of their parent."""

    def __init__(self, settings: KeycloakSettings, resolve: Resolve) -> None:
        """Create the directory; it makes no call."""
        from lakewright.directories.http import DirectoryApi  # noqa: PLC0415 - models need no HTTP client

        auth = ServerClientCredentialsAuth(
            kind="client-credentials",
            token_url=f"{settings.url}/realms/{settings.realm}/protocol/openid-connect/token",
            client_id=settings.client_id,
            client_secret=settings.client_secret,
        )
        self._realm = settings.realm
        title = f"Keycloak realm `{settings.realm}`"
        self._api = DirectoryApi(title, f"{settings.url}/admin/realms/{settings.realm}", auth, resolve)

    @override
    def list_members(self, group: str) -> list[Person]:
        group_id = str(self._find(group)["id"])
        people = {
            Person(str(user["id"]), _format_name(user))
            for user in self._fetch_pages(f"/groups/{group_id}/members")
            if user.get("enabled", True)
        }
        return sorted(people)

    def _find(self, group: str) -> dict[str, Any]:
        is_path_or_id = group.startswith("/") or _UUID.fullmatch(group)
        groups = self._get_group(group) if is_path_or_id else self._find_by_name(group)
        if not groups:
            raise GroupNotFoundError(
                f"{self._api.title} has no group `{group}`. Expected the name, the path (`/teams/analysts`) or the id"
                " of a group."
            )
        if len(groups) > 1:
            paths = ", ".join(sorted(f"`{candidate.get('path')}`" for candidate in groups))
            raise AmbiguousGroupError(
                f"{self._api.title} has {len(groups)} groups named `{group}`: {paths}. Name the group by its path."
            )
        return groups[0]

    def _get_group(self, group: str) -> list[dict[str, Any]]:
        # A specification names the group, so it must not lead to another part of the API.
        if {".", ".."} & set(group.split("/")):
            return []
        path = f"/group-by-path{quote(group)}" if group.startswith("/") else f"/groups/{group}"
        return list_records([self._api.get(path)])

    def _find_by_name(self, group: str) -> list[dict[str, Any]]:
        """Return the groups of exactly this name. A search returns trees, with parents that have other names."""
        trees = self._fetch_pages("/groups", {"search": group, "exact": "true"}, full_pages=False)
        groups = [candidate for tree in trees for candidate in _walk_tree(tree) if candidate.get("name") == group]
        return [*{candidate["id"]: candidate for candidate in groups}.values()]

    def _fetch_pages(
        self, path: str, parameters: dict[str, str | int] | None = None, *, full_pages: bool = True
    ) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list. A page of trees has fewer objects than it has matches: `full_pages=False`."""
        for page in range(MOST_PAGES):
            window: dict[str, str | int] = {"first": page * PAGE, "max": PAGE, "briefRepresentation": "true"}
            page_groups = self._api.get(path, (parameters or {}) | window)
            if page_groups is None:
                raise DirectoryUnavailableError(
                    f"{self._api.title} responded with 404 to {path}. Check `url` and `realm` of the directory; the"
                    " group may have been deleted at this moment."
                )
            groups = list_records(page_groups)
            yield from groups
            if len(groups) < (PAGE if full_pages else 1):
                return


def _walk_tree(group: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield group
    for child in list_records(group.get("subGroups")):
        yield from _walk_tree(child)


def _format_name(user: dict[str, Any]) -> str:
    full = " ".join(part for part in (user.get("firstName"), user.get("lastName")) if part)
    return full or str(user.get("username") or user["id"])
