"""Server versions and their features: the only place for differences between versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.lakekeeper.api.connection.errors import UnsupportedServerError
from lakewright.lakekeeper.api.connection.privileges import RELATIONS, ObjectKind

Version = tuple[int, int]

OLDEST: Version = (0, 11)

RELATION_SINCE: dict[tuple[ObjectKind, str], Version] = {
    ("view", "select"): (0, 12),
    ("project", "tag_creator"): (0, 14),
    **{(kind, "manage_tags"): (0, 14) for kind in ("warehouse", "namespace", "table", "view", "generic-table")},
}
"""Relations of OpenFGA's model by the first version that has them."""

KIND_SINCE: dict[str, Version] = {"generic-table": (0, 13), "tag": (0, 14)}
"""Kinds of objects by the first version that has them."""


def find_current_queue(queue: str) -> str:
    """Return the current name of a task queue. The client sends the name that the server knows.

    Servers before 0.14 call `soft_deletion` `tabular_expiration`.
    """
    return "soft_deletion" if queue == "tabular_expiration" else queue


@dataclass(frozen=True)
class Server:
    """Version and settings that a server reports."""

    endpoint: str
    version: Version
    version_text: str
    bootstrapped: bool
    server_id: str
    default_project_id: str | None
    authz_backend: str
    queues: tuple[str, ...]

    @property
    def reports_credential_kind(self) -> bool:
        """Return whether a warehouse reports the kind of its credential."""
        return self.version >= (0, 12)

    @property
    def moves_region(self) -> bool:
        """Return whether the region of a warehouse with a custom endpoint may change in place."""
        return self.version >= (0, 12)

    @property
    def lists_inactive_warehouses(self) -> bool:
        """Return whether inactive warehouses can be listed. Older versions refuse the filter in every encoding."""
        return self.version >= (0, 14)

    @property
    def unlisted(self) -> str:
        """Return why an existing warehouse may be missing from a list; empty if none may be."""
        reason = f"Lakekeeper {self.version_text} lists active warehouses only"
        reasons = [] if self.lists_inactive_warehouses else [reason]
        if self.authz_backend not in {"", "allow-all"}:
            reasons.append("lists show only what this identity may see")
        return " and ".join(reasons)

    @property
    def has_dry_runs(self) -> bool:
        """Return whether creates and updates of a warehouse have dry runs."""
        return self.version >= (0, 14)

    @property
    def soft_deletion_queue(self) -> str:
        """Return the name of the task queue that expires soft deletions."""
        return "soft_deletion" if self.version >= (0, 14) else "tabular_expiration"

    @property
    def keeps_tuples(self) -> bool:
        """Return whether privileges are OpenFGA tuples. Other authorizers do not have their endpoints."""
        return self.authz_backend == "openfga"

    @property
    def has_grants_api(self) -> bool:
        """Return whether the Grants API exists. It works only if the authorizer stores grants."""
        return self.version >= (0, 14)

    @property
    def has_role_members(self) -> bool:
        """Return whether roles have members under every authorizer. Older versions have them under OpenFGA only."""
        return self.version >= (0, 13)

    def has(self, kind: ObjectKind) -> bool:
        """Return whether the server has such objects."""
        return self.version >= KIND_SINCE.get(kind, OLDEST)

    def require_kind(self, kind: ObjectKind) -> None:
        """Refuse a kind of object that this server does not have.

        Raises:
            UnsupportedServerError: The server is too old.
        """
        if not self.has(kind):
            since = KIND_SINCE[kind]
            raise UnsupportedServerError(
                f"a {kind} needs Lakekeeper {since[0]}.{since[1]} or newer; {self.endpoint} runs {self.version_text}."
                " Remove it or upgrade the server."
            )

    def relations(self, kind: ObjectKind) -> tuple[str, ...]:
        """Return the privileges that OpenFGA allows on such objects."""
        return tuple(word for word in RELATIONS[kind] if self.version >= RELATION_SINCE.get((kind, word), OLDEST))

    def require_version(self, path: str, since: Version) -> None:
        """Refuse a declared property that this server does not have.

        Raises:
            UnsupportedServerError: The server is too old.
        """
        if self.version < since:
            raise UnsupportedServerError(
                f"`{path}` needs Lakekeeper {since[0]}.{since[1]} or newer; {self.endpoint} runs {self.version_text}."
                " Remove it or upgrade the server."
            )

    def require_openfga(self, path: str) -> None:
        """Refuse a declared property unless this server uses OpenFGA as authorizer.

        Raises:
            UnsupportedServerError: The server has another authorizer.
        """
        if not self.keeps_tuples:
            raise UnsupportedServerError(
                f"`{path}` needs a server that authorizes by OpenFGA; {self.endpoint} has `{self.authz_backend}`."
                " Remove it."
            )


def parse(text: str) -> Version:
    """Return major and minor of a version such as `0.13.1`; `(0, 0)` for other text."""
    numbers = text.removeprefix("v").split("-")[0].split(".")
    if len(numbers) < 2 or not all(number.isdigit() for number in numbers[:2]):
        return (0, 0)
    return int(numbers[0]), int(numbers[1])


def parse_server(endpoint: str, info: Mapping[str, Any]) -> Server:
    """Return the server that a `/management/v1/info` response describes.

    Raises:
        UnsupportedServerError: The version is too old.
    """
    text = str(info.get("lakekeeper-version") or info.get("version") or "")
    version = parse(text)
    queues = tuple(str(queue) for queue in info.get("queues") or ())
    if version == (0, 13) and "soft_deletion" in queues:
        version = (0, 14)  # development builds still report the older version
    if version < OLDEST:
        raise UnsupportedServerError(
            f"{endpoint} runs Lakekeeper {text or 'of an unknown version'}; {OLDEST[0]}.{OLDEST[1]} or newer is needed"
        )
    return Server(
        endpoint=endpoint,
        version=version,
        version_text=text,
        bootstrapped=bool(info.get("bootstrapped")),
        server_id=str(info.get("server-id") or ""),
        default_project_id=info.get("default-project-id"),
        authz_backend=str(info.get("authz-backend") or ""),
        queues=queues,
    )
