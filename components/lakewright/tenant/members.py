"""Members of a tenant's roles: users of its units and jobs, listed users, and members of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lakewright.directories.directory import DirectoryError, GroupDirectory, Person
from lakewright.environment.environment import Environment
from lakewright.spec import Problem, SpecError, TenantSpec
from lakewright.spec.identity import RoleMembersSpec
from lakewright.spec.standard_roles import roles_of_unit


@dataclass(frozen=True)
class Membership:
    """Members of one role."""

    units: tuple[str, ...]
    """Units and jobs whose users are members."""
    users: tuple[str, ...]
    """Ids of further users that are members."""
    names: Mapping[str, str]
    """Display names of members of groups, by user id."""


def build_memberships(
    spec: TenantSpec, units: Iterable[str], people: Mapping[str, list[Person]], provider: str
) -> dict[str, Membership]:
    """Return the members of each role that has members.

    Args:
        spec: The tenant.
        units: Units and jobs that have a user.
        people: Members of the groups that `role_members` names.
        provider: Id of the identity provider in Lakekeeper.
    """
    roles = {unit: roles_of_unit(spec, unit) for unit in units}
    members_by_role = {
        role: RoleMembersSpec.model_construct() for unit in roles for role in roles[unit]
    } | spec.role_members
    return {
        role: _build_membership(members, [unit for unit in roles if role in roles[unit]], people, provider)
        for role, members in members_by_role.items()
    }


def _build_membership(
    members: RoleMembersSpec, units: list[str], people: Mapping[str, list[Person]], provider: str
) -> Membership:
    names = {f"{provider}~{person.subject}": person.name for group in members.groups for person in people[group]}
    return Membership(tuple(units), tuple(sorted({*members.users, *names})), names)


def read_groups(spec: TenantSpec, environment: Environment, resolve: Callable[[str], str]) -> dict[str, list[Person]]:
    """Return the present members of each group that `role_members` names.

    Raises:
        SpecError: With all groups that cannot be read.
    """
    settings = environment.directory
    if settings is None:
        return {}
    directory: GroupDirectory = settings.connect(resolve)
    people: dict[str, list[Person]] = {}
    problems: list[Problem] = []
    for role, members in spec.role_members.items():
        for group in members.groups:
            if group in people:
                continue
            try:
                people[group] = directory.list_members(group)
            except DirectoryError as error:
                problems.append(Problem(f"role_members.{role}.group", str(error)))
                people[group] = []
    if problems:
        raise SpecError(f"tenant {spec.name}", problems)
    return people
