"""Stacks check the stores of new storages, before they make anything."""

from __future__ import annotations

import pytest
from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.buckets.store_preflight import RecordedStore, check


@pytest.mark.parametrize(
    ("is_made", "in_use", "is_checked"),
    [(False, "lake", False), (False, "other", True), (True, "lake", True)],
)
def test_store_of_an_earlier_version_is_not_checked(*, is_made: bool, in_use: str, is_checked: bool) -> None:
    """The state of an earlier version has the bucket of each warehouse, and not the store."""
    references: list[str] = []

    def resolve(reference: str) -> str:
        references.append(reference)
        raise UnresolvedCredentialError(reference)  # the check ends with a warning

    store = RecordedStore(
        bucket="lake",
        region="local-01",
        endpoint="https://store.example",
        access_key_id="env:ID",
        secret_access_key="env:SECRET",
        is_made=is_made,
    )
    check({"main": store.with_resolver(resolve)}, {}, {}, in_use={in_use})

    assert bool(references) is is_checked
