"""Server versions: what a server is, what it can do, and which are too old. All differences between them are here."""

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
"""Relations of OpenFGA's model that servers before these versions do not know."""

KIND_SINCE: dict[str, Version] = {"generic-table": (0, 13), "tag": (0, 14)}
"""Kinds of objects that servers before these versions do not have."""


@dataclass(frozen=True)
class Server:
    """What a server says of itself."""

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
        """Whether a warehouse says of which kind its credential is."""
        return self.version >= (0, 12)

    @property
    def moves_region(self) -> bool:
        """Whether the region of a warehouse with an endpoint of its own may change in place."""
        return self.version >= (0, 12)

    @property
    def lists_inactive_warehouses(self) -> bool:
        """Whether inactive warehouses can be listed; before, the filter is refused in every encoding."""
        return self.version >= (0, 14)

    @property
    def unlisted(self) -> str:
        """Why a warehouse that exists may be missing from a list; empty if none may be."""
        reasons = [] if self.lists_inactive_warehouses else [f"Lakekeeper {self.version_text} lists active ones only"]
        if self.authz_backend not in {"", "allow-all"}:
            reasons.append("lists show only what this identity may see")
        return " and ".join(reasons)

    @property
    def has_dry_runs(self) -> bool:
        """Whether what a create or update of a warehouse would meet can be asked for."""
        return self.version >= (0, 14)

    @property
    def soft_deletion_queue(self) -> str:
        """Name of the task queue that ends soft deletions."""
        return "soft_deletion" if self.version >= (0, 14) else "tabular_expiration"

    @property
    def keeps_tuples(self) -> bool:
        """Whether privileges are OpenFGA's tuples; under another authorizer their endpoints are not even there."""
        return self.authz_backend == "openfga"

    @property
    def has_grants_api(self) -> bool:
        """Whether grants can be kept under any authorizer, if it only has a place for them."""
        return self.version >= (0, 14)

    @property
    def has_role_members(self) -> bool:
        """Whether roles have members under any authorizer; before, under OpenFGA alone."""
        return self.version >= (0, 13)

    def has(self, kind: ObjectKind) -> bool:
        """Whether it knows such objects."""
        return self.version >= KIND_SINCE.get(kind, OLDEST)

    def require_kind(self, kind: ObjectKind) -> None:
        """Refuse a kind of objects that this server does not know. Raises UnsupportedServerError."""
        if not self.has(kind):
            since = KIND_SINCE[kind]
            raise UnsupportedServerError(
                f"a {kind} needs Lakekeeper {since[0]}.{since[1]} or newer; {self.endpoint} runs {self.version_text}."
                " Remove it or upgrade the server."
            )

    def relations(self, kind: ObjectKind) -> tuple[str, ...]:
        """What OpenFGA lets be granted on such objects."""
        return tuple(word for word in RELATIONS[kind] if self.version >= RELATION_SINCE.get((kind, word), OLDEST))

    def require_version(self, path: str, since: Version) -> None:
        """Refuse a declared property that this server does not know. Raises UnsupportedServerError."""
        if self.version < since:
            raise UnsupportedServerError(
                f"`{path}` needs Lakekeeper {since[0]}.{since[1]} or newer; {self.endpoint} runs {self.version_text}."
                " Remove it or upgrade the server."
            )

    def require_openfga(self, path: str) -> None:
        """Refuse a declared property unless this server authorizes by OpenFGA. Raises UnsupportedServerError."""
        if not self.keeps_tuples:
            raise UnsupportedServerError(
                f"`{path}` needs a server that authorizes by OpenFGA; {self.endpoint} has `{self.authz_backend}`."
                " Remove it."
            )


def parse(text: str) -> Version:
    """Major and minor of a version such as `0.13.1`; `(0, 0)` if it is none."""
    numbers = text.removeprefix("v").split("-")[0].split(".")
    if len(numbers) < 2 or not all(number.isdigit() for number in numbers[:2]):
        return (0, 0)
    return int(numbers[0]), int(numbers[1])


def server_of(endpoint: str, info: Mapping[str, Any]) -> Server:
    """What `/management/v1/info` tells. Raises UnsupportedServerError for a version that is too old."""
    text = str(info.get("lakekeeper-version") or info.get("version") or "")
    version = parse(text)
    queues = tuple(str(queue) for queue in info.get("queues") or ())
    if version == (0, 13) and "soft_deletion" in queues:
        version = (0, 14)  # builds between the releases still report the older version
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
