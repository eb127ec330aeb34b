"""Members of a tenant's roles: users of its units and jobs, listed users, and members of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from lakewright.directories.directory import DirectoryError, GroupDirectory, Person
from lakewright.environment.environment import Environment
from lakewright.spec import Problem, SpecError, TenantSpec
from lakewright.spec.identity import RoleMembersSpec
from lakewright.spec.standard_roles import roles_of_unit
from lakewright.validation.moment import format_moment, has_ended, parse_end


@dataclass(frozen=True)
class Membership:
    """Members of one role."""

    units: tuple[str, ...]
    """Units and jobs whose users are members."""
    users: tuple[str, ...]
    """Ids of further users that are members."""
    names: Mapping[str, str]
    """Display names of members of groups, by user id."""
    ends: Mapping[str, str]
    """Time at which a membership ends, by user id; RFC 3339, UTC."""


def build_memberships(
    spec: TenantSpec, units: Iterable[str], people: Mapping[str, list[Person]], provider: str, now: datetime
) -> dict[str, Membership]:
    """Return the members of each role that has members. A membership that has ended is left out.

    Args:
        spec: The tenant.
        units: Units and jobs that have a user.
        people: Members of the groups that `role_members` names.
        provider: Id of the identity provider in Lakekeeper.
        now: The time.
    """
    roles = {unit: roles_of_unit(spec, unit) for unit in units}
    members_by_role = {
        role: RoleMembersSpec.model_construct() for unit in roles for role in roles[unit]
    } | spec.role_members
    return {
        role: _build_membership(members, [unit for unit in roles if role in roles[unit]], people, provider, now)
        for role, members in members_by_role.items()
    }


def _build_membership(
    members: RoleMembersSpec, units: list[str], people: Mapping[str, list[Person]], provider: str, now: datetime
) -> Membership:
    group_names = {f"{provider}~{person.subject}": person.name for group in members.groups for person in people[group]}
    # A user who is listed and in a group is a member until the later end.
    ends: dict[str, str | None] = dict.fromkeys(group_names, members.until)
    for user, until in members.list_users():
        ends[user] = until if user not in ends else members.until
    users = sorted(user for user, until in ends.items() if not has_ended(until, now))
    return Membership(
        tuple(units),
        tuple(users),
        {user: name for user, name in group_names.items() if user in users},
        {user: format_moment(parse_end(until)) for user in users if (until := ends[user])},
    )


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
