"""Authentication: the server verifies tokens of an identity provider; the client requests and renews them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import NotAuthenticatedError
from lakewright_sandbox.tokens.keys import SigningKey

from tests.integration.lakekeeper.guarded_world import CLIENT, INFO, SECRET, GuardedWorld
from tests.integration.lakekeeper.rules import get_refusal


@pytest.fixture(scope="module")
def module_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedWorld]:
    with ExitStack() as stack:
        yield GuardedWorld(tmp_path_factory.mktemp("tokens"), stack)


@pytest.fixture
def world(module_world: GuardedWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[GuardedWorld]:
    monkeypatch.setenv("CI_SECRET", SECRET)
    module_world.token_requests.clear()
    yield module_world
    module_world.provider.lifetime = 3600
    httpx.delete(f"{module_world.endpoint}/sandbox/v1/faults")


def test_a_valid_token_is_accepted_and_health_needs_none(world: GuardedWorld) -> None:
    assert world.ask(world.issue_token()).status_code == 200
    assert httpx.get(f"{world.endpoint}/health").status_code == 200


def test_a_call_without_a_token_is_refused(world: GuardedWorld) -> None:
    assert get_refusal(world.ask(None)) == (401, "MissingAuthorizationHeader")


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1_000_000_000},
        {"exp": None},
        {"nbf": 4_000_000_000},
        {"iss": "http://issuer.example"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"sub": None},
    ],
    ids=str,
)
def test_a_token_with_wrong_claims_is_refused(world: GuardedWorld, claims: dict[str, Any]) -> None:
    assert get_refusal(world.ask(world.issue_token(**claims))) == (401, "AuthenticationFailed")


def test_a_token_with_a_foreign_signature_is_refused(world: GuardedWorld) -> None:
    claims = world.provider.claims(world.issuer, CLIENT, "lakekeeper", "lake")
    assert get_refusal(world.ask(SigningKey().sign(claims))) == (401, "AuthenticationFailed")


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "eyJhbGciOiJub25lIn0.e30."])
def test_an_unsigned_token_is_refused(world: GuardedWorld, token: str) -> None:
    assert get_refusal(world.ask(token)) == (401, "AuthenticationFailed")


def test_another_way_to_authenticate_is_refused(world: GuardedWorld) -> None:
    assert get_refusal(httpx.get(f"{world.endpoint}{INFO}", auth=("ci", SECRET))) == (401, "AuthenticationFailed")


def test_a_token_for_one_of_several_audiences_is_accepted(world: GuardedWorld) -> None:
    assert world.ask(world.issue_token(aud=["other", "lakekeeper"])).status_code == 200


def test_the_caller_is_the_subject_of_the_token(world: GuardedWorld) -> None:
    user = {"authorization": f"Bearer {world.issue_token(sub='alice', name='Alice', email='a@x.example')}"}
    httpx.post(f"{world.endpoint}/management/v1/user", json={}, headers=user).raise_for_status()
    me = httpx.get(f"{world.endpoint}/management/v1/whoami", headers=user).json()
    assert (me["id"], me["name"], me["email"]) == ("oidc~alice", "Alice", "a@x.example")


def test_the_server_issues_no_tokens(world: GuardedWorld) -> None:
    response = httpx.post(
        f"{world.endpoint}/catalog/v1/oauth/tokens", headers={"authorization": f"Bearer {world.issue_token()}"}
    )
    assert (response.status_code, response.content) == (404, b"")


@pytest.mark.parametrize(
    ("form", "status", "code"),
    [
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"client_id": "stranger"}, 401, "invalid_client"),
        ({"scope": "lake admin"}, 400, "invalid_scope"),
        ({"audience": "bank"}, 400, "invalid_target"),
    ],
)
def test_the_provider_returns_oauth2_errors(world: GuardedWorld, form: dict[str, str], status: int, code: str) -> None:
    valid_form = {"grant_type": "client_credentials", "client_id": "ci", "client_secret": SECRET}
    response = httpx.post(f"{world.issuer}/token", data=valid_form | form)
    assert (response.status_code, response.json()["error"]) == (status, code)
    assert SECRET not in response.text


def test_the_provider_takes_basic_authentication_too(world: GuardedWorld) -> None:
    response = httpx.post(f"{world.issuer}/token", data={"grant_type": "client_credentials"}, auth=("ci", SECRET))
    assert response.json()["scope"] == "lake house"


def test_discovery_leads_to_tokens_and_keys(world: GuardedWorld) -> None:
    configuration = httpx.get(f"{world.issuer}/.well-known/openid-configuration").json()
    assert configuration["issuer"] == world.issuer
    assert configuration["token_endpoint"] == f"{world.issuer}/token"
    keys = httpx.get(configuration["jwks_uri"]).json()["keys"]
    assert [sorted(key.keys() & {"d", "kid", "x", "y"}) for key in keys] == [["kid", "x", "y"]]


# The client.


def test_one_token_serves_many_calls_of_many_threads(world: GuardedWorld) -> None:
    client = world.client()
    gate = threading.Barrier(8)

    def ask() -> None:
        gate.wait()
        for _ in range(3):
            client.server_now()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(world.token_requests) == 1


def test_scope_and_audience_are_requested(world: GuardedWorld) -> None:
    world.client(world.reference(scope="house", audience="lakekeeper")).server_now()
    with pytest.raises(NotAuthenticatedError, match="400 invalid_scope"):
        world.client(world.reference(scope="admin")).server_now()
    with pytest.raises(NotAuthenticatedError, match=r"GET /management/v1/info at http://.* 401 AuthenticationFailed"):
        world.client(world.reference(audience="other")).server_now()


def test_a_token_is_renewed_before_it_expires(world: GuardedWorld) -> None:
    """No call is refused, although each token is valid for two seconds only."""
    world.provider.lifetime = 2
    client = world.client()
    end = time.monotonic() + 4
    httpx.delete(f"{world.endpoint}/sandbox/v1/calls")
    while time.monotonic() < end:
        client.server_now()
    calls = httpx.get(f"{world.endpoint}/sandbox/v1/calls").json()["calls"]
    assert {call["status"] for call in calls} == {200}
    assert 2 <= len(world.token_requests) <= 5


def test_a_token_that_the_server_refuses_is_renewed_once(world: GuardedWorld) -> None:
    client = world.client()
    client.server_now()
    faults = f"{world.endpoint}/sandbox/v1/faults"
    httpx.put(faults, json=[{"path": INFO, "action": "expired-token"}])
    client.server_now()
    assert len(world.token_requests) == 2
    httpx.put(faults, json=[{"path": INFO, "action": "expired-token", "count": None}])
    with pytest.raises(NotAuthenticatedError, match=r"GET /management/v1/info at http://.* 401"):
        client.server_now()
    assert len(world.token_requests) == 3


@pytest.mark.parametrize(
    ("secret", "changes", "expected"),
    [
        ("wrong-secret", {}, r"gave no token to client ci: it responded with 401 invalid_client"),
        (SECRET, {"token_url": "http://127.0.0.1:9/token"}, r"http://127\.0\.0\.1:9/token did not respond"),
    ],
)
def test_an_error_names_the_token_endpoint_and_no_secret(
    world: GuardedWorld, monkeypatch: pytest.MonkeyPatch, secret: str, changes: dict[str, str], expected: str
) -> None:
    monkeypatch.setenv("CI_SECRET", secret)
    with pytest.raises(NotAuthenticatedError, match=f"token endpoint .*{expected}") as refused:
        world.client(world.reference(**changes)).server_now()
    assert secret not in str(refused.value)


def test_a_service_accounts_token_file_is_read_at_every_use(world: GuardedWorld, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(world.issue_token(exp=int(time.time()) - 1))
    client = world.client({"endpoint": world.endpoint, "auth": {"kind": "token-file", "path": str(file)}})
    with pytest.raises(NotAuthenticatedError, match="401 AuthenticationFailed"):
        client.server_now()
    file.write_text(f"{world.issue_token()}\n")
    client.server_now()


def test_a_static_token_is_sent_as_it_is(world: GuardedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", world.issue_token())
    world.client({"endpoint": world.endpoint, "auth": {"kind": "token", "token": "env:TOKEN"}}).server_now()
