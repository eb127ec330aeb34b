"""The ends of vended credentials of S3, Google Cloud Storage and Azure Storage."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from lakewright_spark.results.table_credentials import LEAD_SECONDS, has_expiring_credentials

END = 1_800_000_000


@pytest.mark.parametrize(
    "names",
    [
        ["s3.session-token-expires-at-ms"],
        ["gcs.oauth2.token-expires-at"],
        ["adls.sas-token-expires-at-ms.acme.dfs.core.windows.net"],
        ["adls.sas-token-expires-at-ms.acme.dfs.core.windows.net", "adls.sas-token-expires-at-ms.acme"],
    ],
)
def test_credentials_of_each_service_expire(names: list[str]) -> None:
    properties = {name: str((END + number * 600) * 1000) for number, name in enumerate(names)}
    table = cast(Any, SimpleNamespace(io=SimpleNamespace(properties=properties)))

    assert not has_expiring_credentials(table, now=END - LEAD_SECONDS - 1)
    assert has_expiring_credentials(table, now=END - LEAD_SECONDS + 1)


def test_keys_of_a_store_do_not_expire() -> None:
    table = cast(Any, SimpleNamespace(io=SimpleNamespace(properties={"s3.access-key-id": "AKIA1"})))

    assert not has_expiring_credentials(table)
