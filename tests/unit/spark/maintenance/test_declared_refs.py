"""Declared branches and tags against live branches and tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.jobs import refs
from lakewright_spark.maintenance.jobs.job import History
from lakewright_spark.maintenance.table.declared_refs import CREATED_REFS, RefChanges, compare_refs
from lakewright_spark.maintenance.table.expiration import Ref, Snapshot
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import RefPolicy, TablePolicies
from lakewright_spark.table_identifier import TableIdentifier

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)
LINE = [Snapshot(1, None, NOW - 3 * DAY), Snapshot(2, 1, NOW - 2 * DAY)]
ON_BRANCH = Snapshot(3, 2, NOW - DAY)
MAIN = Ref("main", "BRANCH", 2)
AUDIT = Ref("audit", "BRANCH", 1, min_snapshots=5)


def compare(
    ref_policies: Mapping[str, Mapping[str, Any]], *live_refs: Ref, created: tuple[str, ...] = ()
) -> RefChanges:
    policies = {name: RefPolicy.model_validate(policy) for name, policy in ref_policies.items()}
    return compare_refs(policies, [MAIN, *live_refs], [*LINE, ON_BRANCH], current=2, created=created, now=NOW)


def test_missing_branches_and_tags_are_created() -> None:
    ref_policies = {"audit": {"type": "branch"}, "close": {"type": "tag", "max_age_days": 3}}
    assert compare(ref_policies).created == ("audit", "close")
    expiring = compare({"close": {"type": "tag", "max_age_days": 2}})
    assert (expiring.created, expiring.waiting) == ((), ("close",)), "it would expire at once"
    assert not expiring


def test_retention_is_compared() -> None:
    assert not compare({"audit": {"type": "branch", "min_snapshots": 5}}, AUDIT)
    for policy in ({}, {"min_snapshots": 4}, {"min_snapshots": 5, "max_age_days": 1}):
        assert compare({"audit": {"type": "branch", **policy}}, AUDIT).changed == ("audit",)
    spans = replace(AUDIT, max_age=9 * DAY, max_snapshot_age=8 * DAY)
    policy = {"type": "branch", "min_snapshots": 5, "max_age_days": 9, "max_snapshot_age_days": 8}
    assert not compare({"audit": policy}, spans)


def test_only_created_branches_and_tags_are_removed() -> None:
    tag = Ref("close", "TAG", 3)
    assert not compare({}, AUDIT, tag)
    assert compare({}, AUDIT, tag, created=("audit", "close", "dropped")).removed == ("audit", "close")


def test_name_of_a_ref_that_is_gone_is_forgotten() -> None:
    """A user may use the name again: the job did not create that branch or tag."""
    waiting = {"close": {"type": "tag", "max_age_days": 2}}
    for ref_policies in ({}, waiting):
        changes = compare(ref_policies, AUDIT, created=("close",))
        assert (changes.forgotten, bool(changes)) == (("close",), True)
    recreated = compare({"close": {"type": "tag"}}, created=("close",))
    assert (recreated.created, recreated.forgotten) == (("close",), ())
    table_facts = {"properties": {CREATED_REFS: '["close"]'}, "refs": (MAIN,)}
    assert refs.is_due(facts(**table_facts), TablePolicies(), History(), NOW) == (True, "forget close")


def test_branch_with_commits_of_its_own_is_kept() -> None:
    changes = compare({}, replace(AUDIT, snapshot=ON_BRANCH.id), created=("audit",))
    assert (changes.removed, changes.unmerged) == ((), ("audit",))


def test_tag_with_the_name_of_a_branch_is_refused() -> None:
    with pytest.raises(PolicyRefusedError, match="expected audit to be a tag, found a branch; rename it"):
        compare({"audit": {"type": "tag"}}, AUDIT)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"main": {"type": "branch"}}, "policy `history` has the retention of `main`"),
        ({"a": {"type": "tag", "min_snapshots": 2}}, "only branches have"),
        ({"a b": {"type": "tag"}}, "should match pattern"),
    ],
)
def test_mistakes_in_the_policy(policy: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        TablePolicies.model_validate({"refs": policy})


def facts(**changes: Any) -> TableFacts:
    table = TableIdentifier("lake", ("sales",), "orders")
    whole = TableFacts(table=table, uuid="u", properties={}, touched_at=NOW, snapshots=tuple(LINE), refs=(MAIN,))
    return replace(whole, snapshot=2, **changes)


def test_job_is_due_until_the_refs_are_as_declared() -> None:
    policies = TablePolicies.model_validate({"refs": {"audit": {"type": "branch", "min_snapshots": 5}}})
    assert refs.is_due(facts(), policies, History(), NOW) == (True, "create audit")
    created = {"properties": {CREATED_REFS: '["audit"]'}, "refs": (MAIN, AUDIT)}
    assert refs.is_due(facts(**created), policies, History(), NOW) == (False, "as declared")
    assert refs.is_due(facts(**created), TablePolicies(), History(), NOW) == (True, "remove audit")
    assert not refs.is_due(facts(refs=(MAIN, AUDIT)), TablePolicies(), History(), NOW).is_due, "a user created it"
    with pytest.raises(PolicyRefusedError, match="expected a JSON list of names"):
        refs.is_due(facts(properties={CREATED_REFS: "audit"}), policies, History(), NOW)


def test_last_tag_of_a_table_is_not_removed() -> None:
    """Lakekeeper responds to the removal of the last branch or tag with success, and keeps it."""
    tags = [Ref(name, "TAG", 1) for name in ("close", "quarter")]
    changes = compare_refs({}, tags, LINE, current=None, created=["close", "quarter"], now=NOW)
    assert (changes.removed, changes.last) == (("close",), "quarter")
    assert compare({}, *tags, created=("close", "quarter")).last is None, "main remains"
