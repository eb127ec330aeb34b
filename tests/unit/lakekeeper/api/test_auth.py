"""Tokens: by reference, from a file, or from an identity provider; renewed early, once, and after a 401."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from lakewright.lakekeeper.api.connection.auth import BearerAuth, ClientCredentials, FixedToken, TokenFile, Tokens
from lakewright.lakekeeper.api.connection.errors import NotAuthenticatedError
from lakewright.lakekeeper.api.connection.server import ServerClientCredentialsAuth, ServerRef
from pydantic import ValidationError

SETTINGS = ServerClientCredentialsAuth(
    kind="client-credentials",
    token_url="https://idp.test/token",
    client_id="lakewright",
    client_secret="env:SECRET",
    scope="lake",
    audience="lakekeeper",
)


class TokenIssuer:
    """Issues tokens named t1, t2, ... that are valid for 100 s."""

    def __init__(self, answer: httpx.Response | None = None) -> None:
        self._answer = answer
        self.forms: list[dict[str, list[str]]] = []
        self.time = 0.0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.forms.append(parse_qs(request.content.decode()))
        body = {"access_token": f"t{len(self.forms)}", "expires_in": 100}
        return self._answer or httpx.Response(200, json=body)

    def tokens(self) -> ClientCredentials:
        http = httpx.Client(transport=httpx.MockTransport(self))
        return ClientCredentials(SETTINGS, lambda _: "s3cret", http, now=lambda: self.time)


def call_with_tokens(tokens: Tokens, accepted: str) -> tuple[int, list[str]]:
    """Return the status of a call to a server that accepts one of these tokens, and the tokens that it received."""
    received: list[str] = []

    def serve(request: httpx.Request) -> httpx.Response:
        received.append(request.headers["authorization"])
        return httpx.Response(200 if received[-1] == f"Bearer {accepted}" else 401)

    http = httpx.Client(transport=httpx.MockTransport(serve), auth=BearerAuth(tokens))
    return http.get("https://lake.test/x").status_code, received


def test_token_request_follows_the_rfc() -> None:
    provider = TokenIssuer()
    assert provider.tokens().current() == "t1"
    assert provider.forms == [
        {
            "grant_type": ["client_credentials"],
            "client_id": ["lakewright"],
            "client_secret": ["s3cret"],
            "scope": ["lake"],
            "audience": ["lakekeeper"],
        }
    ]


def test_token_is_kept_and_renewed_before_it_ends() -> None:
    provider = TokenIssuer()
    tokens = provider.tokens()
    assert [tokens.current(), tokens.current()] == ["t1", "t1"]
    provider.time = 79
    assert tokens.current() == "t1"
    provider.time = 81
    assert tokens.current() == "t2"


def test_many_threads_request_one_token() -> None:
    provider = TokenIssuer()
    tokens = provider.tokens()
    gate = threading.Barrier(8)
    received: list[str] = []

    def ask() -> None:
        gate.wait()
        received.append(tokens.current())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert received == ["t1"] * 8
    assert len(provider.forms) == 1


def test_rejected_token_is_renewed_once() -> None:
    assert call_with_tokens(TokenIssuer().tokens(), "t2") == (200, ["Bearer t1", "Bearer t2"])
    assert call_with_tokens(TokenIssuer().tokens(), "never") == (401, ["Bearer t1", "Bearer t2"])


def test_two_rejections_of_one_token_renew_it_once() -> None:
    provider = TokenIssuer()
    tokens = provider.tokens()
    tokens.current()
    assert [tokens.renew("t1"), tokens.renew("t1")] == ["t2", "t2"]


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(401, json={"error": "invalid_client", "error_description": "secret s3cret is wrong"}),
        httpx.Response(200, json={"token": "no"}),
        httpx.Response(502, text="bad gateway"),
    ],
    ids=["refused", "no token", "no JSON"],
)
def test_missing_token_is_one_sentence_without_the_secret(answer: httpx.Response) -> None:
    with pytest.raises(
        NotAuthenticatedError, match=r"https://idp\.test/token gave no token to client lakewright"
    ) as refused:
        TokenIssuer(answer).tokens().current()
    assert "s3cret" not in str(refused.value)


def test_token_file_is_read_at_each_use(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    tokens = TokenFile(str(file))
    assert tokens.current() == "one"
    file.write_text("two\n")
    assert tokens.current() == "two"
    file.unlink()
    with pytest.raises(NotAuthenticatedError, match="cannot be read: FileNotFoundError"):
        tokens.current()


def test_fixed_token_is_resolved_again_when_rejected() -> None:
    values = iter(["old", "new"])
    assert call_with_tokens(FixedToken("env:TOKEN", lambda _: next(values)), "new") == (
        200,
        ["Bearer old", "Bearer new"],
    )


@pytest.mark.parametrize(
    "auth",
    [
        {"kind": "token", "token": "eyJhbGciOi"},
        {"kind": "client-credentials", "token_url": "https://idp.test", "client_id": "x", "client_secret": "s3cret"},
    ],
    ids=["token", "client secret"],
)
def test_server_refuses_a_secret_instead_of_a_reference(auth: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="must be a reference to a secret"):
        ServerRef.model_validate({"endpoint": "https://lake.test", "auth": auth})


def test_newline_is_no_part_of_a_token() -> None:
    assert call_with_tokens(FixedToken("env:TOKEN", lambda _: "good\n"), "good") == (200, ["Bearer good"])


def test_token_url_is_kept_unchanged() -> None:
    for url in ("https://idp.test/application/o/token/", "https://idp.test/oauth2/token?p=B2C_1"):
        assert SETTINGS.model_validate({**SETTINGS.model_dump(), "token_url": url}).token_url == url


@pytest.mark.parametrize("token", ["", "s3cret\nsecond", "s3cret value", "s3cr\u00e9t"])
def test_invalid_token_is_refused_and_not_printed(token: str) -> None:
    with pytest.raises(NotAuthenticatedError, match=r"the token .*Check what `auth`") as refused:
        call_with_tokens(FixedToken("env:TOKEN", lambda _: token), "never")
    assert "s3cr" not in str(refused.value)
