"""Ends in a spec: of grants, members, shares and permissions to adopt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lakewright.directories.directory import Person
from lakewright.spec import SpecError, TenantSpec, parse_spec
from lakewright.tenant.members import Membership, build_memberships
from lakewright.validation.moment import has_ended, parse_duration, parse_end

DURING, AFTER = datetime(2040, 6, 30, 23, tzinfo=UTC), datetime(2040, 7, 1, tzinfo=UTC)
SPEC: dict[str, Any] = {
    "version": 1,
    "name": "acme",
    "owner": "data@acme.example",
    "environment": "production",
    "storage": {"main": {"backend": "aws", "bucket": "acme-lake", "region": "us-west-2"}},
    "warehouses": [{"name": "curated"}],
}
GRANT = {"to": "role:analysts", "privilege": "select", "on": {"warehouse": "curated"}}
ROLE = "arn:aws:iam::111122223333:role/audit"


def read(**changes: Any) -> TenantSpec:
    return parse_spec(SPEC | changes, "the test's spec")


def find_members(now: datetime, **role: Any) -> Membership:
    """Return the members of a role whose group has two people."""
    spec = read(grants=[GRANT], role_members={"analysts": role})
    people = {"team": [Person("ann", "Ann"), Person("ben", "Ben")]}
    return build_memberships(spec, [], people, "oidc", now)["analysts"]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2040-06-30", "2040-07-01T00:00:00+00:00"),
        ("2040-06-30T18:00:00Z", "2040-06-30T18:00:00+00:00"),
        ("2040-06-30T18:00:00+02:00", "2040-06-30T16:00:00+00:00"),
        ("2040-12-31", "2041-01-01T00:00:00+00:00"),
    ],
)
def test_day_ends_at_midnight_utc(text: str, end: str) -> None:
    assert parse_end(text).isoformat() == end


@pytest.mark.parametrize("text", ["soon", "2040-02-30", "2040-06-30T18:00:00", "9999-12-31", "", "20400630"])
def test_text_without_a_moment_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="expected a day such as"):
        read(grants=[GRANT | {"until": text}])


def test_end_has_come_at_its_moment() -> None:
    assert [has_ended("2040-06-30", now) for now in (DURING, AFTER)] == [False, True]
    assert not has_ended(None, AFTER)


def test_durations_have_a_unit() -> None:
    assert [parse_duration(text) for text in ("12h", "30d", "2w")] == [
        timedelta(hours=12),
        timedelta(days=30),
        timedelta(days=14),
    ]
    with pytest.raises(ValueError, match="expected a number of hours, days or weeks"):
        parse_duration("30")


def test_grants_that_differ_in_their_end_are_the_same() -> None:
    with pytest.raises(SpecError, match="expected each grant once"):
        read(grants=[GRANT, GRANT | {"until": "2040-06-30"}])


def test_member_ends_alone_or_with_the_role() -> None:
    users = ["oidc~eve", {"user": "oidc~zoe", "until": "2040-06-30"}]

    assert find_members(DURING, users=users).ends == {"oidc~zoe": "2040-07-01T00:00:00Z"}
    assert find_members(AFTER, users=users).users == ("oidc~eve",)
    assert find_members(AFTER, users=users, until="2040-06-29").users == ()
    assert find_members(DURING, users=users, until="2041-01-01").ends["oidc~eve"] == "2041-01-02T00:00:00Z"


def test_member_by_a_group_outlives_an_own_end() -> None:
    members = find_members(AFTER, users=[{"user": "oidc~ann", "until": "2040-06-30"}], group="team")

    assert (members.users, dict(members.ends)) == (("oidc~ann", "oidc~ben"), {})
    assert members.names == {"oidc~ann": "Ann", "oidc~ben": "Ben"}


def test_user_who_is_listed_again_is_refused() -> None:
    with pytest.raises(SpecError, match="expected each user once; oidc~ann is listed again"):
        find_members(DURING, users=["oidc~ann", {"user": "oidc~ann", "until": "2040-06-30"}])


def test_share_of_a_consumer_has_an_end() -> None:
    share = {"principal_arn": ROLE, "until": "2040-06-30"}

    assert read(warehouses=[{"name": "curated", "shares": {"audit": share}}]).warehouses[0].shares["audit"].until
    with pytest.raises(SpecError, match="unknown key"):
        read(warehouses=[{"name": "curated", "maintenance_role": share}])


def test_permission_to_adopt_is_in_force_until_its_end() -> None:
    spec = read(adopt={"until": "2040-06-30"}, warehouses=[{"name": "curated", "adopt": {"until": "2041-01-01"}}])

    before, after = spec.end_adoptions(DURING), spec.end_adoptions(AFTER)

    assert (before.adopt, after.adopt, after.warehouses[0].adopt) == (True, False, True)
    assert after.adopts(after.warehouses[0])
