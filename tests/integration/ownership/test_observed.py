"""Refusals that the random test of owners expects."""

from __future__ import annotations

import httpx
import pytest

from tests.integration.ownership.observed import is_expected_refusal

DENIED = "User is not authorized to perform: s3:PutObject on resource: t1, with an explicit deny in a policy"
REFUSED = '{"error": {"type": "ShortTermCredentialError", "code": 412}}'


@pytest.mark.parametrize(
    ("response", "is_archived", "expected"),
    [
        (httpx.Response(403, text=DENIED), True, True),
        (httpx.Response(403, text=DENIED), False, False),
        (httpx.Response(500, text=DENIED), True, True),
        (httpx.Response(500, text=DENIED), False, False),
        (httpx.Response(404), False, True),
        (httpx.Response(500), True, False),
    ],
)
def test_only_archives_deny_tables(response: httpx.Response, *, is_archived: bool, expected: bool) -> None:
    assert is_expected_refusal(response, is_archived=is_archived, is_inaccessible=False) == expected


@pytest.mark.parametrize("is_inaccessible", [True, False])
def test_role_refuses_after_an_interrupted_up_only(*, is_inaccessible: bool) -> None:
    response = httpx.Response(412, text=REFUSED)

    assert is_expected_refusal(response, is_archived=False, is_inaccessible=is_inaccessible) == is_inaccessible
    assert not is_expected_refusal(httpx.Response(412), is_archived=True, is_inaccessible=True)
