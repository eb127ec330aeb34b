"""Lifecycle rules of a bucket: for all of it, or by prefix."""

from __future__ import annotations

from typing import Any

from lakewright.storage.lifecycle import PrefixLifecycle, lifecycle_rules


def index_by_id(rules: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {rule["id"]: rule for rule in rules}


def test_bucket_without_own_lifecycles_has_two_rules() -> None:
    rules = index_by_id(lifecycle_rules(7, 30, {"acme/a": None, "acme/b": None}))

    assert list(rules) == ["incomplete-uploads", "old-versions"]
    assert {rule["filter"]["prefix"] for rule in rules.values()} == {""}


def test_each_prefix_has_rules_if_one_has_its_own() -> None:
    """S3 applies the earliest expiration, so that no rule of the whole bucket may remain."""
    rules = index_by_id(lifecycle_rules(7, 30, {"acme/a": PrefixLifecycle(noncurrent_version_days=90), "acme/b": None}))

    assert {rule["filter"]["prefix"] for rule in rules.values()} == {"acme/a/", "acme/b/"}
    days = {
        name: rule["noncurrent_version_expiration"]["noncurrent_days"] for name, rule in rules.items() if "old" in name
    }
    assert days == {"old-versions:acme/a": 90, "old-versions:acme/b": 30}
    uploads = rules["incomplete-uploads:acme/a"]["abort_incomplete_multipart_upload"]
    assert uploads == {"days_after_initiation": 7}


def test_tiering_moves_one_prefix_only() -> None:
    rules = index_by_id(lifecycle_rules(7, 30, {"acme/a": PrefixLifecycle(intelligent_tiering_days=0), "acme/b": None}))

    assert rules["tiering:acme/a"]["transitions"] == [{"days": 0, "storage_class": "INTELLIGENT_TIERING"}]
    assert "tiering:acme/b" not in rules


def test_rule_of_a_long_prefix_has_a_valid_id() -> None:
    rules = lifecycle_rules(7, 30, {"x" * 800: PrefixLifecycle(noncurrent_version_days=1)})

    assert all(len(rule["id"]) <= 255 for rule in rules)
    assert len({rule["id"] for rule in rules}) == 2
