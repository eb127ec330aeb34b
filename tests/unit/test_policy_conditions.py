"""The Condition element, operator by operator, with present and absent keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lakewright_sandbox.policies.conditions import UnknownOperatorError, parse_condition


def holds(operator: str, expected: list[str], actual: list[str] | None) -> bool:
    context = {} if actual is None else {"a:key": actual}
    return parse_condition(operator, "A:Key", expected).holds(context, variables=True)


@pytest.mark.parametrize(
    ("operator", "expected", "actual", "result"),
    [
        ("StringEquals", ["a"], ["a"], True),
        ("StringEquals", ["a", "b"], ["b"], True),
        ("StringEquals", ["a*"], ["ab"], False),
        ("StringEquals", ["a"], ["A"], False),
        ("StringNotEquals", ["a", "b"], ["b"], False),
        ("StringNotEquals", ["a", "b"], ["c"], True),
        ("StringEqualsIgnoreCase", ["a"], ["A"], True),
        ("StringNotEqualsIgnoreCase", ["a"], ["A"], False),
        ("StringLike", ["a/*"], ["a/b"], True),
        ("StringLike", ["a/*"], ["a"], False),
        ("StringNotLike", ["a/*"], ["b"], True),
        ("stringlike", ["a/*"], ["a/b"], True),
        ("NumericEquals", ["10"], ["10.0"], True),
        ("NumericNotEquals", ["10"], ["11"], True),
        ("NumericLessThan", ["10"], ["9"], True),
        ("NumericLessThan", ["10"], ["10"], False),
        ("NumericLessThanEquals", ["10"], ["10"], True),
        ("NumericGreaterThan", ["10"], ["11"], True),
        ("NumericGreaterThanEquals", ["10"], ["9"], False),
        ("NumericLessThan", ["10"], ["many"], False),
        ("DateLessThan", ["2026-01-02T00:00:00Z"], ["2026-01-01T00:00:00Z"], True),
        ("DateGreaterThan", ["2026-01-02T00:00:00Z"], ["2026-01-01T00:00:00Z"], False),
        ("DateEquals", ["2026-01-01T00:00:00Z"], ["1767225600"], True),
        ("DateLessThan", ["2026-01-02"], ["2026-01-01T23:59:59Z"], True),
        ("Bool", ["true"], ["true"], True),
        ("Bool", ["false"], ["true"], False),
        ("BinaryEquals", ["QmluYXJ5"], ["QmluYXJ5"], True),
        ("BinaryEquals", ["QmluYXJ5"], ["QmluYXJ4"], False),
        ("IpAddress", ["127.0.0.0/8"], ["127.0.0.1"], True),
        ("IpAddress", ["10.0.0.0/8", "::1/128"], ["::1"], True),
        ("IpAddress", ["10.0.0.0/8"], ["127.0.0.1"], False),
        ("NotIpAddress", ["10.0.0.0/8"], ["127.0.0.1"], True),
        ("ArnEquals", ["arn:aws:iam::*:role/a*"], ["arn:aws:iam::1:role/ab"], True),
        ("ArnLike", ["arn:aws:iam::1:role/?"], ["arn:aws:iam::1:role/ab"], False),
        ("ArnNotLike", ["arn:aws:iam::1:role/a"], ["arn:aws:iam::1:role/b"], True),
        ("ArnLike", ["*"], ["not an arn"], False),
    ],
)
def test_present_key(operator: str, expected: list[str], actual: list[str], *, result: bool) -> None:
    assert holds(operator, expected, actual) is result


@pytest.mark.parametrize(
    ("operator", "result"),
    [
        ("StringEquals", False),
        ("StringLike", False),
        ("NumericLessThan", False),
        ("DateLessThan", False),
        ("Bool", False),
        ("IpAddress", False),
        ("ArnLike", False),
        ("StringNotEquals", True),  # No match is requested, and there is none.
        ("StringNotLike", True),
        ("NotIpAddress", True),
        ("ArnNotEquals", True),
        ("StringEqualsIfExists", True),
        ("BoolIfExists", True),
        ("ForAllValues:StringEquals", True),
        ("ForAnyValue:StringEquals", False),
        ("ForAnyValue:StringNotEquals", False),
    ],
)
def test_absent_key(operator: str, *, result: bool) -> None:
    assert holds(operator, ["1"], None) is result


@pytest.mark.parametrize(
    ("operator", "actual", "result"),
    [
        ("ForAllValues:StringEquals", ["a", "b"], True),
        ("ForAllValues:StringEquals", ["a", "c"], False),
        ("ForAnyValue:StringEquals", ["c", "a"], True),
        ("ForAnyValue:StringEquals", ["c", "d"], False),
        ("ForAllValues:StringNotEquals", ["c", "d"], True),
        ("ForAllValues:StringNotEquals", ["c", "a"], False),
        ("ForAnyValue:StringNotEquals", ["c", "a"], True),
        ("ForAnyValue:StringNotEquals", ["b", "a"], False),
        ("ForAllValues:StringLikeIfExists", ["c"], False),
    ],
)
def test_keys_with_several_values(operator: str, actual: list[str], *, result: bool) -> None:
    assert holds(operator, ["a", "b"], actual) is result


def test_null_checks_whether_a_key_is_absent() -> None:
    assert holds("Null", ["true"], None)
    assert not holds("Null", ["true"], ["x"])
    assert holds("Null", ["false"], ["x"])
    assert not holds("Null", ["false"], None)


def test_values_may_have_variables() -> None:
    condition = parse_condition("StringLike", "s3:prefix", ["home/${aws:username}/*"])
    assert condition.holds({"s3:prefix": ["home/ann/x"], "aws:username": ["ann"]}, variables=True)
    assert not condition.holds({"s3:prefix": ["home/bob/x"], "aws:username": ["ann"]}, variables=True)
    assert not condition.holds({"s3:prefix": ["home/ann/x"]}, variables=True)


@pytest.mark.parametrize("operator", ["StringMatches", "NullIfExists", "ForAllValues:Null", "ForSomeValues:Bool"])
def test_unknown_operators_are_refused(operator: str) -> None:
    with pytest.raises(UnknownOperatorError):
        parse_condition(operator, "k", ["v"])


NEGATIONS = [
    ("StringEquals", "StringNotEquals"),
    ("StringLike", "StringNotLike"),
    ("StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase"),
    ("NumericEquals", "NumericNotEquals"),
    ("IpAddress", "NotIpAddress"),
    ("ArnLike", "ArnNotLike"),
]


@given(
    st.sampled_from(NEGATIONS),
    st.lists(st.sampled_from(["a", "A", "a*", "1", "1.0", "127.0.0.1", "arn:aws:s3:::b"]), min_size=1),
    st.none() | st.sampled_from(["a", "ab", "1", "127.0.0.1", "arn:aws:s3:::b"]).map(lambda value: [value]),
)
def test_negated_operator_is_the_opposite(pair: tuple[str, str], expected: list[str], actual: list[str] | None) -> None:
    assert holds(pair[0], expected, actual) is not holds(pair[1], expected, actual)


@given(
    st.sampled_from(["StringEquals", "StringNotLike", "NumericLessThan", "Bool"]),
    st.lists(st.sampled_from(["a", "true", "1", "2"]), min_size=1),
    st.sampled_from(["a", "true", "1", "3"]),
)
def test_if_exists_changes_nothing_for_a_present_key(operator: str, expected: list[str], actual: str) -> None:
    assert holds(f"{operator}IfExists", expected, [actual]) is holds(operator, expected, [actual])
