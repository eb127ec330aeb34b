"""Iceberg's authentication reads the credential of a computing unit from its file, at every use."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from authenticating_proxy import AuthenticatingProxy, serve_proxy
from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, TokenFileAuth
from lakewright_spark.session import jars
from plain_jvm import run_jvm
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import IllegalArgumentException
from waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.stand_in("plays an identity provider")]


class UnreliableIdentityProvider(AuthenticatingProxy):
    """An identity provider that can be down, and that changes its client's secret."""

    def __init__(self) -> None:
        super().__init__("http://unused.invalid", life=3600, secret="first-secret")
        self.is_down = False

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> httpx.Response:
        assert path == "/token"
        if self.is_down:
            return httpx.Response(503, json={"error": "temporarily_unavailable"})
        return super().answer(method, path, headers, body)


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """Start a JVM with Iceberg's jar and the jar of this repository, without Spark."""
    with run_jvm([jars.fetch()[0], jars.own()]) as gateway, pytest.MonkeyPatch.context() as patch:
        # PySpark asks this JVM about Java's errors, also if the worker has had a session in another JVM.
        patch.setattr(SparkContext, "_gateway", gateway)
        patch.setattr(SparkContext, "_jvm", gateway.jvm)
        yield gateway.jvm


@pytest.fixture
def provider() -> Iterator[UnreliableIdentityProvider]:
    with serve_proxy(UnreliableIdentityProvider()) as provider:
        assert isinstance(provider, UnreliableIdentityProvider)
        yield provider


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text("first-secret\n")
    return file


def client(provider: UnreliableIdentityProvider, secret: Path, **more: str) -> ClientCredentialsAuth:
    return ClientCredentialsAuth(
        kind="client-credentials", token_url=provider.token_url, client_id="job", client_secret=f"file:{secret}", **more
    )


class AuthSession:
    """An authentication session of Iceberg for a catalog's authentication."""

    def __init__(self, jvm: Any, auth: CatalogAuth) -> None:
        self.jvm = jvm
        options = auth.java_references()
        properties = jvm.java.util.HashMap(options)
        # As Iceberg's catalog loads it: by the class's name.
        manager = jvm.org.apache.iceberg.rest.auth.AuthManagers.loadAuthManager("test", properties)
        self.session = manager.catalogSession(None, properties)

    def authorization(self) -> str:
        """Return the Authorization header of a request."""
        request = self.jvm.org.apache.iceberg.rest.ImmutableHTTPRequest.builder()
        method = self.jvm.java.lang.Class.forName("org.apache.iceberg.rest.HTTPRequest$HTTPMethod").getEnumConstants()[
            0
        ]
        request = request.path("https://catalog.example/v1/config").method(method).build()
        return self.session.authenticate(request).headers().firstEntry("authorization").get().value()


def test_renewed_token_file_is_used(jvm: Any, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    session = AuthSession(jvm, TokenFileAuth(kind="token-file", path=str(file)))

    assert session.authorization() == "Bearer first"
    file.write_text("second\n")
    assert session.authorization() == "Bearer second"


def test_missing_token_names_its_file(jvm: Any, tmp_path: Path) -> None:
    session = AuthSession(jvm, TokenFileAuth(kind="token-file", path=str(tmp_path / "none")))

    with pytest.raises(Py4JJavaError, match=r"catalog credential file:.*none: expected a variable or file that is"):
        session.authorization()


def test_sessions_share_a_token_until_it_expires(jvm: Any, provider: UnreliableIdentityProvider, secret: Path) -> None:
    first, second = (AuthSession(jvm, client(provider, secret)).authorization() for _ in range(2))

    assert first == second
    assert len(provider.grants) == 1


def test_request_has_scope_and_audience(jvm: Any, provider: UnreliableIdentityProvider, secret: Path) -> None:
    AuthSession(jvm, client(provider, secret, scope="lakekeeper", audience="catalog")).authorization()

    (form,) = provider.grants
    assert (form["grant_type"], form["scope"], form["audience"]) == ("client_credentials", "lakekeeper", "catalog")


def test_expiring_token_is_renewed_with_the_present_secret(
    jvm: Any, provider: UnreliableIdentityProvider, secret: Path
) -> None:
    provider.life = 2
    session = AuthSession(jvm, client(provider, secret))
    first = session.authorization()

    provider.secret = "second-secret"
    secret.write_text("second-secret")
    wait_for_another(session, first)

    assert len(provider.grants) == 2
    assert provider.grants[1]["client_secret"] == "second-secret"


def test_present_token_outlives_an_outage(jvm: Any, provider: UnreliableIdentityProvider, secret: Path) -> None:
    """A token is renewed before it expires; if that fails, it is used until then."""
    provider.life = 2
    session = AuthSession(jvm, client(provider, secret))
    first = session.authorization()
    provider.is_down = True

    expired = time.monotonic() + provider.life
    with pytest.raises(Py4JJavaError) as caught:
        wait_for_another(session, first)

    assert expired - 0.5 < time.monotonic() < expired + 3
    assert "first-secret" not in str(caught.value)
    provider.is_down = False
    assert session.authorization() != first


@pytest.mark.parametrize("reference", ["the-secret-itself", "vault:secret/data/jobs#key"])
def test_only_references_are_accepted(
    reference: str, jvm: Any, provider: UnreliableIdentityProvider, secret: Path
) -> None:
    auth = client(provider, secret).model_copy(update={"client_secret": reference})

    with pytest.raises((Py4JJavaError, IllegalArgumentException)) as caught:  # the latter after a session of PySpark
        AuthSession(jvm, auth)

    assert "expected a reference to a secret, file:PATH or env:NAME" in str(caught.value)
    assert reference not in str(caught.value)


def wait_for_another(session: AuthSession, first: str) -> None:
    """Wait until the token has changed."""
    wait_until(lambda: session.authorization() != first)
