"""A Spark job is refused at its start if its token expires before its deadline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth, NoAuth, TokenAuth, TokenFileAuth
from lakewright_spark.errors import IdentityError
from lakewright_spark.session.secrets import NEVER, check_before_start, expiry

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def encode_token(end: datetime | None) -> str:
    claims: dict[str, Any] = {"sub": "job"} | ({"exp": int(end.timestamp())} if end else {})
    return jwt.encode(claims, "k" * 32, algorithm="HS256")


def config(auth: Any) -> CatalogConfig:
    warehouse = CatalogWarehouse(name="w", id="1")
    return CatalogConfig(
        tenant="acme", uri="https://c.example/catalog", project_id="acme", auth=auth, warehouses=[warehouse]
    )


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    return tmp_path / "token"


def read_refusal(file: Path, text: str, deadline: datetime | None) -> str:
    file.write_text(text)
    with pytest.raises(IdentityError) as error:
        check_before_start(config(TokenFileAuth(kind="token-file", path=str(file))), deadline, NOW)
    return str(error.value)


def test_deadline_before_the_token_expires(token_file: Path) -> None:
    token_file.write_text(encode_token(NOW + HOUR))
    auth = TokenFileAuth(kind="token-file", path=str(token_file))
    check_before_start(config(auth), NOW + HOUR - timedelta(seconds=1), NOW)


def test_deadline_after_the_token_expires(token_file: Path) -> None:
    message = read_refusal(token_file, encode_token(NOW + HOUR), NOW + HOUR)
    assert f"the token in {token_file} expires at 2026-11-21 13:00:00 UTC" in message
    assert "give a deadline below 3600 s" in message


def test_job_without_a_deadline(token_file: Path) -> None:
    assert "the job has no deadline" in read_refusal(token_file, encode_token(NOW + HOUR), None)


def test_expired_token(token_file: Path) -> None:
    assert "expired at 2026-11-21 11:00:00 UTC" in read_refusal(token_file, encode_token(NOW - HOUR), NOW + HOUR)
    with pytest.raises(IdentityError, match="Provide a new token"):
        check_before_start(config(TokenAuth(kind="token", token=f"file:{token_file}")), None, NOW)


def test_empty_or_invalid_token_file(token_file: Path) -> None:
    assert "is no JWT" in read_refusal(token_file, "opaque", NOW + HOUR)
    message = read_refusal(token_file, "", NOW + HOUR)
    assert f"file:{token_file}" in message
    assert "of a variable or file that is not empty" in message


def test_token_without_expiry_needs_no_deadline(token_file: Path) -> None:
    assert expiry(encode_token(None)) == NEVER
    token_file.write_text(encode_token(None))
    check_before_start(config(TokenFileAuth(kind="token-file", path=str(token_file))), None, NOW)


def test_other_auth_kinds_need_no_deadline() -> None:
    credentials = ClientCredentialsAuth(
        kind="client-credentials", token_url="https://idp.example", client_id="job", client_secret="env:NOT_SET"
    )
    for auth in (NoAuth(), credentials):
        check_before_start(config(auth), None, NOW)


def test_messages_contain_no_token(token_file: Path) -> None:
    for end in (NOW - HOUR, NOW + HOUR):
        assert encode_token(end) not in read_refusal(token_file, encode_token(end), None)
