"""Table policies: validation, table properties, and precedence of several policies for one table."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import BadAddressError
from lakewright_spark.maintenance.switches import reason_to_skip
from lakewright_spark.policies.date_pattern import date_expression, format_moment, validate_pattern
from lakewright_spark.policies.model import PolicyPattern, RankingPolicy, RetentionPolicy, TablePolicies
from lakewright_spark.policies.resolution import resolve
from lakewright_spark.policies.retention_rules import cutoff, retention_mistakes
from lakewright_spark.table_identifier import TableIdentifier, literal
from pydantic import ValidationError

ORDERS = TableIdentifier("curated", ("sales", "daily"), "orders")
NOW = datetime(2026, 3, 31, 13, 45, tzinfo=UTC)


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({"retention": {"keep": 0, "column": "day"}}, "greater than or equal to 1"),
        ({"retention": {"keep": 1, "unit": "week", "column": "day"}}, "'hour', 'day', 'month' or 'year'"),
        ({"retention": {"keep": 1, "column": "day", "pattern": "dd-MM-yyyy"}}, "yyyy, MM, dd, HH in this order"),
        ({"retention": {"keep": 1, "unit": "hour", "column": "day", "pattern": ""}}, "tells the hour"),
        ({"history": {}}, "max_age_days"),
        ({"history": {"max_age_days": 0}}, "greater than or equal to 1"),
        ({"history": {"versions": 101}}, "less than or equal to 100"),
        ({"history": {"versions": 1}}, "greater than or equal to 2"),
        ({"orphan_files": {"older_than_days": 0}}, "greater than or equal to 1"),
        ({"compaction": {"strategy": "z-order"}}, "expected `columns`"),
        ({"compaction": {"target_file_size": "a lot"}}, "byte string"),
        ({"column_tags": {"email": ["SECRET"]}}, "'PII' or 'HC'"),
        ({"lock": {"since": "2026-01-01T00:00:00"}}, "with a zone"),
        ({"maintenance": {"disabled_jobs": ["vacuum"]}}, "'retention'"),
        ({"retentions": {}}, "unknown key retentions; expected some of retention, history"),
    ],
)
def test_policy_out_of_range(policies: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TablePolicies.model_validate(policies)
    assert expected in str(caught.value)


def test_policies_as_table_properties() -> None:
    policies = TablePolicies.model_validate(
        {
            "retention": {"keep": 400, "column": "day"},
            "orphan_files": {"older_than_days": 2},
            "compaction": {"strategy": "z-order", "columns": ["a", "b"], "target_file_size": "64MiB"},
            "column_tags": {"email": ["PII", "HC"]},
            "replica": True,
            "lock": {"since": "2026-01-01T00:00:00Z", "expires_in_days": 3},
            "maintenance": {"disabled_jobs": ["compaction"]},
        }
    )
    properties = policies.properties()
    assert properties["lakewright.policy.orphan-files"] == '{"older_than_days": 2}'
    assert properties["lakewright.policy.replica"] == "true"
    assert TablePolicies.from_properties({**properties, "write.format.default": "parquet"}) == policies
    with pytest.raises(ValueError, match=r"lakewright.policy.history: expected JSON"):
        TablePolicies.from_properties({"lakewright.policy.history": "three days"})


@pytest.mark.parametrize(
    ("match", "is_match"),
    [
        ("curated.sales.daily.orders", True),
        ("*.sales.*.ord*", True),
        ("Curated.SALES.daily.*", True),
        ("curated.*.orders", False),
        ("curated.sales.daily.order", False),
        ("curated.sales.daily.(.*)", False),
    ],
)
def test_pattern_matches_by_level(match: str, *, is_match: bool) -> None:
    assert PolicyPattern(match=match).matches("curated", ("sales", "daily"), "orders") is is_match


def test_invalid_patterns() -> None:
    assert PolicyPattern(match="w.`a.b`.t").matches("w", ("a.b",), "t")
    for match in ("w.t", "w..t", ".w.n.t", "w.n.t."):
        with pytest.raises(ValidationError, match=r"expected (WAREHOUSE|text between)"):
            PolicyPattern(match=match)


def test_order_of_precedence() -> None:
    patterns = [
        PolicyPattern.model_validate({"match": "*.*.*.*", "history": {"versions": 9}, "sharing": True}),
        PolicyPattern.model_validate({"match": "curated.*.*.*", "history": {"max_age_days": 2}}),
        PolicyPattern.model_validate({"match": "other.*.*.*", "history": {"max_age_days": 1}}),
    ]
    resolved = resolve(ORDERS, {"lakewright.policy.sharing": "false"}, patterns)
    assert resolved.policies == TablePolicies.model_validate({"history": {"max_age_days": 2}, "sharing": False})
    assert resolved.sources == {"history": "curated.*.*.*", "sharing": "the table"}


def test_a_weight_keeps_disabled_jobs() -> None:
    patterns = [
        PolicyPattern.model_validate({"match": "curated.*.*.*", "maintenance": {"disabled_jobs": ["retention"]}}),
        PolicyPattern.model_validate({"match": "curated.sales.*.*", "ranking": {"weight": 4}}),
    ]
    policies = resolve(ORDERS, {}, patterns).policies
    assert reason_to_skip("retention", policies, NOW), "the weight enables no job"
    assert policies.ranking == RankingPolicy(weight=4)


def test_patterns_in_the_catalog_configuration() -> None:
    config = CatalogConfig.model_validate(
        {
            "tenant": "acme",
            "uri": "https://lakekeeper.example/catalog",
            "project_id": "acme",
            "warehouses": [CatalogWarehouse(name="curated", id="1")],
            "policies": [{"match": "curated.*.*", "history": {"versions": 2}}],
        }
    )
    assert json.loads(config.to_json())["policies"] == [{"match": "curated.*.*", "history": {"versions": 2}}]
    assert CatalogConfig.from_json(config.to_json()) == config
    assert "policies" not in json.loads(config.model_copy(update={"policies": ()}).to_json())


COLUMNS = {"ts": "timestamptz", "day": "string", "n": "int"}
BY_DAY = [("ts", "day"), ("n", "bucket[4]")]


@pytest.mark.parametrize(
    ("retention", "partitions", "mistake"),
    [
        ({"column": "ts"}, BY_DAY, None),
        ({"column": "ts", "unit": "hour"}, BY_DAY, "expected `unit: day`"),
        ({"column": "day"}, BY_DAY, "expected the column that time partitions are made of, ts"),
        ({"column": "ts", "pattern": ""}, BY_DAY, "expected no `pattern`"),
        ({"column": "day", "pattern": ""}, [("day", "identity")], None),
        ({"column": "day"}, [("day", "identity")], "expected `pattern`"),
        ({"column": "ts", "pattern": ""}, [], "`ts` is timestamptz"),
        ({"column": "when"}, BY_DAY, "there is no `when`"),
    ],
)
def test_retention_must_fit_the_partitions(
    retention: dict[str, Any], partitions: list[tuple[str, str]], mistake: str | None
) -> None:
    problems = retention_mistakes(RetentionPolicy(keep=1, **retention), COLUMNS, partitions)
    assert problems == [] if mistake is None else mistake in problems[0]


@pytest.mark.parametrize(
    ("unit", "keep", "expected"),
    [
        ("hour", 14, "2026-03-30T23:00"),
        ("day", 31, "2026-02-28T00:00"),
        ("month", 4, "2025-11-01T00:00"),
        ("year", 2, "2024-01-01T00:00"),
    ],
)
def test_retention_keeps_whole_units(unit: Any, keep: int, expected: str) -> None:
    cutoff_time = cutoff(RetentionPolicy(keep=keep, unit=unit, column="ts"), NOW)
    assert cutoff_time == datetime.fromisoformat(expected).replace(tzinfo=UTC)


_moments = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001


@given(_moments, _moments, st.sampled_from(["yyyy-MM-dd", "yyyyMMddHH", "yyyy-MM-dd'T'HH", "yyyy''MM", "yyyy"]))
def test_date_patterns_sort_as_dates(one: datetime, other: datetime, pattern: str) -> None:
    validate_pattern(pattern, "year")
    if one < other:
        assert format_moment(one, pattern) <= format_moment(other, pattern)


@pytest.mark.parametrize("pattern", ["yy-MM", "MM", "yyyy-dd", "yyyy-MM-dd'T", "yyyy[-MM]", "yyyy-MM-dd hh", "--"])
def test_unsortable_date_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        validate_pattern(pattern, "year")


def test_table_names_are_quoted_for_spark() -> None:
    assert TableIdentifier.parse("w", "a.`b.c`.it's").within == ("a", "b.c", "it's")
    odd = TableIdentifier("w", ("a",), "x`y'z.")
    assert odd.sql == "`w`.`a`.`x``y'z.`"
    assert odd.argument == literal("`a`.`x``y'z.`") == r"'`a`.`x``y\'z.`'"
    assert TableIdentifier.parse("w", "a.`x``y'z.`") == odd
    assert str(odd) == "w.a.`x``y'z.`"
    for text in ("orders", "a.", ".a", "a..b", "a.`b", ""):
        with pytest.raises(BadAddressError, match=r"expected NAMESPACE\.TABLE"):
            TableIdentifier.parse("w", text)


@given(_moments, st.sampled_from(["yyyy-MM-dd", "yyyyMMddHH", "yyyy-MM-dd'T'HH", "yyyy''MM", "yyyy", "yyyy.MM.dd"]))
def test_date_expression_accepts_formatted_dates(moment: datetime, pattern: str) -> None:
    expression = re.compile(date_expression(pattern))
    text = format_moment(moment, pattern)
    assert expression.fullmatch(text)
    assert not expression.fullmatch(f"{text} ")
    assert not expression.fullmatch(text[:-1])


def test_date_expression_knows_the_calendar() -> None:
    expression = re.compile(date_expression("yyyyMMdd"))
    first = date(1896, 1, 1)
    dates = {f"{first + timedelta(days=days):%Y%m%d}" for days in range(20 * 366)}
    numbers = (f"{number:08}" for number in range(18960000, 19150000))
    assert {text for text in numbers if expression.fullmatch(text)} == {text for text in dates if text < "19150000"}
    assert not expression.fullmatch("00000101")
