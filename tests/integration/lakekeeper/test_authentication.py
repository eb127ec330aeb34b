"""Who calls: the server checks tokens of an identity provider, and the client gets them and renews them in time."""

from __future__ import annotations

import datetime
import ipaddress
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from lakewright.credentials import resolve
from lakewright.lakekeeper.api.client import Client
from lakewright.lakekeeper.api.errors import NotAuthenticated, Unreachable
from lakewright.lakekeeper.api.retry import RetryPolicy
from lakewright.lakekeeper.api.server import ServerRef
from lakewright_sandbox.in_process import serving
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.faults import FaultSwitch
from lakewright_sandbox.lakekeeper.settings import Settings
from lakewright_sandbox.tokens.app import IdentityProvider
from lakewright_sandbox.tokens.clients import Registered
from lakewright_sandbox.tokens.keys import SigningKey

SECRET = "s3cret-of-the-client"
INFO = "/management/v1/info"
CLIENT = Registered("ci", SECRET, audiences=("lakekeeper", "other"), scopes=("lake", "house"))


class World:
    """An identity provider, a Lakekeeper that trusts it, and how a client reaches both."""

    def __init__(self, folder: Path, stack: ExitStack, **tls: Path) -> None:
        self.provider = IdentityProvider({"ci": CLIENT}, SigningKey())
        asked: list[str] = []
        self.asked, app = asked, self.provider.app()

        async def counted(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and scope["path"] == "/token":
                asked.append(scope["path"])
            await app(scope, receive, send)

        self.issuer = stack.enter_context(serving(counted, **tls))
        plain = stack.enter_context(serving(self.provider.app())) if tls else self.issuer
        settings = Settings(
            database=f"sqlite:///{folder / 'lakekeeper.db'}",
            skip_storage_validation=True,
            openid_provider_uri=plain,
            openid_audiences=("lakekeeper",),
        )
        self.trusted_issuer = plain
        self.endpoint = stack.enter_context(serving(FaultSwitch(create_app(settings)), **tls))

    def token(self, **claims: Any) -> str:
        """A token of the provider, with other claims; those that are None are left out."""
        whole = self.provider.claims(self.trusted_issuer, CLIENT, "lakekeeper", "lake") | claims
        return self.provider.key.sign({name: value for name, value in whole.items() if value is not None})

    def ask(self, token: str | None) -> httpx.Response:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.get(f"{self.endpoint}{INFO}", headers=headers)

    def reference(self, **changes: Any) -> dict[str, Any]:
        auth = {
            "kind": "client-credentials",
            "token_url": f"{self.issuer}/token",
            "client_id": "ci",
            "client_secret": "env:CI_SECRET",
        }
        return {"endpoint": self.endpoint, "auth": auth | changes}

    def client(self, reference: dict[str, Any] | None = None) -> Client:
        server = ServerRef.model_validate(reference or self.reference())
        return Client(server, resolve, retry=RetryPolicy(attempts=2, first_wait=0.001))


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(tmp_path_factory.mktemp("tokens"), stack)


@pytest.fixture
def world(shared_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("CI_SECRET", SECRET)
    shared_world.asked.clear()
    yield shared_world
    shared_world.provider.lifetime = 3600
    httpx.delete(f"{shared_world.endpoint}/sandbox/v1/faults")


def kind_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


def test_a_good_token_is_let_in_and_health_needs_none(world: World) -> None:
    assert world.ask(world.token()).status_code == 200
    assert httpx.get(f"{world.endpoint}/health").status_code == 200


def test_a_call_without_a_token_is_refused(world: World) -> None:
    assert kind_of(world.ask(None)) == (401, "MissingAuthorizationHeader")


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": int(time.time()) - 1},
        {"exp": None},
        {"nbf": int(time.time()) + 600},
        {"iss": "http://somebody.else"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"sub": None},
    ],
    ids=str,
)
def test_a_token_that_is_not_right_is_refused(world: World, claims: dict[str, Any]) -> None:
    assert kind_of(world.ask(world.token(**claims))) == (401, "AuthenticationFailed")


def test_a_token_that_somebody_else_signed_is_refused(world: World) -> None:
    claims = world.provider.claims(world.issuer, CLIENT, "lakekeeper", "lake")
    assert kind_of(world.ask(SigningKey().sign(claims))) == (401, "AuthenticationFailed")


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "eyJhbGciOiJub25lIn0.e30."])
def test_what_is_no_signed_token_is_refused(world: World, token: str) -> None:
    assert kind_of(world.ask(token)) == (401, "AuthenticationFailed")


def test_another_way_to_authenticate_is_refused(world: World) -> None:
    assert kind_of(httpx.get(f"{world.endpoint}{INFO}", auth=("ci", SECRET))) == (401, "AuthenticationFailed")


def test_a_token_for_one_of_several_audiences_is_let_in(world: World) -> None:
    assert world.ask(world.token(aud=["other", "lakekeeper"])).status_code == 200


def test_the_caller_is_the_subject_of_the_token(world: World) -> None:
    user = {"authorization": f"Bearer {world.token(sub='alice', name='Alice', email='a@x.example')}"}
    httpx.post(f"{world.endpoint}/management/v1/user", json={}, headers=user).raise_for_status()
    me = httpx.get(f"{world.endpoint}/management/v1/whoami", headers=user).json()
    assert (me["id"], me["name"], me["email"]) == ("oidc~alice", "Alice", "a@x.example")


def test_the_server_itself_gives_out_no_tokens(world: World) -> None:
    answer = httpx.post(
        f"{world.endpoint}/catalog/v1/oauth/tokens", headers={"authorization": f"Bearer {world.token()}"}
    )
    assert (answer.status_code, answer.content) == (404, b"")


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
def test_the_provider_refuses_in_the_words_of_oauth2(
    world: World, form: dict[str, str], status: int, code: str
) -> None:
    good = {"grant_type": "client_credentials", "client_id": "ci", "client_secret": SECRET}
    answer = httpx.post(f"{world.issuer}/token", data=good | form)
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert SECRET not in answer.text


def test_the_provider_takes_basic_authentication_too(world: World) -> None:
    answer = httpx.post(f"{world.issuer}/token", data={"grant_type": "client_credentials"}, auth=("ci", SECRET))
    assert answer.json()["scope"] == "lake house"


def test_discovery_leads_to_tokens_and_keys(world: World) -> None:
    found = httpx.get(f"{world.issuer}/.well-known/openid-configuration").json()
    assert found["issuer"] == world.issuer
    assert found["token_endpoint"] == f"{world.issuer}/token"
    keys = httpx.get(found["jwks_uri"]).json()["keys"]
    assert [sorted(key.keys() & {"d", "kid", "x", "y"}) for key in keys] == [["kid", "x", "y"]]


# The client.


def test_one_token_serves_many_calls_of_many_threads(world: World) -> None:
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
    assert len(world.asked) == 1


def test_scope_and_audience_are_asked_for(world: World) -> None:
    world.client(world.reference(scope="house", audience="lakekeeper")).server_now()
    with pytest.raises(NotAuthenticated, match="400 invalid_scope"):
        world.client(world.reference(scope="admin")).server_now()
    with pytest.raises(NotAuthenticated, match=r"GET /management/v1/info at http://.* 401 AuthenticationFailed"):
        world.client(world.reference(audience="other")).server_now()


def test_a_token_is_renewed_before_it_expires(world: World) -> None:
    """No call is ever refused, though each token lives two seconds only."""
    world.provider.lifetime = 2
    client = world.client()
    end = time.monotonic() + 4
    httpx.delete(f"{world.endpoint}/sandbox/v1/calls")
    while time.monotonic() < end:
        client.server_now()
    calls = httpx.get(f"{world.endpoint}/sandbox/v1/calls").json()["calls"]
    assert {one["status"] for one in calls} == {200}
    assert 2 <= len(world.asked) <= 5


def test_a_token_that_the_server_refuses_is_renewed_once(world: World) -> None:
    client = world.client()
    client.server_now()
    faults = f"{world.endpoint}/sandbox/v1/faults"
    httpx.put(faults, json=[{"path": INFO, "action": "expired-token"}])
    client.server_now()
    assert len(world.asked) == 2
    httpx.put(faults, json=[{"path": INFO, "action": "expired-token", "count": None}])
    with pytest.raises(NotAuthenticated, match=r"GET /management/v1/info at http://.* 401"):
        client.server_now()
    assert len(world.asked) == 3


@pytest.mark.parametrize(
    ("secret", "changes", "says"),
    [
        ("wrong-secret", {}, r"gave no token to client ci: it answered 401 invalid_client"),
        (SECRET, {"token_url": "http://127.0.0.1:9/token"}, r"http://127\.0\.0\.1:9/token did not answer"),
    ],
)
def test_an_error_names_the_token_endpoint_and_no_secret(
    world: World, monkeypatch: pytest.MonkeyPatch, secret: str, changes: dict[str, str], says: str
) -> None:
    monkeypatch.setenv("CI_SECRET", secret)
    with pytest.raises(NotAuthenticated, match=f"token endpoint .*{says}") as refused:
        world.client(world.reference(**changes)).server_now()
    assert secret not in str(refused.value)


def test_a_service_accounts_token_file_is_read_at_every_use(world: World, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(world.token(exp=int(time.time()) - 1))
    client = world.client({"endpoint": world.endpoint, "auth": {"kind": "token-file", "path": str(file)}})
    with pytest.raises(NotAuthenticated, match="401 AuthenticationFailed"):
        client.server_now()
    file.write_text(f"{world.token()}\n")
    client.server_now()


def test_a_static_token_is_sent_as_it_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", world.token())
    world.client({"endpoint": world.endpoint, "auth": {"kind": "token", "token": "env:TOKEN"}}).server_now()


# A certificate authority of one's own.


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A self-made authority's certificate, and one for 127.0.0.1 that it signed."""
    folder = tmp_path_factory.mktemp("authority")
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name, name = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in ("Test CA", "lake"))
    now = datetime.datetime.now(datetime.UTC)

    def signed(subject: x509.Name, public: Any, *extensions: tuple[x509.ExtensionType, bool]) -> x509.Certificate:
        builder = x509.CertificateBuilder(ca_name, subject, public, x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(minutes=1))
        builder = builder.not_valid_after(now + datetime.timedelta(hours=1))
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
        return builder.add_extension(identifier, critical=False).sign(ca_key, hashes.SHA256())

    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    ca = signed(
        ca_name,
        ca_key.public_key(),
        (x509.BasicConstraints(ca=True, path_length=None), True),
        (usage, True),
        (x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), False),
    )
    loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    leaf = signed(name, key.public_key(), (x509.SubjectAlternativeName([loopback]), False))
    files = {part: folder / f"{part}.pem" for part in ("ca", "certificate", "key")}
    files["ca"].write_bytes(ca.public_bytes(Encoding.PEM))
    files["certificate"].write_bytes(leaf.public_bytes(Encoding.PEM))
    files["key"].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


@pytest.fixture
def private_world(authority: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Server and token endpoint over TLS, with certificates that nobody else trusts."""
    monkeypatch.setenv("CI_SECRET", SECRET)
    with ExitStack() as stack:
        yield World(tmp_path, stack, certificate=authority["certificate"], key=authority["key"])


def test_an_authority_of_ones_own_is_trusted_where_it_is_named(
    private_world: World, authority: dict[str, Path]
) -> None:
    reference = private_world.reference()
    reference["auth"] = {"kind": "token", "token": "env:TOKEN"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKEN", private_world.token())
        private_world.client(reference | {"ca_bundle": str(authority["ca"])}).server_now()
        with pytest.raises(Unreachable, match=r"CERTIFICATE_VERIFY_FAILED.* name its authority by `ca_bundle`"):
            private_world.client(reference).server_now()


def test_the_token_endpoint_is_trusted_by_the_same_authority(private_world: World, authority: dict[str, Path]) -> None:
    reference = private_world.reference()
    client = private_world.client(reference | {"ca_bundle": str(authority["ca"])})
    with pytest.raises(NotAuthenticated, match="401 AuthenticationFailed"):
        client.server_now()  # the server asks for tokens of another issuer; ours came over TLS
    assert len(private_world.asked) == 2
    with pytest.raises(NotAuthenticated, match=r"token endpoint https://.*name its authority by `ca_bundle`"):
        private_world.client(reference).server_now()


@pytest.mark.parametrize(("text", "says"), [(None, "FileNotFoundError"), ("no PEM", "no certificate in it")])
def test_a_bundle_that_cannot_be_used_is_named(world: World, tmp_path: Path, text: str | None, says: str) -> None:
    file = tmp_path / "ca.pem"
    if text:
        file.write_text(text)
    with pytest.raises(Unreachable, match=rf"`ca_bundle` .*ca\.pem cannot be used: {says}"):
        world.client(world.reference() | {"ca_bundle": str(file)})
