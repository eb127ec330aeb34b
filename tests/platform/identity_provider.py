"""The sandbox's identity provider with TLS, whose secrets and signing key can be rotated."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx

from tests.authorities import Authority, write_certificate
from tests.platform.machines import Machine, is_responding, start_machine, trust
from tests.platform.network import PodNetwork

ISSUER = "https://idp.platform.example"
CLIENT = "stack"


class Issuer:
    """The identity provider. Its clients' secrets are in `folder/clients`."""

    def __init__(self, folder: Path, network: PodNetwork, authority: Authority, trusted: Path) -> None:
        """Start the provider."""
        self._folder, self._trusted = folder, trusted
        host = ISSUER.removeprefix("https://")
        self._certificates = write_certificate(authority, folder / "issuer-tls", host)
        self._address = network.add_host(host)
        self._machine = self._start()

    @property
    def secret_file(self) -> Path:
        """File with the secret of the stacks' client."""
        return self._folder / "clients" / CLIENT

    def read_token(self) -> str:
        """Return a new token of the stacks' client."""
        form = {
            "grant_type": "client_credentials",
            "client_id": CLIENT,
            "client_secret": self.secret_file.read_text(),
        }
        response = httpx.post(f"{ISSUER}/token", data=form, verify=trust(self._trusted))
        return response.raise_for_status().json()["access_token"]

    def rotate(self, secret: str) -> None:
        """Give the client another secret, and sign tokens with another key."""
        self.stop()
        self.secret_file.write_text(secret)
        (self._folder / "clients" / "signing-key.pem").unlink()
        self._machine = self._start()

    def stop(self) -> None:
        """End the provider."""
        self._machine.stop()

    def _start(self) -> Machine:
        arguments = [self._address, str(self._folder / "clients"), str(self._certificates)]
        machine = start_machine("issuer", [sys.executable, "-m", "tests.platform.issuer", *arguments], self._folder)
        machine.wait_until(lambda: is_responding(f"{ISSUER}/health", self._trusted))
        return machine
