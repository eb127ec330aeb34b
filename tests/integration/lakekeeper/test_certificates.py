"""A custom certificate authority, trusted for the server and the token endpoint if `ca_bundle` names it."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from lakewright.http.retry import RetryPolicy
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotAuthenticatedError, UnreachableError
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.lakekeeper.guarded_world import SECRET, GuardedWorld


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The certificate of a test authority, and a certificate for 127.0.0.1 that it signed."""
    folder = tmp_path_factory.mktemp("authority")
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name, name = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in ("Test CA", "lake"))
    now = datetime.datetime.now(datetime.UTC)

    def sign_certificate(
        subject: x509.Name, public: Any, *extensions: tuple[x509.ExtensionType, bool]
    ) -> x509.Certificate:
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
    ca = sign_certificate(
        ca_name,
        ca_key.public_key(),
        (x509.BasicConstraints(ca=True, path_length=None), True),
        (usage, True),
        (x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), False),
    )
    loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    leaf = sign_certificate(name, key.public_key(), (x509.SubjectAlternativeName([loopback]), False))
    files = {part: folder / f"{part}.pem" for part in ("ca", "certificate", "key")}
    files["ca"].write_bytes(ca.public_bytes(Encoding.PEM))
    files["certificate"].write_bytes(leaf.public_bytes(Encoding.PEM))
    files["key"].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


@pytest.fixture
def private_world(
    authority: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GuardedWorld]:
    """Server and token endpoint over TLS, with certificates that no other client trusts."""
    monkeypatch.setenv("CI_SECRET", SECRET)
    with ExitStack() as stack:
        yield GuardedWorld(tmp_path, stack, certificate=authority["certificate"], key=authority["key"])


def test_a_custom_authority_is_trusted_if_named(private_world: GuardedWorld, authority: dict[str, Path]) -> None:
    reference = private_world.reference()
    reference["auth"] = {"kind": "token", "token": "env:TOKEN"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKEN", private_world.issue_token())
        private_world.client(reference | {"ca_bundle": str(authority["ca"])}).server_now()
        with pytest.raises(
            UnreachableError, match=r"CERTIFICATE_VERIFY_FAILED.* set `ca_bundle` to its certificate authority"
        ):
            private_world.client(reference).server_now()


def test_https_to_a_plain_server_names_the_expected_scheme(sandbox: Sandbox) -> None:
    plain = sandbox.lakekeeper.endpoint.replace("http:", "https:")
    with pytest.raises(
        UnreachableError,
        match=r"The server does not use TLS on this port\. Check whether the address must begin with `http://`",
    ):
        Client(ServerRef(endpoint=plain), str, retry=RetryPolicy(attempts=1)).server_now()


def test_the_token_endpoint_is_trusted_by_the_same_authority(
    private_world: GuardedWorld, authority: dict[str, Path]
) -> None:
    reference = private_world.reference()
    client = private_world.client(reference | {"ca_bundle": str(authority["ca"])})
    with pytest.raises(NotAuthenticatedError, match="401 AuthenticationFailed"):
        client.server_now()  # the server asks for tokens of another issuer; ours came over TLS
    assert len(private_world.token_requests) == 2
    with pytest.raises(
        NotAuthenticatedError, match=r"token endpoint https://.*set `ca_bundle` to its certificate authority"
    ):
        private_world.client(reference).server_now()


@pytest.mark.parametrize(("text", "expected"), [(None, "FileNotFoundError"), ("no PEM", "no certificate in it")])
def test_a_bundle_that_cannot_be_used_is_named(tmp_path: Path, text: str | None, expected: str) -> None:
    file = tmp_path / "ca.pem"
    if text:
        file.write_text(text)
    with pytest.raises(UnreachableError, match=rf"`ca_bundle` .*ca\.pem cannot be used: {expected}"):
        Client(ServerRef(endpoint="https://lake.test", ca_bundle=str(file)), str)
