"""The declared entry of a grant, which `Grant` and `Grants` share, and its checks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Self

from pulumi.dynamic import CheckFailure, CheckResult
from pydantic import AfterValidator, model_validator

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection.errors import LakekeeperError, UnsupportedServerError
from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, GrantEntry
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.api.management import grants
from lakewright.lakekeeper.grants.target import GrantTarget
from lakewright.lakekeeper.provider.inputs import UNKNOWN, Declared, has_unknown, is_unknown
from lakewright.lakekeeper.provider.ownership_conflicts import Claim, ClaimKey, Claims
from lakewright.names.types import RoleId, UserId

if TYPE_CHECKING:
    from lakewright.lakekeeper.provider.base import LakekeeperProvider


def _privilege(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", value):
        raise ValueError("a privilege is a word such as `select` or `manage_grants`")
    return value


Privilege = Annotated[str, AfterValidator(_privilege)]
"""OpenFGA: one of `api.privileges.RELATIONS`. Other authorizers: a privilege that the Grants API lists."""


def exactly_one(user: str | None, role: str | None) -> None:
    """Check that there is one principal.

    Raises:
        ValueError: There is none, or both are given.
    """
    if (user is None) == (role is None):
        raise ValueError("expected `user` or `role`, and not both")


class DeclaredGrant(Declared):
    """A privilege of a user (its id) or of a role (its id)."""

    privilege: Privilege
    """The privilege, in the terms of the server's authorizer."""
    user: UserId | None = None
    """Id of the user who has it."""
    role: RoleId | None = None
    """Id of the role that has it."""

    @model_validator(mode="after")
    def _one_principal(self) -> Self:
        exactly_one(self.user, self.role)
        return self

    @property
    def held(self) -> GrantEntry:
        """Return the grant as the server stores it."""
        return (
            GrantEntry(self.privilege, "user", self.user)
            if self.user
            else GrantEntry(self.privilege, "role", self.role or "")
        )


def entries(grants: Iterable[GrantEntry]) -> list[DeclaredGrant]:
    """Return sorted declarations of grants."""
    return [
        DeclaredGrant.model_validate({"privilege": entry.privilege, entry.kind: entry.principal})
        for entry in sorted(grants)
    ]


def make_claim_key(server: ServerRef, on: GrantTarget) -> ClaimKey:
    """Return the place at which grants on an object are claimed."""
    return (_endpoint(server), UNKNOWN if has_unknown(on) else str(on))


def place_of_members(server: ServerRef, role_id: str) -> ClaimKey:
    """Return the place at which members of a role are claimed."""
    return (_endpoint(server), UNKNOWN if is_unknown(role_id) else f"role/{role_id}", ASSIGNEE)


def _endpoint(server: ServerRef) -> Any:
    return UNKNOWN if is_unknown(server) else server.endpoint


def claim_place(claims: Claims, result: CheckResult, key: ClaimKey, claim: Claim, path: str) -> CheckResult:
    """Return a check's result, refused if another resource of the program has claimed the place."""
    if result.failures or has_unknown(list(key)):
        return result
    reason = claims.add(key, claim)
    return CheckResult(result.inputs, [CheckFailure(path, reason)]) if reason else result


def explain_unsupported(provider: LakekeeperProvider[Any], server: ServerRef, on: GrantTarget) -> str:
    """Return why the server stores no grants on such objects; empty if it does, or if it cannot be asked.

    An unreachable server does not cause a refusal: `up` reports it.

    Args:
        provider: The provider of the grants.
        server: The server, which may be unknown in a preview.
        on: The target of the grants. Its ids may be unknown in a preview.
    """
    if has_unknown(server) or is_unknown(on):
        return ""
    try:
        client = provider.client(server)
        client.server().require_kind(on.type)
        grants.require_stored(client, on.type)
    except UnsupportedServerError as error:
        return str(error)
    except (LakekeeperError, UnresolvedCredentialError):
        return ""
    return ""
