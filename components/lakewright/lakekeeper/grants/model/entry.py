"""Who is given what: the entry that `Grant` is one of and `Grants` a list of, and the checks that both share."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pulumi.dynamic import CheckFailure, CheckResult
from pydantic import AfterValidator, model_validator

from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, GrantEntry
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.grants.model.target import GrantTarget
from lakewright.lakekeeper.provider.inputs import UNKNOWN, Declared, has_unknown, is_unknown
from lakewright.lakekeeper.provider.ownership_conflicts import Claim, ClaimKey, Claims
from lakewright.names.types import RoleId, UserId


def _privilege(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", value):
        raise ValueError("a privilege is a word such as `select` or `manage_grants`")
    return value


Privilege = Annotated[str, AfterValidator(_privilege)]
"""OpenFGA: one of `api.privileges.RELATIONS`. Under another authorizer, what its Grants API lists as grantable."""


def exactly_one(user: str | None, role: str | None) -> None:
    """Raises ValueError unless there is one principal."""
    if (user is None) == (role is None):
        raise ValueError("expected `user` or `role`, and not both")


class DeclaredGrant(Declared):
    """A privilege of a user (its id) or of a role (its id)."""

    privilege: Privilege
    """The privilege, in the words of the server's authorizer."""
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
        """The grant as the server has it."""
        return (
            GrantEntry(self.privilege, "user", self.user)
            if self.user
            else GrantEntry(self.privilege, "role", self.role or "")
        )


def entries(held: Iterable[GrantEntry]) -> list[DeclaredGrant]:
    """Declared entries of what is held, in their order."""
    return [DeclaredGrant.model_validate({"privilege": one.privilege, one.kind: one.principal}) for one in sorted(held)]


def place_of(server: ServerRef, on: GrantTarget) -> ClaimKey:
    """Where the grants on an object are claimed."""
    return (_endpoint(server), UNKNOWN if has_unknown(on) else str(on))


def place_of_members(server: ServerRef, role_id: str) -> ClaimKey:
    """Where the members of a role are claimed."""
    return (_endpoint(server), UNKNOWN if is_unknown(role_id) else f"role/{role_id}", ASSIGNEE)


def _endpoint(server: ServerRef) -> Any:
    return UNKNOWN if is_unknown(server) else server.endpoint


def claimed(claims: Claims, result: CheckResult, place: ClaimKey, claim: Claim, path: str) -> CheckResult:
    """A check's result, refused if another resource of the program has the place."""
    if result.failures or has_unknown(list(place)):
        return result
    reason = claims.add(place, claim)
    return CheckResult(result.inputs, [CheckFailure(path, reason)]) if reason else result
