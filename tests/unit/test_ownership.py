"""Marks of objects, consents of an operator, and the running stack."""

from types import SimpleNamespace

import pytest
from lakewright.ownership.consent import ADOPT, Consent, ConsentKind, format_consents, is_permitted, parse_consents
from lakewright.ownership.mark import (
    Claimant,
    Ownership,
    OwnershipMark,
    UnreadableMarkError,
    parse_description,
    parse_tags,
)
from lakewright.ownership.record_role import (
    RECORD_ROLE,
    exclude_record_roles,
    format_warehouse_record,
    is_record_name,
    select_records,
)
from lakewright.ownership.refusal import format_adoption_refusal, format_change_refusal
from lakewright.ownership.running_stack import find_running_stack, parse_stack, run_as_stack

MARK = OwnershipMark("lakewright/acme", "0123456789abcdef")
WAREHOUSE_ID = "01983a4e-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    ("mark", "claimant", "expected"),
    [
        (MARK, Claimant("lakewright/acme", "0123456789abcdef"), Ownership.OWN),
        (MARK, Claimant("lakewright/acme"), Ownership.OWN),
        (MARK, Claimant(None, "0123456789abcdef"), Ownership.OWN),
        (MARK, Claimant("lakewright/copy", "0123456789abcdef"), Ownership.FOREIGN),
        (MARK, Claimant("lakewright/acme", "fedcba9876543210"), Ownership.FOREIGN),
        (MARK.permit("lakewright/copy"), Claimant("lakewright/copy", "fedcba9876543210"), Ownership.CONSENTED),
        (MARK.permit("lakewright/copy"), Claimant("lakewright/acme", "0123456789abcdef"), Ownership.OWN),
        (MARK, Claimant(), Ownership.UNMARKED),
        (OwnershipMark(), Claimant("lakewright/acme", "0123456789abcdef"), Ownership.UNMARKED),
        (OwnershipMark(adopt="lakewright/acme"), Claimant("lakewright/acme"), Ownership.CONSENTED),
        (OwnershipMark(None, "0123456789abcdef"), Claimant("lakewright/acme", "fedcba9876543210"), Ownership.FOREIGN),
    ],
)
def test_a_mark_is_compared_with_a_stack(mark: OwnershipMark, claimant: Claimant, expected: Ownership) -> None:
    assert mark.compare(claimant) is expected


@pytest.mark.parametrize("mark", [MARK, MARK.permit("lakewright/new"), OwnershipMark(adopt="lakewright/new")])
def test_tags_and_description_hold_the_whole_mark(mark: OwnershipMark) -> None:
    assert parse_tags({"team": "lake", **mark.to_tags()}) == mark
    assert parse_description(mark.to_description()) == mark


@pytest.mark.parametrize("text", [None, "", "by hand", "[]", '{"version": 2}', '{"version": 1, "stack": 3}'])
def test_other_descriptions_are_possible_owners(text: str | None) -> None:
    with pytest.raises(UnreadableMarkError):
        parse_description(text)


def test_the_record_role_is_recognized_by_its_name() -> None:
    roles = [{"name": "analysts"}, {"name": RECORD_ROLE.upper(), "description": MARK.to_description()}]
    synced = {"name": RECORD_ROLE, "provider-id": "directory", "description": MARK.permit("x/y").to_description()}

    warehouse_record = {"name": format_warehouse_record(WAREHOUSE_ID), "description": MARK.to_description()}

    assert select_records([synced, *roles, warehouse_record]) == {
        RECORD_ROLE: roles[1],
        f"{RECORD_ROLE}-{WAREHOUSE_ID}": warehouse_record,
    }
    assert exclude_record_roles([synced]) == [synced]
    assert exclude_record_roles([*roles, warehouse_record]) == roles[:1]
    assert not is_record_name(f"{RECORD_ROLE}-keeper")


def test_consents_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    consents = {Consent(ConsentKind.BUCKET, "acme-lake"), Consent(ConsentKind.WAREHOUSE, "acme/raw")}
    monkeypatch.setenv(ADOPT, format_consents(consents))

    assert parse_consents("bucket=acme-lake, warehouse=acme/raw") == consents
    assert is_permitted(ConsentKind.WAREHOUSE, "raw", "acme/raw")
    assert not is_permitted(ConsentKind.BUCKET, "acme")


@pytest.mark.parametrize("text", ["acme", "table=t", "bucket=", "bucket"])
def test_a_malformed_consent_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADOPT, text)

    with pytest.raises(ValueError, match="LAKEWRIGHT_ADOPT: expected KIND=NAME"):
        is_permitted(ConsentKind.BUCKET, "acme")


def test_the_running_stack_is_that_of_the_request() -> None:
    def delete(request: object) -> str | None:
        assert request
        return find_running_stack()

    urn = "urn:pulumi:acme::lakewright::lakewright:index:Tenant$pulumi-python:dynamic:Resource::acme"

    assert delete(SimpleNamespace(urn=urn)) == parse_stack(urn) == "lakewright/acme"
    assert find_running_stack() is None
    assert run_as_stack("lakewright", "copy", find_running_stack) == "lakewright/copy"


def test_refusals_name_the_owner_and_the_way_out() -> None:
    consent = Consent(ConsentKind.PROJECT, "acme")
    claimant = Claimant("lakewright/copy")

    changing = format_change_refusal("project acme", MARK, claimant, consent)
    adopting = format_adoption_refusal("project acme", OwnershipMark(), claimant, consent)

    assert "belongs to stack `lakewright/acme`" in changing
    assert "`lakewright stack forget --stack copy`" in changing
    assert "has no mark of a stack" in adopting
    assert "`lakewright up --adopt project=acme`" in adopting
