"""Wildcards, policy variables and ARNs: patterns of a policy against values of a request."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lakewright_sandbox.policies.patterns import action_matches, arn_matches, matches, variable_pattern_matches

TEXT = st.text(alphabet="ab/.:*?[]\\\n$^é", max_size=12)


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("*", "", True),
        ("a*", "a", True),
        ("a*c", "abbbc", True),
        ("a*c", "abbb", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("a.c", "abc", False),
        ("a/*", "a/b/c", True),
        ("a/*", "ab/c", False),
        ("A", "a", False),
    ],
)
def test_wildcards(pattern: str, value: str, *, expected: bool) -> None:
    assert matches(pattern, value) is expected


@given(TEXT)
def test_text_without_wildcards_matches_only_itself(text: str) -> None:
    literal = text.replace("*", "x").replace("?", "y")
    assert matches(literal, literal)
    assert not matches(literal, literal + "z")


@given(TEXT, TEXT, TEXT)
def test_star_is_any_characters_or_none(before: str, anything: str, after: str) -> None:
    literal_before, literal_after = (re.sub(r"[*?]", "x", text) for text in (before, after))
    assert matches(f"{literal_before}*{literal_after}", literal_before + anything + literal_after)


@given(TEXT, TEXT)
def test_matcher_agrees_with_a_simple_one(pattern: str, value: str) -> None:
    def slow(p: str, v: str) -> bool:
        if not p:
            return not v
        if p[0] == "*":
            return slow(p[1:], v) or (bool(v) and slow(p, v[1:]))
        return bool(v) and p[0] in ("?", v[0]) and slow(p[1:], v[1:])

    assert matches(pattern, value) == slow(pattern, value)


@pytest.mark.parametrize(
    ("pattern", "action", "expected"),
    [
        ("*", "s3:GetObject", True),
        ("s3:*", "s3:GetObject", True),
        ("s3:Get*", "s3:GetObject", True),
        ("S3:getobject", "s3:GetObject", True),
        ("s3:Get*", "s3:PutObject", False),
        ("iam:*", "s3:GetObject", False),
        ("s3:GetObject", "s3:GetObjectVersion", False),
    ],
)
def test_actions_ignore_case_and_match_their_service(pattern: str, action: str, *, expected: bool) -> None:
    assert action_matches(pattern, action) is expected


@pytest.mark.parametrize(
    ("pattern", "arn", "expected"),
    [
        ("*", "arn:aws:s3:::bucket/key", True),
        ("arn:aws:s3:::bucket/*", "arn:aws:s3:::bucket/a/b:c", True),
        ("arn:aws:s3:::bucket/*", "arn:aws:s3:::bucket", False),
        ("arn:aws:s3:::bucket", "arn:aws:s3:::bucket/key", False),
        ("arn:aws:s3:::Bucket/*", "arn:aws:s3:::bucket/key", False),
        ("arn:aws:iam::123456789012:role/*", "arn:aws:iam::999999999999:role/a", False),
        ("arn:aws:iam::*:role/a", "arn:aws:iam::123456789012:role/a", True),
        ("arn:*:a", "arn:aws:iam::123456789012:a", False),  # A wildcard stays within its field.
        ("arn:aws:s3", "arn:aws:s3:::bucket", True),  # Missing fields are completed with wildcards.
    ],
)
def test_arns_are_compared_field_by_field(pattern: str, arn: str, *, expected: bool) -> None:
    assert arn_matches(pattern, arn) is expected


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("home/${aws:username}/*", "home/ann/file", True),
        ("home/${aws:username}/*", "home/bob/file", False),
        ("home/${AWS:UserName}/*", "home/ann/file", True),
        ("home/${aws:principaltag/team}/*", "home//file", False),  # An absent variable matches nothing.
        ("home/${aws:principaltag/team, 'none'}/*", "home/none/file", True),
        ("${*}", "*", True),
        ("${*}", "anything", False),
        ("${?}${$}", "?$", True),
        ("${s3:prefix}", "a*", True),
        ("${s3:prefix}", "abc", False),  # A star that comes from the request is no wildcard.
        ("${many}", "x", False),  # A key with several values is no variable.
    ],
)
def test_variables(pattern: str, value: str, *, expected: bool) -> None:
    context = {"aws:username": ["ann"], "s3:prefix": ["a*"], "many": ["x", "y"]}
    assert variable_pattern_matches(pattern, value, context) is expected


def test_variable_with_a_colon_stays_in_its_arn_field() -> None:
    context = {"aws:username": ["ann"]}
    assert arn_matches("arn:aws:s3:::bucket/${aws:username}/*", "arn:aws:s3:::bucket/ann/x", context)
    assert not arn_matches("arn:aws:s3:::bucket/${aws:username}/*", "arn:aws:s3:::bucket/bob/x", context)


def test_variables_are_plain_text_in_the_old_version() -> None:
    assert variable_pattern_matches("${aws:username}", "${aws:username}", None)
    assert not variable_pattern_matches("${aws:username}", "ann", None)
