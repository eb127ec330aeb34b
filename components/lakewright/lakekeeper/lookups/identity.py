"""Lookups of users, of roles and their members, and of grants."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lakewright.lakekeeper.api.connection.errors import InvalidLookupError, NothingFoundError
from lakewright.lakekeeper.api.management import grants, members, roles, users
from lakewright.lakekeeper.server.lookup_base import LookupResult, Server, as_output, format_names, reach


class UserInfo(LookupResult):
    """A user."""

    user_id: str
    name: str
    user_type: str
    """`human` or `application`."""
    email: str | None


class RoleInfo(LookupResult):
    """A role."""

    role_id: str
    project_id: str
    name: str
    description: str | None
    provider_id: str | None
    """None on servers before 0.12."""
    source_id: str | None
    ident: str | None
    """`PROVIDER~SOURCE`."""


class RoleMembersInfo(LookupResult):
    """The direct members of a role, by their ids."""

    users: tuple[str, ...]
    roles: tuple[str, ...]


class GrantInfo(LookupResult):
    """A privilege of a user or role, granted directly on an object."""

    privilege: str
    user: str | None
    role: str | None
    """Id of the role."""


def get_users(*, server: Server, name: str | None = None) -> list[UserInfo]:
    """Return the users that this identity may see, sorted by id; with `name`, only users of that name."""
    user_infos = [_user(user) for user in users.list_all(reach(server)) if name in {None, user["name"]}]
    return sorted(user_infos, key=lambda user: user.user_id)


def get_user(*, server: Server, user_id: str) -> UserInfo:
    """Return a user by id. Raises NothingFoundError."""
    client = reach(server)
    user = users.get(client, user_id)
    if user is None:
        raise NothingFoundError(
            f"user `{user_id}` is not at {client.endpoint}. A server records a user at the first request of the user."
            " To record the user earlier, declare a `User`."
        )
    return _user(user)


def get_roles(*, server: Server, project_id: str) -> list[RoleInfo]:
    """Return the roles of a project that this identity may see, sorted by name."""
    return sorted((_role(role) for role in roles.list_all(reach(server), project_id)), key=lambda role: role.name)


def get_role(
    *,
    server: Server,
    project_id: str,
    role_id: str | None = None,
    name: str | None = None,
    provider_id: str | None = None,
    source_id: str | None = None,
) -> RoleInfo:
    """Return a role of a project by its id, by its name, or by its provider and source id at an identity provider.

    Raises:
        InvalidLookupError: If the arguments are not one of these.
        NothingFoundError: If there is no such role.
    """
    client = reach(server)
    match (role_id, name, provider_id, source_id):
        case (str(), None, None, None):
            role, lookup_key = roles.get(client, project_id, role_id), role_id
        case (None, str(), None, None):
            role, lookup_key = roles.find_by_name(client, project_id, name), f"`{name}`"
        case (None, None, str(), str()):
            role, lookup_key = (
                roles.find_by_source(client, project_id, provider_id, source_id),
                f"`{provider_id}~{source_id}`",
            )
        case _:
            raise InvalidLookupError("a role is looked up by `role_id`, by `name`, or by `provider_id` and `source_id`")
    if role is None:
        available = format_names(role.name for role in get_roles(server=server, project_id=project_id))
        raise NothingFoundError(
            f"role {lookup_key} is not in project {project_id} at {client.endpoint}. Available: {available}"
        )
    return _role(role)


def get_role_members(*, server: Server, project_id: str, role_id: str) -> RoleMembersInfo:
    """Return the direct members of a role. Raises NothingFoundError."""
    client = reach(server)
    members_of_role = members.list_members(client, project_id, role_id)
    if members_of_role is None:
        raise NothingFoundError(f"role {role_id} is not in project {project_id} at {client.endpoint}")
    return RoleMembersInfo(
        users=tuple(sorted(principal for kind, principal in members_of_role if kind == "user")),
        roles=tuple(sorted(principal for kind, principal in members_of_role if kind == "role")),
    )


def get_grants(*, server: Server, on: Mapping[str, Any]) -> list[GrantInfo]:
    """Return the grants directly on an object; `on` as for `Grant`. Raises NothingFoundError."""
    # These modules import Pulumi, which takes most of a second. Other lookups do not need it.
    from lakewright.lakekeeper.grants import target as grant_target  # noqa: PLC0415
    from lakewright.lakekeeper.provider import inputs as declared  # noqa: PLC0415

    client = reach(server)
    try:
        target: grant_target.GrantTarget = TypeAdapter(grant_target.GrantTarget).validate_python(dict(on))
    except ValidationError as error:
        reasons = "; ".join(f"{path}: {reason}" for path, reason in declared.failures(error, dict(on)))
        raise InvalidLookupError(f"`on` of a lookup is invalid: {reasons}") from None
    target_object = grant_target.resolve_now(client, target)
    live_grants = grants.list_grants(client, target_object) if target_object else None
    if live_grants is None:
        raise NothingFoundError(f"{target} is not at {client.endpoint}")
    return [
        GrantInfo(
            privilege=grant.privilege,
            user=grant.principal if grant.kind == "user" else None,
            role=grant.principal if grant.kind == "role" else None,
        )
        for grant in sorted(live_grants)
    ]


def _user(user: users.UserResponse) -> UserInfo:
    return UserInfo(user_id=user["id"], name=user["name"], user_type=user["user-type"], email=user.get("email"))


def _role(role: roles.RoleResponse) -> RoleInfo:
    return RoleInfo(
        role_id=role["id"],
        project_id=role["project-id"],
        name=role["name"],
        description=role.get("description"),
        provider_id=role.get("provider-id"),
        source_id=role.get("source-id"),
        ident=role.get("ident"),
    )


get_user_output = as_output(get_user)
get_users_output = as_output(get_users)
get_role_output = as_output(get_role)
get_roles_output = as_output(get_roles)
get_role_members_output = as_output(get_role_members)
get_grants_output = as_output(get_grants)
